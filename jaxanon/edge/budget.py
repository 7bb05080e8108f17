"""Privacy budgets in files that survive restarts and crashes."""

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
FIELDS = "format", "epsilon", "neighbours", "releases"  # Covered by the checksum.
FORMAT = 2
EPSILON, ROUNDS = "epsilon", "rounds"  # Units; a file without one has epsilon.


def exact(value) -> fractions.Fraction:
    """Returns a float's decimal repr as a fraction, so 0.1 is exactly a tenth."""
    return fractions.Fraction(repr(float(value)))


def total(releases: dict[str, int]) -> fractions.Fraction:
    """Returns the total ε of all releases."""
    return sum((exact(name) * n for name, n in releases.items()), fractions.Fraction())


def check_epsilon(epsilon, name: str) -> None:
    """Raises ValueError unless ``epsilon`` is finite and > 0."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"{name} must be > 0 and finite, got {epsilon!r}.")


def body(
    epsilon, neighbours: str, releases: dict[str, int], unit: str = EPSILON
) -> dict:
    """Returns a budget file's contents without checksum; ``epsilon`` is in ``unit``."""
    values = FORMAT, float(epsilon), neighbours, releases
    named = {} if unit == EPSILON else {"unit": unit}
    return dict(zip(FIELDS, values, strict=True)) | named


def as_text(contents: dict) -> str:
    """Returns the text of a budget file, with a checksum that detects bit flips."""
    return json.dumps(contents | {"check": _digest(contents)}, indent=1) + "\n"


def parsed(written: str) -> dict:
    """Parses the text of ``as_text``, also of version 0.1.

    Raises:
      ValueError: if the checksum or the contents are invalid.

    Example:
      >>> parsed(as_text(body(1.0, "any two windows", {"0.25": 3})))["releases"]
      {'0.25': 3}
    """
    try:
        contents = json.loads(written)
        if contents.get("format") != FORMAT and "releases" in contents:
            raise ValueError(f"of another version, format {contents.get('format')}")
        found = {name: contents[name] for name in FIELDS}
        if "unit" in contents:
            found["unit"] = contents["unit"]
        if contents["check"] != _digest(found):
            raise ValueError("the checksum does not match")
        releases, epsilon = found["releases"], found["epsilon"]
        whole = all(type(n) is int and n >= 0 for n in releases.values())
        kinds = type(epsilon) is float and isinstance(found["neighbours"], str)
        kinds &= found.get("unit", ROUNDS) == ROUNDS
        for each in (epsilon, *map(float, releases)):
            check_epsilon(each, "epsilon")
        if not (whole and kinds and total(releases) <= exact(epsilon)):
            raise ValueError("the numbers are not those of a budget")
    except DAMAGE as error:
        raise ValueError(str(error) or type(error).__name__) from error
    return found | {"neighbours": _current_text(found["neighbours"])}


def _current_text(neighbours: str) -> str:
    """Returns how this version describes the neighbours of a budget of 0.1."""
    named = neighbours.removeprefix("windows that differ along what tells ")
    if named == neighbours:
        return neighbours
    return f"windows that differ only in predictors of {named}"


def _digest(contents):
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


MADE = b"made\n"  # Marks the lock once a budget exists, to detect its deletion.
ANY = "any two windows"


class Exhausted(ValueError):
    """A charge that exceeds the budget; nothing was charged."""


