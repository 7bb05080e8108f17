"""Text files with a line of names and a row for each sample."""

import array
import csv
import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.sources import naming

MISSING = {"", "na", "nan", "null", "none"}  # Cells without a number.
DELIMITERS = ",;\t"
MOST = float(np.finfo(np.float32).max)


class Table(NamedTuple):
    """The columns of a file that were asked for."""

    path: Path
    rows: np.ndarray  # float64[rows, channels], NaN where a cell is empty
    labels: list[tuple[str, ...]]  # of each row; the last says whose it is
    whole: np.ndarray  # bool[rows], whether it lacks nothing
    times: np.ndarray | None  # float64[rows], s


def lines(path, needed):
    """The number of each line and its cells by column, without blanks around them.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: naming it, if it has no such columns, a row of another length, or is
        no CSV in UTF-8.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
    with naming(repr(str(path))), path.open(newline="", encoding="utf-8-sig") as file:
        line = 0
        try:
            delimiter = max(DELIMITERS, key=file.readline().count)
            file.seek(0)
            form = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
            table = csv.reader(file, **form)
            names = [name.strip() for name in next(table, [])]
            for name in needed:
                if names.count(name) != 1:
                    raise ValueError(
                        f"it must have one column {name!r}; its first line names "
                        f"{names}."
                    )
            for cells in table:
                line = table.line_num
                if not any(map(str.strip, cells)):  # A line that holds nothing.
                    cells = [""] * len(names) if len(cells) > 1 else []
                if not cells:
                    continue
                if len(cells) != len(names) or any("\0" in cell for cell in cells):
                    raise ValueError(
                        f"line {line} must have {len(names)} cells of text, as the "
                        f"first line has, got {len(cells)}."
                    )
                row = dict(zip(names, map(str.strip, cells), strict=True))
                row.pop("", None)  # Behind a delimiter at the end.
                yield line, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(
                f"it is no CSV file in UTF-8, after line {line} ({error})."
            ) from error


def read(path, channels, labels, subject, time) -> Table:
    """The columns of one file; warns of rows that lack something.

    Raises:
      FileNotFoundError, ValueError: of ``lines``, and for a cell that is no number.
    """
    columns = (*channels, *(() if time is None else (time,)))
    texts = (*labels, *(() if subject is None else (subject,)))
    stem = (path.stem,) if subject is None else ()
    numbers, named, whole = array.array("d"), [], []
    # What is told is kept once, however often it comes.
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    first = None
    for line, row in lines(path, (*columns, *texts)):
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
    """A cell as a number; NaN where it is empty."""
    if cell.lower() in MISSING:
        return math.nan
    try:
        value = float(cell) if cell.isascii() and "_" not in cell else math.inf
    except ValueError:
        value = math.inf
    if abs(value) > MOST:
        raise ValueError(
            f"{path}, line {line}: {name} must be a number with a point, or empty, "
            f"got {cell!r}."
        )
    return value
