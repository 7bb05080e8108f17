"""The one CSV dialect of the library: a line of names, and a row for each sample.

Commas, semicolons or tabs stand between cells, whichever the line of names has most of.
The text is UTF-8, with or without a byte order mark; lines end in LF, CRLF or CR. Cells
may be quoted, and blanks around them do not count. Empty lines do not count, nor does a
line that begins with ``#``, nor the last column of lines that end in a delimiter. A
number has a decimal point; cells that are empty, ``NA``, ``NaN``, ``null`` or ``None``
lack one. A name may end in its unit in brackets, as in ``acc x [g]``.
"""

import csv
import itertools
import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

MISSING = {"", "na", "nan", "null", "none"}  # Cells without a number.
DELIMITERS = ",;\t"
LONGEST = 1 << 16  # Bytes of a line of a stream; what is longer is malformed.
AT_ONCE = 1 << 16  # Bytes that are read, at most.


def number(cell: str) -> float:
    """A cell as a number; NaN where it lacks one.

    Raises:
      ValueError: for any other text.

    Example:
      >>> number("-1.5e3"), number(" NA "), number("inf")
      (-1500.0, nan, inf)
    """
    cell = cell.strip()
    if cell.lower() in MISSING:
        return math.nan
    if not cell.isascii() or "_" in cell:  # Python's float is more generous.
        raise ValueError(f"{cell!r} is no number with a decimal point.")
    return float(cell)


def split_unit(name: str) -> tuple[str, str | None]:
    """The name of a channel, and its unit if it declares one.

    Example:
      >>> split_unit("acc x [g]"), split_unit("acc x")
      (('acc x', 'g'), ('acc x', None))
    """
    match = re.fullmatch(r"(.*?)\s*(?:\[([^\]]*)\])?", name)
    return (match[1], match[2]) if match else (name, None)


def is_comment(line: bytes | str) -> bool:
    """Whether a line says nothing: it is blank, or begins with ``#``."""
    return not line.strip() or line[:1] in (b"#", "#")


def delimiter_of(header: str) -> str:
    """What stands between the cells of a line of names."""
    return max(DELIMITERS, key=header.count)


def cells_of(lines: Iterable[str], delimiter: str):
    """A reader of ``csv`` for the dialect."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def records(
    path: pathlib.Path, needed: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Reads a whole file, row by row; the first that is wrong is an error.

    Args:
      path: of the file.
      needed: columns that it must have once; a name stands for itself, or for itself
        with a unit behind it.

    Yields:
      The number of each row's line and its cells by column, without blanks around them.
      Of a row of delimiters alone all cells are empty.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: naming file and line, for a missing column, a row of another length,
        and text that is no CSV in UTF-8.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
      >>> _ = path.write_text("# a comment\\nx [g]; act\\n1;sit\\n")
      >>> list(records(path, ("x",)))
      [(3, {'x': '1', 'act': 'sit'})]
    """
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
    done = skipped = 0  # The line of the last row, and comments before the next.

    def said(file):
        nonlocal skipped
        for line in file:
            if is_comment(line):
                skipped += 1
            else:
                yield line

    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            lines = said(file)
            header = next(lines, "")
            delimiter = delimiter_of(header)
            table = cells_of(itertools.chain([header], lines), delimiter)
            names = _named(path, [name.strip() for name in next(table, [])], needed)
            for cells in table:
                done = table.line_num + skipped
                if len(cells) > 1 and not any(map(str.strip, cells)):
                    cells = [""] * len(names)
                if len(cells) != len(names) or any("\0" in cell for cell in cells):
                    raise ValueError(
                        f"{str(path)!r}: line {done} must have {len(names)} cells of "
                        f"text, as the first line has, got {len(cells)}."
                    )
                row = dict(zip(names, map(str.strip, cells), strict=True))
                row.pop("", None)  # Behind a delimiter at the end.
                yield done, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(
                f"{str(path)!r}: it is no CSV file in UTF-8, after line {done} "
                f"({error})."
            ) from error


