"""Rows of a run's ``metrics.jsonl``, and detection of transient loss spikes."""

import json
import pathlib
import sys
import warnings
from collections.abc import Iterable, Mapping

from jaxanon.datasets import writing


def read(folder, up_to: int) -> list[dict]:
    """Reads the rows of ``metrics.jsonl`` before the first damaged one.

    A row is damaged if it is truncated, is not an object, or lacks a round or numeric
    losses.

    Args:
      folder: folder of the run; the list is empty if the file does not exist.
      up_to: last round to return.
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
    """Returns whether a value is a number within float range; NaN counts."""
    if type(value) is int:
        return abs(value) <= sys.float_info.max
    return type(value) is float


def write(folder, rows) -> None:
    """Overwrites ``metrics.jsonl`` with rows."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    writing.write(pathlib.Path(folder) / "metrics.jsonl", text)


def append(folder, row) -> None:
    """Appends a row to ``metrics.jsonl``."""
    with (pathlib.Path(folder) / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


SPIKE_FACTOR = 1000.0  # Relative to the largest earlier value of a loss.


def remedy(hyper: Iterable[str]) -> str:
    """Returns the remedy for too large steps, given names of hyper-parameters.

    Example:
      >>> remedy(["alpha", "inner_learning_rate", "server_learning_rate"])
      'lower inner_learning_rate or server_learning_rate'
      >>> remedy([])
      'check the training windows'
    """
    lengths = [name for name in hyper if name.endswith(("learning_rate", "_rate"))]
    return f"lower {' or '.join(lengths)}" if lengths else "check the training windows"


def largest_spike(history: Iterable[Mapping]) -> tuple[str, int, float] | None:
    """Returns ``(loss name, round, value)`` of the largest loss spike, or None.

    A spike is an absolute value at least ``SPIKE_FACTOR`` times the largest earlier
    one, and at least ``SPIKE_FACTOR``, because losses near zero may grow. Values before
    a component starts to train are 0 and do not count.

    Args:
      history: rows of ``progress.row`` with finite losses.

    Example:
      >>> rows = [{"round": r, "losses": {"loss": x}} for r, x in ((1, 3), (2, 9e9))]
      >>> largest_spike(rows)
      ('loss', 2, 9000000000.0)
      >>> largest_spike(rows[:1]) is None
      True
    """
    largest: dict[str, float] = {}
    spike, factor = None, SPIKE_FACTOR
    for row in history:
        for name, value in row["losses"].items():
            before = largest.get(name, 0.0)
            if before and abs(value) >= factor * max(before, 1.0):
                spike = name, row["round"], value
                factor = abs(value) / max(before, 1)
            largest[name] = max(before, abs(value))
    return spike


def warn(history: Iterable[Mapping], hyper: Iterable[str], *, stacklevel: int) -> None:
    """Warns of the largest loss spike, if any, and names the remedy."""
    spike = largest_spike(history)
    if spike is None:
        return
    name, after, value = spike
    warnings.warn(
        f"the loss {name!r} spiked to {value:.1e} in the call that ended with round "
        f"{after}. Training recovered, but its result may be worse; {remedy(hyper)}.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
