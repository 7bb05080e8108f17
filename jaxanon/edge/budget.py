"""A privacy budget in a file: charged before a window leaves, across restarts."""

import contextlib
import fractions
import hashlib
import json
import math
import operator
import os
import pathlib
import time

DAMAGE = AttributeError, KeyError, OverflowError, RecursionError, TypeError
FIELDS = "format", "epsilon", "neighbours", "releases"  # That the check is of.
FORMAT = 2
EPSILON, ROUNDS = "epsilon", "rounds"  # Units: a file that names none is of ε.


def exact(value) -> fractions.Fraction:
    """The decimal number that a float is written as: 0.1 is a tenth, three are 0.3."""
    return fractions.Fraction(repr(float(value)))


def total(releases: dict[str, int]) -> fractions.Fraction:
    """ε of all releases together."""
    return sum((exact(name) * n for name, n in releases.items()), fractions.Fraction())


def check_epsilon(epsilon, name: str) -> None:
    """Raises ValueError unless ``epsilon`` is one that can be spent."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"{name} must be > 0 and finite, got {epsilon!r}.")


def body(
    epsilon, neighbours: str, releases: dict[str, int], unit: str = EPSILON
) -> dict:
    """What a file says, but for its check; ``epsilon`` counts units of ``unit``."""
    values = FORMAT, float(epsilon), neighbours, releases
    named = {} if unit == EPSILON else {"unit": unit}
    return dict(zip(FIELDS, values, strict=True)) | named


def as_text(told: dict) -> str:
    """A file that says ``told``, and a check by which a bit that flipped is seen."""
    return json.dumps(told | {"check": _digest(told)}, indent=1) + "\n"


def parsed(written: str) -> dict:
    """What ``as_text`` wrote.

    Raises:
      ValueError: for what no budget says, be its check right.

    Example:
      >>> parsed(as_text(body(1.0, "any two windows", {"0.25": 3})))["releases"]
      {'0.25': 3}
    """
    try:
        told = json.loads(written)
        if told.get("format") != FORMAT and "releases" in told:
            raise ValueError(f"of another version, format {told.get('format')}")
        found = {name: told[name] for name in FIELDS}
        if "unit" in told:
            found["unit"] = told["unit"]
        if told["check"] != _digest(found):
            raise ValueError("its check does not match")
        releases, epsilon = found["releases"], found["epsilon"]
        whole = all(type(n) is int and n >= 0 for n in releases.values())
        kinds = type(epsilon) is float and isinstance(found["neighbours"], str)
        kinds &= found.get("unit", ROUNDS) == ROUNDS
        for each in (epsilon, *map(float, releases)):
            check_epsilon(each, "epsilon")
        if not (whole and kinds and total(releases) <= exact(epsilon)):
            raise ValueError("its numbers are none of a budget")
    except DAMAGE as error:
        raise ValueError(str(error) or type(error).__name__) from error
    return found


def _digest(told):
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


MADE = b"made\n"  # In the lock: there was a budget; one that is gone was removed.
ANY = "any two windows"


class Exhausted(ValueError):
    """A charge that the budget does not allow; nothing was taken from it."""


class Budget:
    """ε that all windows of one stream may cost together, kept in a file.

    A class because the file is one. A charge is on the disk before it returns: a
    process that is killed has never sent what it did not charge. Processes that charge
    one file wait for one another. Beside the file a lock stays, named ``.lock``, that
    knows whether there was a budget. ε's add up as the decimals that they are written
    as: ten times 0.1 is 1.

    Args:
      path: of the file, made if there is none; its folder exists.
      epsilon: in all, > 0; of a file that is there, what it was made with, or None.
      neighbours: which windows are not told apart, in words, for what other releases
        protect does not add up; of a file that is there, what it was made with, or
        None; of a new one None stands for ``ANY``.
      wait_s: for other processes that charge the same file, in seconds.
      unit: "epsilon", or "rounds" of a federated training, whose ε do not add up:
        ``epsilon`` is the number of rounds then, and each charge is of 1.

    Raises:
      ValueError: for another ``unit`` or ``epsilon``, or other ``neighbours``, than the
        file's, or if the file is damaged.
      FileNotFoundError: if the folder, or the file that was there, is missing; if
        there is no file, and no ``epsilon`` to make one with.
      TimeoutError: if another process holds it for longer.

    Example:
      >>> import tempfile
      >>> budget = Budget(pathlib.Path(tempfile.mkdtemp()) / "budget.json", 1.0)
      >>> budget.charge(0.25, 3)
      0.25
      >>> budget.charge(0.25, 3)
      Traceback (most recent call last):
      ...
      jaxanon.edge.budget.Exhausted: 0.75 is asked for, and 0.25 of 1 is left in ...
    """

    def __init__(
        self,
        path: str | os.PathLike,
        epsilon: float | None = None,
        neighbours: str | None = None,
        *,
        wait_s: float = 1.0,
        unit: str = EPSILON,
    ):
        if epsilon is not None:
            check_epsilon(epsilon, "epsilon of a budget")
        if not wait_s >= 0:
            raise ValueError(f"wait_s must be >= 0, got {wait_s!r}.")
        self.path = pathlib.Path(path).resolve()
        self._wait_s, self._unit = wait_s, unit
        if self.path.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder; name a file.")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"{self.path.parent} is no folder that a budget could be in; make it."
            )
        if epsilon is None and not (self.path.exists() or self._lock.exists()):
            raise self._nothing()  # And no lock is left beside it.
        with self._alone() as lock:
            was_there = os.pread(lock, len(MADE), 0) == MADE
            if not self.path.exists():
                if was_there or epsilon is None:
                    raise self._nothing(was_there)
                hidden = ANY if neighbours is None else neighbours
                self._write(body(epsilon, hidden, {}, unit))
            told = self._told()
            if not was_there:
                os.pwrite(lock, MADE, 0)
                os.fsync(lock)
        self.epsilon: float = told["epsilon"]
        self.neighbours: str = told["neighbours"]
        if epsilon is not None and float(epsilon) != self.epsilon:
            raise ValueError(
                f"{self.path} is a budget of {self.epsilon:g} in all, not {epsilon:g}, "
                "and keeps that; leave the total out (--budget-total, on a device "
                "--epsilon), or name another file for another stream."
            )
        if neighbours is not None:
            self.check_neighbours(neighbours)

    def check_neighbours(self, neighbours: str) -> None:
        """Raises ValueError for releases that protect others than the budget says."""
        if neighbours != self.neighbours:
            raise ValueError(
                f"{self.path} is a budget of {self.neighbours}, and these releases "
                f"hide {neighbours}: what they cost does not add up. Keep another file."
            )

    @property
    def releases(self) -> dict[str, int]:
        """How many windows left, by the ε of each, as it is written."""
        return self._own()["releases"]

    @property
    def spent(self) -> float:
        """ε so far."""
        return float(total(self.releases))

    @property
    def left(self) -> float:
        """ε that may still be spent."""
        return float(self._left(self.releases))

    def check(self, epsilon: float, count: int = 1) -> None:
        """Raises what ``charge`` would, and takes nothing.

        What it lets pass another process may take meanwhile.
        """
        self._after(self._own()["releases"], epsilon, count)

    def charge(self, epsilon: float, count: int = 1) -> float:
        """Takes what ``count`` windows cost, before they leave, or nothing at all.

        Args:
          epsilon: of each, > 0.
          count: of windows, >= 0.

        Returns:
          What is left then.

        Raises:
          Exhausted: if less is left.
          ValueError: for another argument, or if the file is damaged, or is another
            budget by now.
          OSError: if the file cannot be written; nothing may leave.
          TimeoutError: if another process holds it for too long.
        """
        with self._alone():
            releases = self._after(self._own()["releases"], epsilon, count)
            own = self.epsilon, self.neighbours, releases, self._unit
            self._write(body(*own))
        return float(self._left(releases))

    def _left(self, releases):
        """What is left after these, exactly."""
        return exact(self.epsilon) - total(releases)

    def _after(self, releases, epsilon, count):
        """What was released with ``count`` windows more, which are not too many."""
        check_epsilon(epsilon, "epsilon")
        whole = operator.index(count) if hasattr(count, "__index__") else -1
        if whole < 0:  # A fraction would be lost.
            raise ValueError(f"count must be whole and >= 0, got {count!r}.")
        each, left = exact(epsilon), self._left(releases)
        if each * whole > left:
            raise Exhausted(
                f"{float(each * whole):g} is asked for, and {float(left):g} of "
                f"{self.epsilon:g} is left in {self.path}; give a smaller epsilon, or "
                f"{left // each} windows at most."
            )
        name = repr(float(epsilon))
        return releases | {name: releases.get(name, 0) + whole}

    def _own(self):
        """What the file says, if it is still the budget that was opened."""
        told = self._told()
        if (told["epsilon"], told["neighbours"]) != (self.epsilon, self.neighbours):
            raise ValueError(
                f"{self.path} is another budget by now, of {told['epsilon']:g} in all "
                f"and {told['neighbours']}; open it anew."
            )
        return told

    def _nothing(self, was_there=False):
        if was_there:
            return FileNotFoundError(
                f"{self.path} was there and is gone, and with it what was spent; "
                f"restore it, or remove {self._lock.name} to begin a new budget."
            )
        return FileNotFoundError(
            f"{self.path} holds no budget; make one by saying how large it shall be: "
            "Budget(path, epsilon), --budget-total, on a device --epsilon."
        )

    @property
    def _lock(self):
        return self.path.with_name(f".{self.path.name}.lock")

    @contextlib.contextmanager
    def _alone(self):
        """Nobody else is in here for this file; the lock goes with its process."""
        handle = self._locked()
        try:
            yield handle
        finally:
            os.close(handle)

    def _locked(self):
        import fcntl  # Not on Windows, where the rest of the runtime goes on.

        until = time.monotonic() + self._wait_s
        while True:
            handle = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # One that was removed meanwhile keeps nobody else out.
                if os.path.samestat(os.fstat(handle), self._lock.stat()):
                    return handle
            except (BlockingIOError, FileNotFoundError):
                pass
            os.close(handle)
            if time.monotonic() > until:
                raise TimeoutError(f"another process holds {self._lock}; end it.")
            time.sleep(0.001)

    def _told(self):
        """What the file says, as ``body`` has it."""
        try:
            told = parsed(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path} is gone, and with it what was spent; restore it."
            ) from None
        except ValueError as error:
            raise ValueError(
                f"{self.path} is no budget, or damaged ({error}); nothing is released "
                "from it. Restore it, or count its stream as spent."
            ) from error
        if (unit := told.get("unit", EPSILON)) != self._unit:
            raise ValueError(
                f"{self.path} must be a budget of {self._unit}, got one of {unit}; "
                "name another file."
            )
        return told

    def _write(self, told):
        partial = self.path.with_name(f".{self.path.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(as_text(told))
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

    def check_neighbours(self, neighbours: str) -> None:
        """All are the same to it."""

    def charge(self, epsilon: float, count: int = 1) -> float:
        """Nothing is taken."""
        return math.inf

    __repr__ = lambda self: "UNBOUNDED"


UNBOUNDED = _Unbounded()
