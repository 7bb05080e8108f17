"""Streaming reader of CSV recordings: a header line, then one row per sample.

- The delimiter is a comma, a semicolon or a tab, whichever is most frequent in the
  header.
- The text is UTF-8, with or without a byte order mark, or UTF-16 with one; lines end in
  LF, CRLF or CR.
- Cells may be quoted; blanks around them are stripped.
- Empty lines, lines that begin with ``#``, and a delimiter at the end of a line are
  ignored.
- Numbers use a decimal point, or a decimal comma if the delimiter is not a comma; an
  empty cell, ``NA``, ``NaN``, ``null`` or ``None`` is a missing number.
- A column name may end in a unit in brackets, such as ``acc x [g]``.
"""

import codecs
import contextlib
import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxanon.recordings import dialect as dialects
from jaxanon.recordings import units

TIME_NAMES = (  # Usual names of columns with times, in lower case.
    *("time", "timestamp", "datetime", "date time", "date", "seconds_elapsed"),
    *("seconds", "elapsed", "time_s", "time_ms", "epoch", "utc", "unix", "t"),
)
MISSING = {"", "na", "nan", "null", "none"}  # Cells that mean a missing number.
DELIMITERS = ",;\t"
MAX_LINE = 1 << 16  # Bytes; longer lines of a stream are malformed.
MAX_READ = 1 << 16  # Bytes of one read.
FORMAT_ROWS, FORMAT_TIMES = 4, 3  # Rows and distinct times that show their format.
MOST_ROWS = 512  # Rows that are read to find them.


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


def is_comment(line: bytes | str) -> bool:
    """Returns whether a line is blank or begins with ``#``."""
    return not line.strip() or line[:1] in (b"#", "#")


def delimiter_of(header: str) -> str:
    """Returns the delimiter of a header line, the most frequent one outside quotes.

    Example:
      >>> delimiter_of('"a,b,c";t')
      ';'
    """
    return max(DELIMITERS, key=re.sub(r'"[^"]*"', "", header).count)


