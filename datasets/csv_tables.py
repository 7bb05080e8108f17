"""Reader of selected columns of CSV files."""

import array
import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.recordings import csv_rows

MAX_VALUE = float(np.finfo(np.float32).max)


class Table(NamedTuple):
    """Selected columns of a CSV file."""

    path: Path
    rows: np.ndarray  # float64[rows, channels], NaN for missing values
    labels: list[tuple[str, ...]]  # labels of each row; the last is the subject
    complete: np.ndarray  # bool[rows], whether no value is missing
    times: np.ndarray | None  # float64[rows], s


def read(path, channels, labels, subject, time) -> Table:
    """Reads columns of a file; warns of rows with missing values.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if the file is malformed, or a cell is not a number.
    """
    columns = (*channels, *(() if time is None else (time,)))
    texts = (*labels, *(() if subject is None else (subject,)))
    stem = (path.stem,) if subject is None else ()
    numbers, row_labels, complete = array.array("d"), [], []
    # Store each distinct tuple of labels once.
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    first = None
    for line, row in csv_rows.records(path, (*columns, *texts)):
        values = [_number(path, line, name, row[name]) for name in columns]
        names = (*(row[name] for name in texts), *stem)
        numbers.extend(values)
        row_labels.append(seen.setdefault(names, names))
        complete.append(all(names) and not any(map(math.isnan, values)))
        if not complete[-1] and first is None:
            first = line
    if first is not None:
        warnings.warn(
            f"{path}: dropped {complete.count(False)} of {len(complete)} rows with a "
            f"missing number or label, first in line {first}; no window spans them.",
            UserWarning,
            stacklevel=4,
        )
    rows = np.array(numbers, np.float64).reshape(len(row_labels), len(columns))
    order = np.arange(len(row_labels))
    if time is not None and subject is not None:  # Rows of subjects may alternate.
        _, person = np.unique([names[-1] for names in row_labels], return_inverse=True)
        order = np.argsort(person, kind="stable")
    times = None if time is None else rows[order, -1]
    return Table(
        path,
        rows[order, : len(channels)],
        [row_labels[index] for index in order],
        np.array(complete, bool)[order],
        times,
    )


def _number(path, line, name, cell):
    """Parses a cell as a number within float32 range; NaN if it is missing."""
    try:
        value = csv_rows.number(cell)
    except ValueError:
        value = math.inf
    if abs(value) > MAX_VALUE:
        raise ValueError(
            f"{path}, line {line}: {name} must be a number with a decimal point, or "
            f"empty, got {cell!r}."
        )
    return value