class Budget:
    """Privacy budget of all windows of one stream, kept in a file.

    A charge is on disk before ``charge`` returns, so a killed process has never
    released an uncharged window. Concurrent processes wait for one another. The file
    ``.lock`` next to it stays and records that a budget existed. Values of ε are added
    as decimals: ten times 0.1 is 1.

    Args:
      path: path of the file, created if missing, in an existing folder.
      epsilon: total ε, > 0. For an existing file, None or the value in the file.
      neighbours: description of the windows that the noise makes indistinguishable.
        Releases for different ones do not add up. None means the value in the file, or
        ``ANY`` for a new file.
      wait_s: seconds to wait for other processes that charge the same file.
      unit: "epsilon" or "rounds". With "rounds", for a federated training whose ε does
        not add up, ``epsilon`` is the number of rounds, and each charge is 1.


    Raises:
      ValueError: if ``unit``, ``epsilon`` or ``neighbours`` differ from the file's, or
        the file is damaged.
      FileNotFoundError: if the folder or a former budget is missing, or there is no
        budget and no ``epsilon`` to create one.
      TimeoutError: if another process holds the file for longer than ``wait_s``.

    Example:
      >>> import tempfile
      >>> budget = Budget(pathlib.Path(tempfile.mkdtemp()) / "budget.json", 1.0)
      >>> budget.charge(0.25, 3)
      0.25
      >>> budget.charge(0.25, 3)
      Traceback (most recent call last):
      ...
      jaxanon.edge.budget.Exhausted: charge must be at most 0.25, which is left of 1 ...
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
                f"the budget's folder {self.path.parent} does not exist; create it."
            )
        if epsilon is None and not (self.path.exists() or self._lock.exists()):
            raise self._missing()  # Before a lock file is created.
        with self._locked() as lock:
            was_there = os.pread(lock, len(MADE), 0) == MADE
            if not self.path.exists():
                if was_there or epsilon is None:
                    raise self._missing(was_there)
                hidden = ANY if neighbours is None else _current_text(neighbours)
                self._write(body(epsilon, hidden, {}, unit))
            contents = self._read()
            if not was_there:
                os.pwrite(lock, MADE, 0)
                os.fsync(lock)
        self.epsilon: float = contents["epsilon"]
        self.neighbours: str = contents["neighbours"]
        if epsilon is not None and float(epsilon) != self.epsilon:
            raise ValueError(
                f"epsilon of {self.path} must be {self.epsilon:g}, as in the file, got "
                f"{epsilon:g}; leave the total out (--budget-total, on a device "
                "--epsilon), or use another file for another stream."
            )
        if neighbours is not None:
            self.check_neighbours(neighbours)

    def check_neighbours(self, neighbours: str) -> None:
        """Raises ValueError if releases protect other windows than the budget's."""
        if _current_text(neighbours) != self.neighbours:
            raise ValueError(
                f"releases from {self.path} must hide {self.neighbours}, got "
                f"{neighbours}: their epsilons do not add up. Use another file."
            )

    @property
    def releases(self) -> dict[str, int]:
        """Number of released windows by the ε of each, as a decimal."""
        return self._current()["releases"]

    @property
    def spent(self) -> float:
        """Spent ε."""
        return float(total(self.releases))

    @property
    def left(self) -> float:
        """Remaining ε."""
        return float(self._left(self.releases))

    def check(self, epsilon: float, count: int = 1) -> None:
        """Raises the errors of ``charge`` without charging.

        Another process may still charge before a subsequent ``charge``.
        """
        self._after(self._current()["releases"], epsilon, count)

    def charge(self, epsilon: float, count: int = 1) -> float:
        """Charges ``count`` windows before their release, all or none.

        Args:
          epsilon: ε of each window, > 0.
          count: number of windows, >= 0.

        Returns:
          The remaining ε.

        Raises:
          Exhausted: if the remaining ε is too small.
          ValueError: if an argument is invalid, or the file is damaged or was replaced.
          OSError: if the file cannot be written; then nothing may be released.
          TimeoutError: if another process holds the file for too long.
        """
        with self._locked():
            releases = self._after(self._current()["releases"], epsilon, count)
            self._write(body(self.epsilon, self.neighbours, releases, self._unit))
        return float(self._left(releases))

    def _left(self, releases):
        """Returns the exact remaining ε."""
        return exact(self.epsilon) - total(releases)

    def _after(self, releases, epsilon, count):
        """Returns the releases plus ``count``; raises if they exceed the budget."""
        check_epsilon(epsilon, "epsilon")
        whole = operator.index(count) if hasattr(count, "__index__") else -1
        if whole < 0:  # A fraction would be truncated.
            raise ValueError(f"count must be an integer >= 0, got {count!r}.")
        each, left = exact(epsilon), self._left(releases)
        if each * whole > left:
            raise Exhausted(
                f"charge must be at most {float(left):g}, which is left of "
                f"{self.epsilon:g} in {self.path}, got {float(each * whole):g}; use a "
                f"smaller epsilon, or at most {left // each} windows."
            )
        name = repr(float(epsilon))
        return releases | {name: releases.get(name, 0) + whole}

    def _current(self):
        """Returns the file's contents; raises if it is another budget by now."""
        contents = self._read()
        found = contents["epsilon"], contents["neighbours"]
        if found != (self.epsilon, self.neighbours):
            raise ValueError(
                f"{self.path} was replaced by another budget, of {found[0]:g} for "
                f"{found[1]}; open it again."
            )
        return contents

    def _missing(self, was_there=False):
        if was_there:
            return FileNotFoundError(
                f"{self.path} was deleted, so its spent budget is unknown; restore it, "
                f"or remove {self._lock.name} to begin a new budget."
            )
        return FileNotFoundError(
            f"{self.path} holds no budget; give its size to create one: "
            "Budget(path, epsilon), --budget-total, on a device --epsilon."
        )

    @property
    def _lock(self):
        return self.path.with_name(f".{self.path.name}.lock")

    @contextlib.contextmanager
    def _locked(self):
        """Holds the exclusive lock, which also ends with the process."""
        handle = self._acquire()
        try:
            yield handle
        finally:
            os.close(handle)

    def _acquire(self):
        import fcntl  # Not on Windows, where everything else works.

        until = time.monotonic() + self._wait_s
        while True:
            handle = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A lock file that was deleted meanwhile does not exclude others.
                if os.path.samestat(os.fstat(handle), self._lock.stat()):
                    return handle
            except (BlockingIOError, FileNotFoundError):
                pass
            os.close(handle)
            if time.monotonic() > until:
                raise TimeoutError(f"another process holds {self._lock}; end it.")
            time.sleep(0.001)

    def _read(self):
        """Returns the contents of the file, as ``body``."""
        try:
            contents = parsed(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path} was deleted, so its spent budget is unknown; restore it."
            ) from None
        except ValueError as error:
            raise ValueError(
                f"{self.path} is not a budget or is damaged ({error}), so nothing can "
                "be released; restore it, or treat its stream as spent."
            ) from error
        if (unit := contents.get("unit", EPSILON)) != self._unit:
            raise ValueError(
                f"{self.path} must be a budget of {self._unit}, got one of {unit}; "
                "use another file."
            )
        return contents

    def _write(self, contents):
        partial = self.path.with_name(f".{self.path.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(as_text(contents))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # Makes the rename durable.
        finally:
            os.close(folder)


class _Unbounded:
    """A budget that allows all charges and keeps no account."""

    def check_neighbours(self, neighbours: str) -> None:
        """Accepts all."""

    def charge(self, epsilon: float, count: int = 1) -> float:
        """Charges nothing."""
        return math.inf

    __repr__ = lambda self: "UNBOUNDED"


UNBOUNDED = _Unbounded()
