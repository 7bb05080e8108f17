"""Crash-safe checkpoints of a run, and the lock of its folder."""

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

MAX_TO_KEEP = 2  # Checkpoints; the older one is a fallback if the newer is damaged.


def architecture(state) -> list[str]:
    """Returns the names, types and shapes of a state's arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    name = jax.tree_util.keystr
    return [f"{name(path)}: {leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves]


@contextlib.contextmanager
def lock_folder(folder):
    """Locks the folder of a run or a sweep against other processes in a context.

    The operating system releases the lock when the process ends. A folder with other
    files is not locked, because ``claim`` rejects it.

    Args:
      folder: folder to lock, created if missing; None locks nothing.

    Raises:
      FileExistsError: if another process holds the lock.
    """
    if folder is None or _holds_other_files(pathlib.Path(folder)):
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
                    f"{folder} is on a file system without locks ({error.strerror}); "
                    "make sure that only one process writes it.",
                    stacklevel=3,
                )
            else:
                raise FileExistsError(
                    f"{folder} must be written by one process at a time, but another "
                    "process is writing it; wait for that process or end it, or choose "
                    "another folder."
                ) from None
        yield


def _holds_other_files(folder):
    if not folder.exists():
        return False
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"file"}
    ours = names & {"config.json", "sweep.json"}
    return not ours and any(not name.startswith(".") for name in names)


def _lock(handle):
    """Locks an open file without waiting; raises OSError if it is already locked."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class StoredLeaves(NamedTuple):
    """The part of a ``StateByLeaves`` that a checkpoint stores."""

    round: Any  # int32[]
    leaves: list  # non-empty leaves; Orbax rejects empty ones


def _by_leaves(state):
    return isinstance(state, StateByLeaves)


def _to_stored(state):
    """Returns the tree that a checkpoint stores for a state."""
    if not _by_leaves(state):
        return state
    leaves = [leaf for leaf in jax.tree.leaves(state) if leaf.size]
    return StoredLeaves(state.round, leaves)  # pyrefly: ignore


def _with_hyper(state, hyper):
    """Returns a state with other hyper-parameters."""
    if dataclasses.is_dataclass(state):
        return dataclasses.replace(state, hyper=hyper)  # pyrefly: ignore
    return state._replace(hyper=hyper)


def _from_stored(stored, like):
    """Inverts ``_to_stored``; restores empty arrays from ``like``."""
    if not _by_leaves(like):
        return stored
    leaves, structure = jax.tree.flatten(like)
    stored_leaves = iter(stored.leaves)
    empty = lambda leaf: np.zeros(leaf.shape, leaf.dtype)
    leaves = [next(stored_leaves) if leaf.size else empty(leaf) for leaf in leaves]
    return structure.unflatten(leaves)


def restore_state(folder, config: dict, like):
    """Restores the last checkpoint of a run.

    Args:
      folder: folder of the run.
      config: result of ``read_config``.
      like: state built from the run's settings, or its shapes.

    Raises:
      FileNotFoundError: if the run has no checkpoint yet.
      ValueError: if the run is damaged or its architecture differs from ``like``.
    """
    # Names that changed since a run was written are in another order.
    if sorted(architecture(like)) != sorted(config["architecture"]):
        raise ValueError(
            f"{folder} must hold the architecture that jaxanon {__version__} builds "
            f"from its settings, got another one, written by {config['version']}; open "
            "the run with that version or retrain it."
        )
    with contextlib.closing(Checkpoints(folder)) as saved:
        state = saved.restore(like)
    if state is None:
        raise FileNotFoundError(
            f"{folder} has no checkpoint yet; continue the run with --resume."
        )
    return state


def digest(state) -> np.ndarray:
    """Returns ``uint8[32]``, the SHA-256 digest of all arrays of a state."""
    sha = hashlib.sha256()
    for leaf in jax.tree.leaves(state):
        sha.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    return np.frombuffer(sha.digest(), np.uint8)


