"""Text files with a line of names and a row for each sample."""

import csv
import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.sources import naming

MISSING = {"", "na", "nan", "null", "none"}  # Cells without a number.
DELIMITERS = ",;\t"


class Table(NamedTuple):
    """The columns of a file that were asked for."""

    path: Path
    rows: np.ndarray  # float64[rows, channels], NaN where a cell is empty
    labels: list[tuple[str, ...]]  # of each row; "" where a cell is empty
    subjects: list[str]
    times: np.ndarray | None  # float64[rows], s


def lines(path, needed):
    """The number of each line and its cells by column, without blanks around them."""
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
    with naming(repr(str(path))), path.open(newline="", encoding="utf-8-sig") as file:
        try:
            first = file.readline()
            file.seek(0)
            delimiter = max(DELIMITERS, key=first.count)
            table = csv.reader(file, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(table, [])]
            if lacking := [name for name in needed if name not in names]:
                raise ValueError(
                    f"it has no column {lacking[0]!r}; its first line names {names}."
                )
            if len(set(names)) < len(names):
                raise ValueError(f"its first line names a column twice: {names}.")
            for cells in table:
                if cells and len(cells) != len(names):
                    raise ValueError(
                        f"line {table.line_num} has {len(cells)} cells, and the first "
                        f"line {len(names)}."
                    )
                if cells:
                    stripped = [cell.strip() for cell in cells]
                    yield table.line_num, dict(zip(names, stripped, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"it is no CSV file in UTF-8 ({error}).") from error


def read(path, channels, labels, subject, time):
    """The columns of one file; warns of rows that lack something."""
    extra = [name for name in (subject, time) if name is not None]
    rows, named, subjects, times, lacking = [], [], [], [], []
    for line, row in lines(path, (*channels, *labels, *extra)):
        number = lambda name, line=line, row=row: _number(path, line, name, row[name])
        rows.append([number(name) for name in channels])
        named.append(tuple(row[name] for name in labels))
        subjects.append(path.stem if subject is None else row[subject])
        times.append(0.0 if time is None else number(time))
        numbers = *rows[-1], times[-1]
        if not (all(named[-1]) and subjects[-1] and all(map(math.isfinite, numbers))):
            lacking.append(line)
    if lacking:
        warnings.warn(
            f"{path}: {len(lacking)} of {len(rows)} rows lack a number or a label, the "
            f"first in line {lacking[0]}; they are left out, and no window reaches "
            "over them.",
            UserWarning,
            stacklevel=3,
        )
    table = np.array(rows, np.float64).reshape(len(rows), len(channels))
    seconds = None if time is None else np.array(times, np.float64)
    return Table(path, table, named, subjects, seconds)


def _number(path, line, name, cell):
    """A cell as a number; NaN where it is empty."""
    if cell.lower() in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise ValueError(
            f"{path}, line {line}: {name} must be a number with a point, or empty, "
            f"got {cell!r}."
        )
    return value
