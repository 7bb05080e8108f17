"""The rows of a run's ``metrics.jsonl``, and losses that leap and come back."""

import json
import pathlib
import sys
import warnings
from collections.abc import Iterable, Mapping

from jaxanon.datasets import writing


def read(folder, up_to: int) -> list[dict]:
    """The rows of ``metrics.jsonl``.

    The first that is damaged ends the list, and none that comes after it is read: one
    that is half written, is no object, or lacks a round or losses that are numbers.

    Args:
      folder: of the run; without the file there are no rows.
      up_to: the last round that is asked for.
    """
    path, rows = pathlib.Path(folder) / "metrics.jsonl", []
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
            except (RecursionError, ValueError):
                break
            if not _is_row(row):
                break
            if row["round"] <= up_to:
                rows.append(row)
    return rows


def _is_row(row):
    if not isinstance(row, dict) or type(row.get("round")) is not int:
        return False
    losses = row.get("losses")
    return isinstance(losses, dict) and all(map(_is_number, losses.values()))


def _is_number(value):
    """Whether it is one, which a float can hold; NaN is."""
    if type(value) is int:
        return abs(value) <= sys.float_info.max
    return type(value) is float


def write(folder, rows) -> None:
    """Replaces ``metrics.jsonl`` by these rows."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    writing.write(pathlib.Path(folder) / "metrics.jsonl", text)


def append(folder, row) -> None:
    """Adds one line to ``metrics.jsonl``."""
    with (pathlib.Path(folder) / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


LEAP = 1000.0  # Times all that a loss was before.


def remedy(hyper: Iterable[str]) -> str:
    """What to do where steps were too long, given the names of hyper-parameters.

    Example:
      >>> remedy(["alpha", "inner_learning_rate", "server_learning_rate"])
      'lower inner_learning_rate or server_learning_rate'
      >>> remedy([])
      'look at its windows'
    """
    lengths = [name for name in hyper if name.endswith(("learning_rate", "_rate"))]
    return f"lower {' or '.join(lengths)}" if lengths else "look at its windows"


def furthest(history: Iterable[Mapping]) -> tuple[str, int, float] | None:
    """The loss that leapt furthest, the round and the value; None where none leapt.

    A loss leaps where it is ``LEAP`` times as large, sign aside, as it was in any call
    before, and as 1: losses near zero may grow, and what is zero has yet to begin.

    Args:
      history: rows of ``progress.row``, of finite losses.

    Example:
      >>> rows = [{"round": r, "losses": {"loss": x}} for r, x in ((1, 3), (2, 9e9))]
      >>> furthest(rows)
      ('loss', 2, 9000000000.0)
      >>> furthest(rows[:1]) is None
      True
    """
    most: dict[str, float] = {}
    found, times = None, LEAP
    for row in history:
        for name, value in row["losses"].items():
            before = most.get(name, 0.0)
            if before and abs(value) >= times * max(before, 1.0):
                found, times = (name, row["round"], value), abs(value) / max(before, 1)
            most[name] = max(before, abs(value))
    return found


def warn(history: Iterable[Mapping], hyper: Iterable[str], *, stacklevel: int) -> None:
    """Warns of the loss that leapt furthest, if one did, and names the remedy."""
    leapt = furthest(history)
    if leapt is None:
        return
    name, after, value = leapt
    warnings.warn(
        f"the loss {name!r} leapt to {value:.1e} in the call that ended with round "
        f"{after}. Training went on, and may have ended worse than it need; "
        f"{remedy(hyper)}.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