def cells_of(lines: Iterable[str], delimiter: str):
    """Returns a ``csv`` reader for the dialect."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


class Rows:
    """Streaming reader of times and samples from a file or a pipe.

    The header must name a column with times and the channels. The reader returns lines
    as soon as they arrive, in bounded memory, but first waits for four rows with three
    different times if nothing else gives the format of the times. It skips rows with
    another number of
    cells, a cell of a channel that is not a number, a missing time, and lines above
    64 KiB; ``malformed`` counts them. A quoted cell cannot span lines. If the delimiter
    is not a comma, a comma is a decimal mark.

    Args:
      file: binary file with ``read1``.
      name: name of the file in error messages.
      channels: columns to read, with or without a unit; others are ignored. None reads
        all columns but that of times.
      time: column with times; None looks for one of ``TIME_NAMES``.
      time_format: format of the times, as in ``recordings.times.parse``. None takes the
        unit in the header, else detects it from the first rows.
      rate_hz: expected rate of the rows, which helps to detect the unit of times.

    Attributes:
      origin: whole seconds from which times are counted, since 1970 for dates and Unix
        times; 0 for other times, and before the first row.

    Raises:
      ValueError: if the header is missing or wrong, or, while reading, if the unit of
        the times is ambiguous; the message names the file.

    Example:
      >>> import io
      >>> rows = Rows(io.BytesIO(b"time,x [g]\\n0,1\\noh\\n1,2\\n"))
      >>> rows.channels, rows.units
      (('x',), ('g',))
      >>> list(rows)
      [(array([0., 1.]), array([[1.],
             [2.]]))]
      >>> rows.malformed, rows.first_malformed, rows.first_cause
      (1, 3, 'it has another number of cells than the header')
    """

    def __init__(
        self,
        file,
        name: str = "the input",
        *,
        channels: Sequence[str] | None = None,
        time: str | None = None,
        time_format: str | None = None,
        rate_hz: float | None = None,
    ):
        self.close = file.close
        # read1 returns the available bytes; read would block until it has all.
        self._read = file.read1
        self._decoder: dialects.Utf8 | None = None
        self._rest = b""
        self._skipping = False  # Whether the next bytes continue a line above MAX_LINE.
        self._after_return = False  # Whether the last read ended in CR, maybe of CRLF.
        self._line = 0  # Number of complete lines.
        self._ended = False
        self.malformed, self.first_malformed, self.first_cause = 0, None, ""
        header, self._first = self._header()
        self._delimiter = delimiter_of(header)
        try:
            names = [cell.strip() for cell in next(cells_of([header], self._delimiter))]
        except (csv.Error, StopIteration):
            names = []
        self._width = len(names)
        if names and not names[-1]:  # Empty column after a trailing delimiter.
            names.pop()
        where = f"{name}, line {max(1, self._line - len(self._first))}"
        # Imported late, because a reader of whole files does not need it.
        from jaxanon.recordings import times

        split = [(each, unit or None) for each, unit in map(units.split_name, names)]
        time_index = _time_index(where, names, split, time)
        others = [index for index in range(len(names)) if index != time_index]
        if channels is not None:
            others = [_find(where, names, split, each) for each in channels]
        if not others:
            raise ValueError(_no_header(where))
        self._time, self._others = time_index, others
        self.channels = tuple(split[index][0] for index in others)
        self.units = tuple(split[index][1] for index in others)
        self._rate_hz, self._format = rate_hz, time_format
        self._name, self._times, self._origin = name, times, None
        unit = units.find(split[time_index][1] or "")
        if time_format is None and unit is not None and unit.name in times.UNITS:
            self._format = unit.name

    def _header(self):
        """Returns the first line that is not a comment, and the lines read after it."""
        while not self._ended:
            lines = self._lines()
            for index, line in enumerate(lines):
                line = line.removeprefix(b"\xef\xbb\xbf")
                if not is_comment(line):
                    text = line.decode().strip("\r\n ")
                    return text, lines[index + 1 :]
        return "", []

    def _read_text(self):
        """Returns the next bytes in UTF-8; empty at the end."""
        read = self._read(MAX_READ)
        if self._decoder is None:
            while len(read) == 1 and (more := self._read(MAX_READ)):
                read += more
            marks = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
            self._decoder = dialects.Utf8("utf-16" if read[:2] in marks else "utf-8")
        text = self._decoder.feed(read, ended=not read)
        while read and not text:  # Half a character.
            read = self._read(MAX_READ)
            text = self._decoder.feed(read, ended=not read)
        return text

    def _lines(self):
        """Returns the lines that one (blocking) read completes."""
        read = self._read_text()
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
            self._skip(self._line + len(lines) + 1, "it is longer than 64 KiB")
            self._rest, self._skipping = b"", True
            self._line += 1
        self._line += len(lines)
        return lines

    def _skip(self, line, cause):
        self.malformed += 1
        if self.first_malformed is None or line < self.first_malformed:
            self.first_malformed, self.first_cause = line, cause

    @property
    def origin(self) -> int:
        """Whole seconds from which times are counted."""
        return self._origin or 0

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields ``float64[n]`` times in s and ``float64[n, channels]``, n > 0."""
        lines, self._first = self._first, []
        while True:
            # The format of times shows in several rows.
            if self._format is None and not self._ended:
                if not self._show_format(lines):
                    lines = lines + self._lines()
                    continue
            seconds, samples = self._numbers(lines)
            if len(seconds):
                yield seconds, samples
            if self._ended:
                return
            lines = self._lines()

    def _show_format(self, lines):
        """Returns whether lines have enough times to detect their format."""
        stamps = []
        for line in lines[: 2 * MOST_ROWS]:
            if not is_comment(line):
                with contextlib.suppress(ValueError):
                    stamps.append(self._row(line)[0])
        enough = len(stamps) >= FORMAT_ROWS and len({*stamps}) >= FORMAT_TIMES
        return enough or len(lines) >= MOST_ROWS

    def _numbers(self, lines):
        """Returns times and samples of the well-formed rows among lines."""
        first = self._line - len(lines) + 1
        numbers, stamps, samples = [], [], []
        for index, line in enumerate(lines):
            if is_comment(line):
                continue
            try:
                stamp, values = self._row(line)
            except ValueError as error:
                self._skip(first + index, str(error))
                continue
            numbers.append(first + index)
            stamps.append(stamp)
            samples.append(values)
        found = np.array(samples, np.float64).reshape(-1, len(self._others))
        seconds = self._seconds(stamps, numbers)
        valid = ~np.isnan(seconds)
        return (seconds, found) if valid.all() else (seconds[valid], found[valid])

    def _row(self, line):
        """Returns the time's cell and the numbers of a line.

        Raises:
          ValueError: if the line is malformed; the message does not quote it.
        """
        text = line.decode().rstrip("\r\n")
        if '"' in text:
            cells = dialects.strict_cells(text, self._delimiter)
            if cells is None:
                raise ValueError("a quote does not end")
        else:
            cells = text.split(self._delimiter)
        if len(cells) != self._width:
            raise ValueError("it has another number of cells than the header")
        values = []
        for channel, index in enumerate(self._others):
            cell = cells[index]
            try:
                # Fast, but accepts an underscore and digits of other scripts.
                values.append(
                    float(cell) if cell.isascii() and "_" not in cell else number(cell)
                )
            except ValueError:
                values.append(self._number(cell, channel))
        return cells[self._time].strip(), values

    def _number(self, cell, channel):
        if self._delimiter != ",":
            cell = cell.replace(",", ".")
        try:
            return number(cell)
        except ValueError:
            name = self.channels[channel]
            raise ValueError(f"column {name!r} is not a number") from None

    def _seconds(self, stamps, lines):
        """Returns float64 seconds of time cells; NaN where malformed."""
        values = np.empty(len(stamps))
        for index, stamp in enumerate(stamps):
            try:
                values[index] = number(stamp)
            except ValueError:
                if self._delimiter != ",":
                    stamp = stamp.replace(",", ".")
                try:
                    values[index] = number(stamp)
                except ValueError:
                    values[index] = math.inf
        infinite = np.array([*map(_is_infinite, stamps)], bool)
        if self._format is None and len(values):
            self._format = self._detected(values, stamps)
        if self._format in self._times.UNITS:
            values[np.isinf(values)] = math.nan
            values = self._since(self._times.parse(values, self._format))
        else:
            values = self._dates(stamps)
        values[infinite] = math.inf
        for index in np.flatnonzero(np.isnan(values)):
            missing = stamps[index].lower() in MISSING
            cause = "its time is missing" if missing else "its time cannot be read"
            self._skip(lines[index], cause)
        return values

    def _detected(self, values, stamps):
        """Returns the format of the first times."""
        known = values[np.isfinite(values)]
        if not len(known):
            return None if all(s.lower() in MISSING for s in stamps) else "iso"
        where = f"{self._name}: times"
        return self._times.parse(known, None, self._rate_hz, where).format

    def _since(self, found):
        """Returns seconds since the origin, which the first times set."""
        if self._origin is None and not np.isnan(found.seconds).all():
            self._origin = found.origin
        return found.seconds + float(found.origin - self.origin)

    def _dates(self, stamps):
        """Returns seconds of dates; NaN where a text is not a date of the format."""
        if self._format is None:
            return np.full(len(stamps), np.nan)
        try:
            return self._since(self._times.parse(np.array(stamps, str), self._format))
        except ValueError:
            if len(stamps) < 2:
                return np.full(len(stamps), np.nan)
        half = len(stamps) // 2
        return np.concatenate([self._dates(stamps[:half]), self._dates(stamps[half:])])


