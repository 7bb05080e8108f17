"""Text files with a line of names and a row for each sample."""

import array
import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.recordings import csv_rows

MOST = float(np.finfo(np.float32).max)


class Table(NamedTuple):
    """The columns of a file that were asked for."""

    path: Path
    rows: np.ndarray  # float64[rows, channels], NaN where a cell is empty
    labels: list[tuple[str, ...]]  # of each row; the last says whose it is
    whole: np.ndarray  # bool[rows], whether it lacks nothing
    times: np.ndarray | None  # float64[rows], s


def read(path, channels, labels, subject, time) -> Table:
    """The columns of one file; warns of rows that lack something.

    Raises:
      FileNotFoundError, ValueError: as ``csv_rows.records``, and for a cell that is no
        number.
    """
    columns = (*channels, *(() if time is None else (time,)))
    texts = (*labels, *(() if subject is None else (subject,)))
    stem = (path.stem,) if subject is None else ()
    numbers, named, whole = array.array("d"), [], []
    # What is told is kept once, however often it comes.
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    first = None
    for line, row in csv_rows.records(path, (*columns, *texts)):
        own = [_number(path, line, name, row[name]) for name in columns]
        told = (*(row[name] for name in texts), *stem)
        numbers.extend(own)
        named.append(seen.setdefault(told, told))
        whole.append(all(told) and not any(map(math.isnan, own)))
        if not whole[-1] and first is None:
            first = line
    if first is not None:
        warnings.warn(
            f"{path}: {whole.count(False)} of {len(whole)} rows lack a number or a "
            f"label, the first in line {first}; they are left out, and no window "
            "reaches over them.",
            UserWarning,
            stacklevel=3,
        )
    rows = np.array(numbers, np.float64).reshape(len(named), len(columns))
    order = np.arange(len(named))
    if time is not None and subject is not None:  # Rows of several may alternate.
        _, person = np.unique([told[-1] for told in named], return_inverse=True)
        order = np.argsort(person, kind="stable")
    times = None if time is None else rows[order, -1]
    return Table(
        path,
        rows[order, : len(channels)],
        [named[place] for place in order],
        np.array(whole, bool)[order],
        times,
    )


def _number(path, line, name, cell):
    """A cell as a number that float32 can hold; NaN where it lacks one."""
    try:
        value = csv_rows.number(cell)
    except ValueError:
        value = math.inf
    if abs(value) > MOST:
        raise ValueError(
            f"{path}, line {line}: {name} must be a number with a point, or empty, "
            f"got {cell!r}."
        )
    return value