def _named(path, names, needed):
    """The columns' names, those that are needed without their units."""
    names = list(names)
    for name in needed:
        if names.count(name) == 1:
            continue
        places = [n for n, own in enumerate(names) if split_unit(own)[0] == name]
        if len(places) != 1 or name in names:
            raise ValueError(
                f"{str(path)!r}: it must have one column {name!r}; its first line "
                f"names {names}."
            )
        names[places[0]] = name
    return names


class Rows:
    """Times and samples of a file or a pipe, as they come.

    A class because a file is read once. The line of names has ``time`` or ``time [s]``
    among its columns; all others are channels. Lines come as soon as they are there,
    and memory is bounded. Rows that are no numbers, or lack a time or a cell, are
    skipped and counted in ``malformed``; so are lines of more than 64 KiB. A quoted
    cell ends in its line.

    Args:
      file: of bytes, with ``read1``.
      name: of it, for errors.

    Raises:
      ValueError: naming file and line, without such a line of names.

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
        # read1 gives what is there; a pipe's read would wait for all that was asked.
        self._read = file.read1
        self._rest = b""
        self._skipping = False  # Are we inside a line that is too long?
        self._after_return = False  # Did the last read end in CR, of a CRLF perhaps?
        self._line = 0  # Of those that were read whole.
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
        if names and not names[-1]:  # Behind a delimiter at the end.
            names.pop()
        own = [place for place in range(len(names)) if place not in times]
        if len(times) != 1 or not own:
            # What the line says is not told: it may be raw samples.
            raise ValueError(
                f"{name}, line {max(1, self._line - len(self._first))}: the first line "
                "must name the columns, as in 'time,acc x [g],acc y [g]', and it does "
                "not; put such a line before the rows."
            )
        self._order = [*times, *own]
        split = [split_unit(names[place]) for place in own]
        self.channels = tuple(channel for channel, _ in split)
        self.units = tuple(unit for _, unit in split)

    def _header(self):
        """The first line that says anything, and what was read behind it."""
        while not self._ended:
            lines = self._lines()
            for index, line in enumerate(lines):
                line = line.removeprefix(b"\xef\xbb\xbf")
                if not is_comment(line):
                    text = line.decode(errors="replace").strip("\r\n ")
                    return text, lines[index + 1 :]
        return "", []

    def _lines(self):
        """The whole lines that one read ends; it waits for something to be there."""
        read = self._read(AT_ONCE)
        self._ended = not read
        if self._after_return and read:
            read = read.removeprefix(b"\n")
        self._after_return = read.endswith(b"\r") if read else self._after_return
        if self._skipping and read:
            # The rest of a line that was too long, and is counted.
            ended = re.search(rb"[\r\n]", read)
            self._skipping = ended is None
            read = b"" if ended is None else read[ended.end() :]
        lines = (self._rest + read).splitlines(keepends=True)
        self._rest = b""
        if lines and not self._ended and lines[-1][-1:] not in b"\r\n":
            self._rest = lines.pop()
        if len(self._rest) > LONGEST:
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
        """``float64[n]`` times in s and ``float64[n, channels]``, n > 0."""
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
        own = [
            (first + n, line) for n, line in enumerate(lines) if not is_comment(line)
        ]
        mark = self._delimiter.encode()
        try:
            # All at once, where every line is as it should be.
            if all(line.count(mark) == self._width - 1 for _, line in own):
                text = mark.join(line for _, line in own)
                if b"_" not in text:
                    flat = [float(cell) for cell in text.split(mark)]
                    rows = np.array(flat).reshape(-1, self._width)[:, self._order]
                    if not np.isnan(rows[:, 0]).any():
                        return rows
        except ValueError:
            pass
        rows = []
        for place, line in own:
            row = self._row(line)
            if row is None:
                self._skip(place)
            else:
                rows.append(row)
        return np.array(rows).reshape(-1, len(self._order))

    def _row(self, line):
        """Numbers of one line, time first; None if it is malformed."""
        try:
            (cells,) = cells_of([line.decode().rstrip("\r\n")], self._delimiter)
            row = [number(cells[place]) for place in self._order]
        except (ValueError, IndexError, csv.Error):  # Not UTF-8, too.
            return None
        return row if len(cells) == self._width and not math.isnan(row[0]) else None