def _is_infinite(stamp):
    return stamp.lower().lstrip("+-") in ("inf", "infinity")


def _find(where, names, split, wanted):
    """Returns the index of the one column of this name, with or without its unit."""
    for known in (names, [name for name, _ in split]):
        if known.count(wanted) == 1:
            return known.index(wanted)
    raise ValueError(
        f"{where}: the header must have exactly one column {wanted!r}{_shown(names)}; "
        "rename the column, or choose another model."
    )


def _time_index(where, names, split, wanted):
    """Returns the index of the column with times."""
    if wanted is not None and names:
        return _find(where, names, split, wanted)
    lower = [name.lower() for name, _ in split]
    for name in TIME_NAMES:
        if lower.count(name) == 1:
            return lower.index(name)
    if len(names) < 2 or any(map(dialects.is_number, names)):
        raise ValueError(_no_header(where))
    raise ValueError(
        f"{where}: the header must have exactly one column with times, such as 'time' "
        f"or 'timestamp'{_shown(names)}; rename it, or name it with --time-column."
    )


def _no_header(where):
    # Do not quote the line: it may contain raw samples.
    return (
        f"{where}: the header must name the columns, such as 'time,acc x [g],acc y "
        "[g]'; insert such a line before the rows."
    )


def _shown(names):
    """Returns the names for a message, unless they may be raw samples."""
    return "" if any(map(dialects.is_number, names)) else f", got the columns {names}"
