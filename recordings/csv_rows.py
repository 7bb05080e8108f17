"""Streaming reader of CSV recordings: a header line, then one row per sample.

- The delimiter is a comma, a semicolon or a tab, whichever is most frequent in the
  header.
- The text is UTF-8, with or without a byte order mark; lines end in LF, CRLF or CR.
- Cells may be quoted; blanks around them are stripped.
- Empty lines, lines that begin with ``#``, and a delimiter at the end of a line are
  ignored.
- Numbers use a decimal point; an empty cell, ``NA``, ``NaN``, ``null`` or ``None`` is a
  missing number.
- A column name may end in a unit in brackets, such as ``acc x [g]``.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator

import numpy as np

MISSING = {"", "na", "nan", "null", "none"}  # Cells that mean a missing number.
DELIMITERS = ",;\t"
MAX_LINE = 1 << 16  # Bytes; longer lines of a stream are malformed.
MAX_READ = 1 << 16  # Bytes of one read.


def number(cell: str) -> float:
    """Parses a cell as a number; a missing number is NaN.

    Raises:
      ValueError: if the cell is any other text.

    Example:
      >>> number("-1.5e3"), number(" NA "), number("inf")
      (-1500.0, nan, inf)
    """
    cell = cell.strip()
    if cell.lower() in MISSING:
        return math.nan
    if not cell.isascii() or "_" in cell:  # Python's float accepts these.
        raise ValueError(f"cell must be a number with a decimal point, got {cell!r}.")
    return float(cell)


def split_unit(name: str) -> tuple[str, str | None]:
    """Splits a column name into channel and unit; the unit is None if missing.

    Example:
      >>> split_unit("acc x [g]"), split_unit("acc x")
      (('acc x', 'g'), ('acc x', None))
    """
    match = re.fullmatch(r"(.*?)\s*(?:\[([^\]]*)\])?", name)
    return (match[1], match[2]) if match else (name, None)


def is_comment(line: bytes | str) -> bool:
    """Returns whether a line is blank or begins with ``#``."""
    return not line.strip() or line[:1] in (b"#", "#")


def delimiter_of(header: str) -> str:
    """Returns the delimiter of a header line."""
    return max(DELIMITERS, key=header.count)


def cells_of(lines: Iterable[str], delimiter: str):
    """Returns a ``csv`` reader for the dialect."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


class Rows:
    """Streaming reader of times and samples from a file or a pipe.

    The header must contain the column ``time`` or ``time [s]``; all other columns are
    channels. The reader returns lines as soon as they arrive, in bounded memory. It
    skips rows with a non-numeric cell, a missing time or a missing cell, and lines
    above 64 KiB; ``malformed`` counts them. A quoted cell cannot span lines.

    Args:
      file: binary file with ``read1``.
      name: name of the file in error messages.

    Raises:
      ValueError: if the header is missing or wrong; the message names file and line.

    Example:
      >>> import io
      >>> rows = Rows(io.BytesIO(b"time,x [g]\\n0,1\\noh\\n1,2\\n"))
      >>> rows.channels, rows.units
      (('x',), ('g',))
      >>> list(rows)
      [(array([0., 1.]), array([[1.],
             [2.]]))]
      >>> rows.malformed, rows.first_malformed
      (1, 3)
    """

    def __init__(self, file, name: str = "the input"):
        self.close = file.close
        # read1 returns the available bytes; read would block until it has all.
        self._read = file.read1
        self._rest = b""
        self._skipping = False  # Whether the next bytes continue a line above MAX_LINE.
        self._after_return = False  # Whether the last read ended in CR, maybe of CRLF.
        self._line = 0  # Number of complete lines.
        self._ended = False
        self.malformed, self.first_malformed = 0, None
        header, self._first = self._header()
        self._delimiter = delimiter_of(header)
        try:
            names = [cell.strip() for cell in next(cells_of([header], self._delimiter))]
        except (csv.Error, StopIteration):
            names = []
        self._width = len(names)
        times = [n for n, x in enumerate(names) if x.lower() in ("time", "time [s]")]
        if names and not names[-1]:  # Empty column after a trailing delimiter.
            names.pop()
        others = [index for index in range(len(names)) if index not in times]
        if len(times) != 1 or not others:
            # Do not quote the line: it may contain raw samples.
            raise ValueError(
                f"{name}, line {max(1, self._line - len(self._first))}: the header "
                "must name the columns, such as 'time,acc x [g],acc y [g]'; insert "
                "such a line before the rows."
            )
        self._order = [*times, *others]
        split = [split_unit(names[index]) for index in others]
        self.channels = tuple(channel for channel, _ in split)
        self.units = tuple(unit for _, unit in split)

    def _header(self):
        """Returns the first line that is not a comment, and the lines read after it."""
        while not self._ended:
            lines = self._lines()
            for index, line in enumerate(lines):
                line = line.removeprefix(b"\xef\xbb\xbf")
                if not is_comment(line):
                    text = line.decode(errors="replace").strip("\r\n ")
                    return text, lines[index + 1 :]
        return "", []

    def _lines(self):
        """Returns the lines that one (blocking) read completes."""
        read = self._read(MAX_READ)
        self._ended = not read
        if self._after_return and read:
            read = read.removeprefix(b"\n")
        self._after_return = read.endswith(b"\r") if read else self._after_return
        if self._skipping and read:
            # Drop the rest of a line that was too long; it is already counted.
            ended = re.search(rb"[\r\n]", read)
            self._skipping = ended is None
            read = b"" if ended is None else read[ended.end() :]
        lines = (self._rest + read).splitlines(keepends=True)
        self._rest = b""
        if lines and not self._ended and lines[-1][-1:] not in b"\r\n":
            self._rest = lines.pop()
        if len(self._rest) > MAX_LINE:
            self._skip(self._line + len(lines) + 1)
            self._rest, self._skipping = b"", True
            self._line += 1
        self._line += len(lines)
        return lines

    def _skip(self, line):
        self.malformed += 1
        if self.first_malformed is None:
            self.first_malformed = line

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields ``float64[n]`` times in s and ``float64[n, channels]``, n > 0."""
        lines, self._first = self._first, []
        while True:
            rows = self._numbers(lines)
            if len(rows):
                yield rows[:, 0], rows[:, 1:]
            if self._ended:
                return
            lines = self._lines()

    def _numbers(self, lines):
        first = self._line - len(lines) + 1
        samples = [
            (first + n, line) for n, line in enumerate(lines) if not is_comment(line)
        ]
        mark = self._delimiter.encode()
        try:
            # Fast path: parse all lines at once if every line is well-formed.
            if all(line.count(mark) == self._width - 1 for _, line in samples):
                text = mark.join(line for _, line in samples)
                if b"_" not in text:
                    flat = [float(cell) for cell in text.split(mark)]
                    rows = np.array(flat).reshape(-1, self._width)[:, self._order]
                    if not np.isnan(rows[:, 0]).any():
                        return rows
        except ValueError:
            pass
        rows = []
        for number_, line in samples:
            row = self._row(line)
            if row is None:
                self._skip(number_)
            else:
                rows.append(row)
        return np.array(rows).reshape(-1, len(self._order))

    def _row(self, line):
        """Returns the numbers of a line, time first, or None if it is malformed."""
        try:
            (cells,) = cells_of([line.decode().rstrip("\r\n")], self._delimiter)
            row = [number(cells[index]) for index in self._order]
        except (ValueError, IndexError, csv.Error):  # ValueError: also not UTF-8.
            return None
        return row if len(cells) == self._width and not math.isnan(row[0]) else None
