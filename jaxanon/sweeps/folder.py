"""The folder of a sweep: a run per member, and ``sweep.json`` beside them."""

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
    """Makes ``folder`` the home of the sweep that ``description`` describes.

    Raises:
      FileExistsError: if it holds a sweep and ``resume`` is False, or something else.
      ValueError: if ``resume`` is True and the sweep there is another one, or damaged.
    """
    folder = pathlib.Path(folder)
    path = folder / FILE
    if path.exists():
        if not resume:
            raise FileExistsError(
                f"{folder} holds a sweep already; go on with it by resume=True "
                "(--resume), or choose another folder."
            )
        found = read(folder)
        for name, value in json.loads(json.dumps(description)).items():
            if _told(name, found.get(name)) != _told(name, value):
                raise ValueError(
                    f"{folder} holds another sweep: {name} was {found.get(name)!r} "
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


def _told(name, value):
    """What two descriptions have to have in common."""
    if name == "grid" and isinstance(value, dict):
        return [*value.items()]  # Members are numbered by the order of its axes.
    return value or None  # What nobody asked for may be empty, or not there at all.


def read(folder) -> dict:
    """What ``sweep.json`` says.

    Raises:
      ValueError: if it is damaged.
    """
    path = pathlib.Path(folder) / FILE
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(told, dict):
            raise ValueError(f"it holds a {type(told).__name__}")
        return told
    except (RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); sweep anew in another folder."
        ) from error


def add(folder, **entries) -> None:
    """Puts entries into ``sweep.json``, in the place of those of their names."""
    write(folder, read(folder) | entries)


def write(folder, content: dict) -> None:
    """Replaces ``sweep.json``; a loss that is not finite is null there."""
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
    """Where member number ``index`` lies."""
    return pathlib.Path(folder) / f"member-{index:04d}"


def save(run: Run) -> Run:
    """Writes a trained member as a run that ``open_run`` opens; returns it."""
    assert run.folder is not None
    with checkpoint.lock_folder(run.folder):
        run_folder.claim(run.folder, run.config, resume=True)
        metrics_log.write(run.folder, run.history)
        # Before the checkpoint: the ledger never shows less than was spent.
        ledger.write(run.folder, run.method, run.state, asked=int(run.state.round))
        with contextlib.closing(checkpoint.Checkpoints(run.folder)) as saved:
            saved.save(run.state)
    return run


def opened(folder, index: int, method) -> Run | None:
    """Member number ``index`` as it was saved last, else None.

    Args:
      folder: of the sweep.
      index: of the member.
      method: that it is a run of.

    Raises:
      ValueError: if it is damaged.
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
            f"{error} Or delete {path} and go on with the sweep by resume=True "
            "(--resume), which trains this member anew."
        ) from error
    history = metrics_log.read(path, int(state.round))
    if not history:
        return None  # How it came there is lost; it is trained anew.
    state = jax.tree.map(np.asarray, state)  # Devices are for those who train.
    return Run(method, state, method.spec, path, history, config)
