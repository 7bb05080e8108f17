"""A privacy budget in a file: charged before a window leaves, across restarts."""

import contextlib
import fractions
import hashlib
import json
import math
import os
import pathlib
import time

WAIT_S = 1.0  # For another process that charges the same budget.
DAMAGE = (
    *(AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError),
)
MADE = b"made\n"  # In the lock: there was a budget; one that is gone was removed.


class Exhausted(ValueError):
    """A charge that the budget does not allow; nothing was taken from it."""


def _exact(value):
    """The decimal number that a float is written as."""
    return fractions.Fraction(repr(float(value)))


class Budget:
    """ε that all windows of one wearer may cost together, kept in a file.

    A class because the file is one. A charge is on the disk before it returns: a
    process that is killed has never sent what it did not charge. Processes that charge
    one file wait for one another. Beside the file a lock stays, named ``.lock``, that
    knows whether there was a budget. ε's add up as the decimals that they are written
    as: ten times 0.1 is 1.

    Args:
      path: of the file, made if there is none; its folder exists.
      epsilon: in all, > 0; of a file that is there, what it was made with.

    Raises:
      ValueError: for another ``epsilon`` than the file's, or if the file is damaged.
      FileNotFoundError: if the folder, or the file that was there, is missing.
      TimeoutError: if another process holds it for more than a second.

    Example:
      >>> import tempfile
      >>> budget = Budget(pathlib.Path(tempfile.mkdtemp()) / "budget.json", 1.0)
      >>> budget.charge(0.75)
      >>> budget.left
      0.25
      >>> budget.charge(0.75)
      Traceback (most recent call last):
      ...
      jaxanon.edge.budget.Exhausted: 0.75 is asked for, and 0.25 of 1 is left in ...
    """

    def __init__(self, path: str | os.PathLike, epsilon: float):
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ValueError(f"epsilon must be > 0 and finite, got {epsilon!r}.")
        self.path = pathlib.Path(path).resolve()
        self.epsilon = float(epsilon)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"{self.path.parent} is no folder that a budget could be in; make it."
            )
        with self._alone() as lock:
            if self.path.exists():
                self._read()
            elif os.pread(lock, len(MADE), 0) == MADE:
                raise FileNotFoundError(
                    f"{self.path} was there and is gone, and with it what was spent; "
                    f"restore it, or remove {self._lock.name} to begin a new budget."
                )
            else:
                self._write({})
            if os.pread(lock, len(MADE), 0) != MADE:
                os.pwrite(lock, MADE, 0)
                os.fsync(lock)

    @property
    def spent(self) -> float:
        """ε so far."""
        return float(_sum(self._read()))

    @property
    def left(self) -> float:
        """ε that may still be spent."""
        return float(_exact(self.epsilon) - _sum(self._read()))

    def charge(self, epsilon: float, count: int = 1) -> None:
        """Takes what ``count`` windows cost, before they leave.

        Args:
          epsilon: of each, > 0.
          count: of windows, >= 1.

        Raises:
          Exhausted: if less is left.
          ValueError: for another argument, or if the file is damaged.
          OSError: if the file cannot be written; nothing may leave.
          TimeoutError: if another process holds it for more than a second.
        """
        whole = isinstance(count, int) and count >= 1  # A fraction would be lost.
        if not (math.isfinite(epsilon) and epsilon > 0 and whole):
            raise ValueError(
                "epsilon must be > 0 and finite, and count whole and >= 1, got "
                f"{epsilon!r} and {count!r}."
            )
        with self._alone():
            releases = self._read()
            left = _exact(self.epsilon) - _sum(releases)
            cost = _exact(epsilon) * count
            if cost > left:
                raise Exhausted(
                    f"{float(cost):g} is asked for, and {float(left):g} of "
                    f"{self.epsilon:g} is left in {self.path}."
                )
            name = repr(float(epsilon))
            self._write(releases | {name: releases.get(name, 0) + count})

    @property
    def _lock(self):
        return self.path.with_name(f".{self.path.name}.lock")

    @contextlib.contextmanager
    def _alone(self):
        """Nobody else is in here for this file; the lock goes with its process."""
        import fcntl  # Not on Windows, where the rest of the runtime goes on.

        handle = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            until = time.monotonic() + WAIT_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise TimeoutError(
                            f"another process holds {self._lock}; end it."
                        ) from None
                    time.sleep(0.001)
            yield handle
        finally:
            os.close(handle)

    def _read(self):
        """How many windows of each ε were released."""
        try:
            told = json.loads(self.path.read_text(encoding="utf-8"))
            body = {key: told[key] for key in ("format", "epsilon", "releases")}
            if told["check"] != _check(body) or body["format"] != 1:
                raise ValueError("its check does not match")
            releases, epsilon = body["releases"], float(body["epsilon"])
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path} is gone, and with it what was spent; restore it."
            ) from None
        except DAMAGE as error:
            raise ValueError(
                f"{self.path} is no budget, or damaged ({error}); nothing is released "
                "from it. Restore it, or count its stream as spent."
            ) from error
        if epsilon != self.epsilon:
            raise ValueError(
                f"{self.path} was made with epsilon {epsilon:g}, not "
                f"{self.epsilon:g}; give that, or name another file for another wearer."
            )
        return releases

    def _write(self, releases):
        body = {"format": 1, "epsilon": self.epsilon, "releases": releases}
        partial = self.path.with_name(f".{self.path.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(json.dumps(body | {"check": _check(body)}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # The new name, too, outlives a power cut.
        finally:
            os.close(folder)


class _Unbounded:
    """A budget that allows everything and keeps no account."""

    def charge(self, epsilon: float, count: int = 1) -> None:
        """Nothing is taken."""

    def __repr__(self):
        return "UNBOUNDED"


UNBOUNDED = _Unbounded()


def _sum(releases):
    return sum((_exact(name) * n for name, n in releases.items()), fractions.Fraction())


def _check(body):
    """Of what a budget says: a bit that flipped is seen."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
