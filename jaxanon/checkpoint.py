"""The folder of a run: settings, and checkpoints that survive a kill."""

import contextlib
import hashlib
import json
import logging
import pathlib
import warnings

import jax
import numpy as np
import orbax.checkpoint as ocp

from jaxanon import __version__, checks, metrics_file
from jaxanon.datasets import writing

FIELDS = dict.fromkeys(("version", "method"), str) | {"architecture": list}
FIELDS |= dict.fromkeys(("settings", "spec", "data"), dict) | {"seed": int}
STREET = "pfdrl"  # The method whose runs have homes in place of windows.
KEPT = 2  # Checkpoints; the older one serves when the newer turns out damaged.


def architecture(state) -> list[str]:
    """The names, types and shapes of a state's arrays, to tell architectures apart."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    name = jax.tree_util.keystr
    return [f"{name(path)}: {leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves]


def refuse_taken(folder, *, resume: bool) -> None:
    """Refuses a folder that ``claim`` would refuse, whatever its run's settings are.

    Raises:
      FileExistsError: if it holds a run that is not to be gone on with, or holds
        something else, or is a file.
    """
    folder = pathlib.Path(folder)
    if (folder / "config.json").exists():
        if not resume:
            raise FileExistsError(
                f"{folder} holds a run already; go on with it by resume=True "
                "(--resume), or choose another folder."
            )
    elif folder.is_file():
        raise FileExistsError(f"{folder} is a file; name a folder.")
    elif any(n.name[0] != "." for n in folder.glob("*")):
        raise FileExistsError(
            f"{folder} is not empty and holds no run; choose another folder."
        )


def claim(folder, config: dict, *, resume: bool, check=lambda: None) -> None:
    """Makes ``folder`` the home of the run that ``config`` describes.

    A folder that does not exist, or is empty, is taken. With ``resume`` a folder that
    holds the same run is taken too, and one that holds none is started afresh.
    ``check`` may raise what else speaks against it, once it is known to be this run's.

    Raises:
      FileExistsError: if the folder holds a run and ``resume`` is False, or holds
        something else.
      ValueError: if ``resume`` is True and the run there has other settings.
    """
    folder = pathlib.Path(folder)
    path = folder / "config.json"
    refuse_taken(folder, resume=resume)
    if path.exists():
        _same(folder, read_config(folder), config)
    check()
    folder.mkdir(parents=True, exist_ok=True)
    writing.write(path, json.dumps(config, indent=2) + "\n")


def restored(folder, config: dict, like, kept=None):
    """The last checkpoint of a run, of an architecture that is built here.

    Args:
      folder: of the run.
      config: of ``read_config``.
      like: a state that the run's settings make, or its shapes.
      kept: what a checkpoint holds of such a state; None is all of it.

    Raises:
      FileNotFoundError: if there is no checkpoint yet.
      ValueError: if the run is of another architecture than ``like``, or damaged.
    """
    if architecture(like) != config["architecture"]:
        raise ValueError(
            f"{folder} holds a checkpoint of another architecture than its settings "
            f"make in jaxanon {__version__} (it was written by {config['version']}); "
            "open it with that version or train it anew."
        )
    with contextlib.closing(Checkpoints(folder)) as saved:
        found = saved.restore(like if kept is None else kept)
    if found is None:
        raise FileNotFoundError(
            f"{folder} has no checkpoint yet; go on with the run by --resume."
        )
    return found


_LACKING = object()


def _same(folder, old, new):
    # More epochs may be asked for; everything else makes it another run.
    changed = [key for key in new if key != "epochs" and old.get(key) != new[key]]
    if changed:
        key = changed[0]
        parts = [key]
        before, after = old.get(key, _LACKING), new[key]
        while isinstance(before, dict) and isinstance(after, dict):
            both = [
                (k, before.get(k, _LACKING), after.get(k, _LACKING))
                for k in before | after
            ]
            key, before, after = next(each for each in both if each[1] != each[2])
            parts.append(key)
        raise ValueError(
            f"{folder} holds another run: {'.'.join(parts)} was {_short(before)} there "
            f"and is {_short(after)} now; resume with the same settings or choose "
            "another folder."
        )


def _short(value):
    text = "lacking" if value is _LACKING else repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def read_config(folder, *, of_windows: bool = False) -> dict:
    """What ``config.json`` says.

    Args:
      folder: of the run.
      of_windows: whether the run must have been trained on windows.

    Raises:
      FileNotFoundError: if there is no run in ``folder``.
      ValueError: if the file is damaged, or the run is a street's and must not be.
    """
    path = pathlib.Path(folder) / "config.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} holds no run: {path} does not exist; train one with "
            "`jaxanon train`, or name the folder of a run."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); train the run anew.") from error
    found = config if isinstance(config, dict) else {}
    if lacking := [k for k, kind in FIELDS.items() if type(found.get(k)) is not kind]:
        raise ValueError(
            f"{path} describes no run: it lacks {sorted(lacking)}; name the folder of "
            "a run."
        )
    if of_windows and config["method"] == STREET:
        raise ValueError(
            f"{folder} holds a street of homes, which has no windows to read or "
            "rewrite: `jaxanon evaluate` tests it, street_run.open_run opens it."
        )
    return config


def digest(state) -> np.ndarray:
    """``uint8[32]``, SHA-256 of all numbers of a state."""
    sha = hashlib.sha256()
    for leaf in jax.tree.leaves(state):
        sha.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    return np.frombuffer(sha.digest(), np.uint8)


def fingerprint(arrays) -> str:
    """The beginning of ``digest``, to tell whether data changed."""
    return digest(arrays).tobytes().hex()[:16]


class Checkpoints:
    """The checkpoints of a run, on disk. A class because Orbax's manager is open."""

    def __init__(self, folder):
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._folder = pathlib.Path(folder).absolute() / "checkpoints"
        self._folder.mkdir(parents=True, exist_ok=True)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=KEPT,
            create=False,
            enable_async_checkpointing=False,
            multiprocessing_options=_alone(),
        )
        try:
            with _quiet():
                self._manager = ocp.CheckpointManager(self._folder, options=options)
        except RecursionError as error:
            raise ValueError(f"{self._folder} is damaged ({error}).") from error

    def save(self, state) -> None:
        """Keeps ``state`` under its round; an interrupted save leaves the last one.

        What is there of that round or of later ones could not be read, or is given up.
        """
        host = jax.tree.map(np.asarray, state)
        kept = {"state": host, "digest": digest(host)}
        self._forget(int(host.round) - 1)
        with _quiet():
            self._manager.save(int(host.round), args=ocp.args.StandardSave(kept))

    def restore(self, like):
        """The newest state that can be read, or None where there never was one.

        Args:
          like: a state of the same architecture, arrays or ``jax.ShapeDtypeStruct``.

        Raises:
          ValueError: if there are checkpoints and none can be read.
        """
        problems = []
        rounds = sorted(self._manager.all_steps(), reverse=True)
        for round_ in rounds:
            try:
                return self._read(round_, like)
            except Exception as error:  # Orbax raises what its file formats raise.
                problems.append(f"round {round_}: {checks.first_line(error)[:120]}")
                warnings.warn(
                    f"the checkpoint of round {round_} in {self._folder} cannot be "
                    "read; falling back to the one before it.",
                    stacklevel=2,
                )
        if problems:
            raise ValueError(
                f"no checkpoint in {self._folder} can be read ({'; '.join(problems)}); "
                "train the run anew in another folder."
            )
        return None

    def _read(self, round_, like):
        wanted = {"state": like, "digest": jax.ShapeDtypeStruct((32,), np.uint8)}
        with _quiet():
            found = self._manager.restore(round_, args=ocp.args.StandardRestore(wanted))
        # Orbax's own checksums cover its index and not the numbers.
        if not np.array_equal(digest(found["state"]), found["digest"]):
            raise ValueError("its numbers are not those that were saved")
        # Orbax's arrays are bound to a device, for which programs compile once more.
        return jax.tree.map(lambda x: jax.numpy.asarray(np.asarray(x)), found["state"])

    def rounds(self) -> list[int]:
        """Rounds of which there is a checkpoint."""
        return sorted(self._manager.all_steps())

    def go_on(self, round_: int) -> list[dict]:
        """The run's metrics up to a round, after which it goes on.

        Later ones are deleted, and checkpoints that could not be read, so that their
        rounds can be kept.
        """
        self._forget(round_)
        rows = metrics_file.read(self._folder.parent, round_)
        metrics_file.write(self._folder.parent, rows)
        return rows

    def _forget(self, round_):
        """Deletes checkpoints of later rounds, beside which Orbax keeps no other."""
        for step in self._manager.all_steps():
            if step > round_:
                self._manager.delete(step)

    def close(self) -> None:
        """Lets go of the folder."""
        with _quiet():
            self._manager.close()


def _alone():
    """Of several processes one keeps the folder, and waits for nobody."""
    own = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        active_processes={own}, primary_host=own, barrier_sync_key_prefix=f"of {own}"
    )


@contextlib.contextmanager
def _quiet():
    """Orbax tells us about devices that a restored array was not placed on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="orbax")
        warnings.filterwarnings("ignore", message=".*[Ss]harding.*")
        yield
