"""The rows of a run's ``metrics.jsonl``, one for each call of the training."""

import json
import pathlib
import sys

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