def fingerprint(arrays) -> str:
    """Returns 16 hexadecimal digits of ``digest``, to detect changed data."""
    return digest(arrays).tobytes().hex()[:16]


class Checkpoints:
    """Checkpoints of a run on disk; wraps an open Orbax manager."""

    def __init__(self, folder):
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._folder = pathlib.Path(folder).absolute() / "checkpoints"
        self._folder.mkdir(parents=True, exist_ok=True)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=MAX_TO_KEEP,
            create=False,
            enable_async_checkpointing=False,
            multiprocessing_options=_single_process(),
        )
        try:
            with _quiet():
                self._manager = ocp.CheckpointManager(self._folder, options=options)
        except RecursionError as error:
            raise ValueError(f"{self._folder} is damaged ({error}).") from error

    def save(self, state) -> None:
        """Saves ``state`` under its round; an interrupted save keeps the previous one.

        Deletes existing checkpoints of that round and later ones, which are damaged or
        obsolete.
        """
        host = jax.tree.map(np.asarray, _to_stored(state))
        tree = {"state": host, "digest": digest(host)}
        self._delete_after(int(host.round) - 1)
        with _quiet():
            self._manager.save(int(host.round), args=ocp.args.StandardSave(tree))

    def restore(self, like):
        """Returns the newest readable state, or None if no checkpoint exists.

        Args:
          like: state of the same architecture, arrays or ``jax.ShapeDtypeStruct``.

        Raises:
          ValueError: if checkpoints exist but none can be read.
        """
        problems = []
        rounds = sorted(self._manager.all_steps(), reverse=True)
        for round_ in rounds:
            try:
                return self._read(round_, like)
            except Exception as error:  # Orbax raises what its file formats raise.
                problems.append(f"round {round_}: {checks.first_line(error)[:120]}")
                warnings.warn(
                    f"the checkpoint of round {round_} in {self._folder} is damaged; "
                    "falling back to the previous one.",
                    stacklevel=2,
                )
        if problems:
            raise ValueError(
                f"all checkpoints in {self._folder} are damaged "
                f"({'; '.join(problems)}); retrain the run in another folder."
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
        shapes = jax.eval_shape(_to_stored, like) if _by_leaves(like) else like
        target = {"state": shapes, "digest": jax.ShapeDtypeStruct((32,), np.uint8)}
        with _quiet():
            tree = self._manager.restore(round_, args=ocp.args.StandardRestore(target))
        # Orbax's checksums cover only its index, not the arrays.
        if not np.array_equal(digest(tree["state"]), tree["digest"]):
            raise ValueError("the digest of its arrays does not match")
        # Orbax commits arrays to a device, which would cause a recompilation.
        state = _from_stored(tree["state"], like)
        return jax.tree.map(lambda x: jax.numpy.asarray(np.asarray(x)), state)

    def rounds(self) -> list[int]:
        """Returns the rounds with a checkpoint."""
        return sorted(self._manager.all_steps())

    def truncate_after(self, round_: int) -> list[dict]:
        """Deletes metrics and checkpoints after a round, from which training continues.

        Returns:
          The remaining rows of metrics.
        """
        self._delete_after(round_)
        rows = metrics_log.read(self._folder.parent, round_)
        metrics_log.write(self._folder.parent, rows)
        return rows

    def _delete_after(self, round_):
        """Deletes checkpoints of later rounds, which Orbax would not overwrite."""
        for step in self._manager.all_steps():
            if step > round_:
                self._manager.delete(step)

    def close(self) -> None:
        """Closes Orbax's manager."""
        with _quiet():
            self._manager.close()


def _single_process():
    """Returns options with which only this process writes, without barriers."""
    index = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        active_processes={index},
        primary_host=index,
        barrier_sync_key_prefix=f"of {index}",
    )


@contextlib.contextmanager
def _quiet():
    """Silences Orbax's warnings about the devices of restored arrays."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="orbax")
        warnings.filterwarnings("ignore", message=".*[Ss]harding.*")
        yield
