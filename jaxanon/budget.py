"""A privacy budget in a file: what is left of it, across calls and kills."""

import contextlib
import fcntl
import fractions
import json
import os
import pathlib
from typing import NamedTuple

from jaxanon.datasets import writing
from jaxanon.kernels.checks import whole
from jaxanon.privacy import sequential
from jaxanon.privacy.composition import positive

ANY = "any two windows"


class Spent(ValueError):
    """A release that the budget does not allow; nothing was taken from it."""


class Ledger(NamedTuple):
    """A budget and what was taken from it."""

    total: float  # ε that a stream may cost, by sequential composition
    releases: dict[float, int]  # windows that left, by the ε of each
    neighbours: str = ANY  # what nobody tells apart; ε of others do not add up with it

    @property
    def spent(self) -> float:
        """ε of the whole stream so far."""
        return float(_exact(self.releases))

    @property
    def left(self) -> float:
        """ε that may still be spent, 0 at least."""
        return max(0.0, self.total - self.spent)


def create(path: str | os.PathLike, total: float, neighbours: str = ANY) -> Ledger:
    """Writes a new budget of ``total``.

    Args:
      path: of the file; its folder exists, it does not.
      total: ε > 0 that all windows of one stream may cost together.
      neighbours: which windows are not told apart, in words; releases that protect
        others are refused.

    Returns:
      ``Ledger``.

    Raises:
      ValueError: if ``total`` is not > 0 and finite.
      FileExistsError: if there is a file already; what was spent stays spent.
      FileNotFoundError: if there is no such folder.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "budget.json"
      >>> create(path, 2.0).left
      2.0
    """
    positive(total=total)
    path = pathlib.Path(path).resolve()
    _check_folder(path)
    with _alone(path):
        if path.exists():
            raise FileExistsError(
                f"{path} holds a budget already; spend from it, or name another file "
                "for another stream."
            )
        ledger = Ledger(float(total), {}, neighbours)
        _write(path, ledger)
    return ledger


def read(path: str | os.PathLike) -> Ledger:
    """The budget in a file.

    Args:
      path: of ``create``.

    Raises:
      FileNotFoundError: if there is none.
      ValueError: if the file holds anything else.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} holds no budget; make one with --budget-total, in Python with "
            "jaxanon.budget.create."
        )
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        releases = {float(epsilon): n for epsilon, n in told["releases"].items()}
        ledger = Ledger(told["total"], releases, told["neighbours"])
        positive(total=ledger.total)
        sequential(ledger.releases)
    except (
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path} is no budget, or damaged ({error}); nothing is released from it. "
            "Restore it, or count its stream as spent."
        ) from error
    return ledger


def spend(
    path: str | os.PathLike, epsilon: float, count: int = 1, neighbours: str = ANY
) -> Ledger:
    """Takes ``count`` windows of ``epsilon`` each from a budget, or nothing at all.

    Call it before the windows leave: a process that is killed in between has spent
    what it did not send, and never sent what it did not spend. Processes that spend
    from one file wait for one another.

    Args:
      path: of ``create``.
      epsilon: of each window, > 0.
      count: windows, at least 0.
      neighbours: what these releases protect, as the budget says it.

    Returns:
      ``Ledger`` after it.

    Raises:
      Spent: if less than that is left.
      FileNotFoundError, ValueError: as ``read``; ValueError also for ``epsilon``, a
        negative ``count``, or other ``neighbours``.
      TypeError: for a ``count`` that is no whole number.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "budget.json"
      >>> made = create(path, 2.0)
      >>> spend(path, 0.5, 3).left
      0.5
      >>> spend(path, 0.25, 3)
      Traceback (most recent call last):
      ...
      jaxanon.budget.Spent: 3 windows at epsilon 0.25 ... 2 windows at most.
    """
    path = pathlib.Path(path).resolve()
    positive(epsilon=epsilon)
    count = whole("count", count, least=0)
    read(path)  # Before a lock is made beside what is not there.
    with _alone(path):
        before = read(path)
        if neighbours != before.neighbours:
            raise ValueError(
                f"{path} is a budget of {before.neighbours}, and these releases hide "
                f"{neighbours}: what they cost does not add up. Keep another file."
            )
        counts = dict(before.releases)
        counts[float(epsilon)] = counts.get(float(epsilon), 0) + count
        after = before._replace(releases=counts)
        total, each = _decimal(before.total), _decimal(epsilon)
        if _exact(counts) > total:
            left = before.left
            fits = max(0, (total - _exact(before.releases)) // each)
            raise Spent(
                f"{count} windows at epsilon {epsilon:g} need {count * epsilon:g}, and "
                f"{left:g} of {before.total:g} is left in {path}; give a smaller "
                f"epsilon, or {fits} windows at most."
            )
        _write(path, after)
    return after


def _decimal(value):
    """The number that was written: 0.1 is a tenth, and three are 0.3."""
    return fractions.Fraction(repr(float(value)))


def _exact(releases):
    each = (_decimal(epsilon) * count for epsilon, count in releases.items())
    return sum(each, fractions.Fraction())


def _write(path, ledger):
    releases = {repr(epsilon): count for epsilon, count in ledger.releases.items()}
    told = {"total": ledger.total, "releases": releases}
    told |= {"neighbours": ledger.neighbours}
    writing.write(path, json.dumps(told, indent=2) + "\n")


def _check_folder(path):
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path.parent} is no folder that a budget could be written to; make it."
        )


@contextlib.contextmanager
def _alone(path):
    """Nobody else is in here for the same file; the lock goes with its process."""
    handle = os.open(
        path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600
    )
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
