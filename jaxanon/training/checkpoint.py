"""Checkpoints of a run that survive a kill, and the lock of its folder."""

import contextlib
import dataclasses
import errno
import hashlib
import logging
import pathlib
import sys
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp

from jaxanon import __version__
from jaxanon.core import aliases, checks
from jaxanon.core.method import StateByLeaves
from jaxanon.training import metrics_log

LOCK = ".lock"  # Held by the process that writes a folder; never deleted.

KEPT = 2  # Checkpoints; the older one serves when the newer turns out damaged.


def architecture(state) -> list[str]:
    """The names, types and shapes of a state's arrays, to tell architectures apart."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    name = jax.tree_util.keystr
    return [f"{name(path)}: {leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves]


@contextlib.contextmanager
def alone(folder):
    """Keeps other processes from writing a run's or a sweep's folder meanwhile.

    The operating system releases the lock when the process ends, however it ends. A
    folder that holds something else is left as it is, for ``claim`` refuses it.

    Args:
      folder: made if it does not exist; None holds nothing.

    Raises:
      FileExistsError: if another process holds the folder.
    """
    if folder is None or _holds_something_else(pathlib.Path(folder)):
        yield
        return
    path = pathlib.Path(folder, LOCK)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            _lock(file.fileno())
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                warnings.warn(
                    f"{folder} lies where files cannot be locked ({error.strerror}); "
                    "let no second process write it.",
                    stacklevel=3,
                )
            else:
                raise FileExistsError(
                    f"{folder} must be written by one process at a time, and another "
                    "one writes it now; wait for that process or end it, or choose "
                    "another folder."
                ) from None
        yield


def _holds_something_else(folder):
    if not folder.exists():
        return False
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"file"}
    ours = names & {"config.json", "sweep.json"}
    return not ours and any(not name.startswith(".") for name in names)


def _lock(handle):
    """Locks an open file without waiting; OSError if another process has it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Kept(NamedTuple):
    """What a checkpoint holds of a ``StateByLeaves``."""

    round: Any  # int32[]
    leaves: list  # those of a size; Orbax takes none without


def _by_leaves(state):
    return isinstance(state, StateByLeaves)


def _kept(state):
    """What a checkpoint holds of a state."""
    if not _by_leaves(state):
        return state
    leaves = [leaf for leaf in jax.tree.leaves(state) if leaf.size]
    return Kept(state.round, leaves)  # pyrefly: ignore


def _with_hyper(state, hyper):
    """Returns a state with other hyper-parameters."""
    if dataclasses.is_dataclass(state):
        return dataclasses.replace(state, hyper=hyper)  # pyrefly: ignore
    return state._replace(hyper=hyper)


def _state_of(kept, like):
    """The state that ``_kept`` was told, with arrays without a size again."""
    if not _by_leaves(like):
        return kept
    leaves, structure = jax.tree.flatten(like)
    found = iter(kept.leaves)
    empty = lambda leaf: np.zeros(leaf.shape, leaf.dtype)
    leaves = [next(found) if leaf.size else empty(leaf) for leaf in leaves]
    return structure.unflatten(leaves)


def restored(folder, config: dict, like):
    """The last checkpoint of a run, of an architecture that is built here.

    Args:
      folder: of the run.
      config: of ``read_config``.
      like: a state that the run's settings make, or its shapes.

    Raises:
      FileNotFoundError: if there is no checkpoint yet.
      ValueError: if the run is of another architecture than ``like``, or damaged.
    """
    # Names that changed since a run was written are in another order.
    if sorted(architecture(like)) != sorted(config["architecture"]):
        raise ValueError(
            f"{folder} holds a checkpoint of another architecture than its settings "
            f"make in jaxanon {__version__} (it was written by {config['version']}); "
            "open it with that version or train it anew."
        )
    with contextlib.closing(Checkpoints(folder)) as saved:
        found = saved.restore(like)
    if found is None:
        raise FileNotFoundError(
            f"{folder} has no checkpoint yet; go on with the run by --resume."
        )
    return found


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
        host = jax.tree.map(np.asarray, _kept(state))
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
        saved_as = self._saved_names(round_, like)
        if not saved_as:
            return self._read_as(round_, like)
        old = {saved_as.get(name, name): leaf for name, leaf in like.hyper.items()}
        state = self._read_as(round_, _with_hyper(like, old))
        hyper = {name: state.hyper[saved_as.get(name, name)] for name in like.hyper}
        return _with_hyper(state, hyper)

    def _saved_names(self, round_, like) -> dict[str, str]:
        """Returns the names of 0.1 in a checkpoint, by the hyper-parameter's name."""
        if _by_leaves(like) or not like.hyper:
            return {}
        path = self._folder / str(round_) / "default"
        with _quiet(), ocp.StandardCheckpointer() as reader:
            saved = reader.metadata(path).item_metadata["state"]["hyper"]
        names = {aliases.setting_name(name, like.hyper): name for name in saved}
        return {new: old for new, old in names.items() if new != old}

    def _read_as(self, round_, like):
        shapes = jax.eval_shape(_kept, like) if _by_leaves(like) else like
        wanted = {"state": shapes, "digest": jax.ShapeDtypeStruct((32,), np.uint8)}
        with _quiet():
            found = self._manager.restore(round_, args=ocp.args.StandardRestore(wanted))
        # Orbax's own checksums cover its index and not the numbers.
        if not np.array_equal(digest(found["state"]), found["digest"]):
            raise ValueError("its numbers are not those that were saved")
        # Orbax's arrays are bound to a device, for which programs compile once more.
        state = _state_of(found["state"], like)
        return jax.tree.map(lambda x: jax.numpy.asarray(np.asarray(x)), state)

    def rounds(self) -> list[int]:
        """Rounds of which there is a checkpoint."""
        return sorted(self._manager.all_steps())

    def go_on(self, round_: int) -> list[dict]:
        """The run's metrics up to a round, after which it goes on.

        Later ones are deleted, and checkpoints that could not be read, so that their
        rounds can be kept.
        """
        self._forget(round_)
        rows = metrics_log.read(self._folder.parent, round_)
        metrics_log.write(self._folder.parent, rows)
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
