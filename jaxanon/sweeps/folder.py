"""The folder of a sweep: ``sweep.json`` and a run folder per member."""

import contextlib
import json
import math
import pathlib

import jax
import numpy as np

from jaxanon.core.run import Run
from jaxanon.datasets import writing
from jaxanon.privacy import ledger
from jaxanon.training import checkpoint, metrics_log, run_folder

FILE = "sweep.json"


def claim(folder, description: dict, *, resume: bool) -> None:
    """Creates the folder of a sweep, or checks the existing one.

    Args:
      folder: folder of the sweep.
      description: settings that identify the sweep.
      resume: whether the folder may hold this sweep already.

    Raises:
      FileExistsError: if the folder holds a sweep and ``resume`` is False, or other
        files.
      ValueError: if the sweep in the folder is damaged or has other settings.
    """
    folder = pathlib.Path(folder)
    path = folder / FILE
    if path.exists():
        if not resume:
            raise FileExistsError(
                f"{folder} holds a sweep already; continue it with resume=True "
                "(--resume), or choose another folder."
            )
        saved = read(folder)
        for name, value in json.loads(json.dumps(description)).items():
            if _comparable(name, saved.get(name)) != _comparable(name, value):
                raise ValueError(
                    f"{folder} holds another sweep: {name} was {saved.get(name)!r} "
                    f"there and is {value!r} now; resume with the same settings or "
                    "choose another folder."
                )
        return
    begun = folder.iterdir() if folder.is_dir() else ()
    if folder.is_file() or any(not path.name.startswith(".") for path in begun):
        raise FileExistsError(
            f"{folder} is not empty and holds no sweep; choose another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, description)


def _comparable(name, value):
    """Value of an entry in the form that must be equal in both descriptions."""
    if name == "grid" and isinstance(value, dict):
        return [*value.items()]  # The order of the axes numbers the members.
    return value or None  # An unused option may be empty or missing.


def read(folder) -> dict:
    """Returns the content of ``sweep.json``.

    Raises:
      ValueError: if it is damaged.
    """
    path = pathlib.Path(folder) / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}")
        return content
    except (RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); start the sweep in another folder."
        ) from error


def add(folder, **entries) -> None:
    """Adds entries to ``sweep.json``, replacing entries of the same name."""
    write(folder, read(folder) | entries)


def write(folder, content: dict) -> None:
    """Replaces ``sweep.json``; numbers that are not finite become null."""
    text = json.dumps(_finite(content), indent=1, allow_nan=False)
    writing.write(pathlib.Path(folder) / FILE, text + "\n")


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def member_folder(folder, index: int) -> pathlib.Path:
    """Returns the run folder of member ``index``."""
    return pathlib.Path(folder) / f"member-{index:04d}"


def save(run: Run) -> Run:
    """Writes a trained member as a run for ``open_run``; returns the member."""
    assert run.folder is not None
    with checkpoint.lock_folder(run.folder):
        run_folder.claim(run.folder, run.config, resume=True)
        metrics_log.write(run.folder, run.history)
        # Before the checkpoint, so that the ledger never shows less than was spent.
        ledger.write(run.folder, run.method, run.state, asked=int(run.state.round))
        with contextlib.closing(checkpoint.Checkpoints(run.folder)) as saved:
            saved.save(run.state)
    return run


def open_member(folder, index: int, method) -> Run | None:
    """Returns the last saved state of a member as a run, or None.

    Args:
      folder: folder of the sweep.
      index: index of the member.
      method: method of the run.

    Raises:
      ValueError: if the saved run is damaged.
    """
    path = member_folder(folder, index)
    try:
        config = run_folder.read_config(path)
        like = jax.eval_shape(method.init, jax.random.key(config["seed"]))
        state = checkpoint.restore_state(path, config, like)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(
            f"{error} Or delete {path} and continue the sweep with resume=True "
            "(--resume), which retrains this member."
        ) from error
    history = metrics_log.read(path, int(state.round))
    if not history:
        return None  # Its history is lost, so it is retrained.
    state = jax.tree.map(np.asarray, state)  # Frees device memory for training.
    return Run(method, state, method.spec, path, history, config)
