"""Files of recordings: all columns as they are written, and files of the same form."""

import collections
import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.importing import csv_file, files
from jaxanon.datasets.importing.csv_file import DAMAGED, MALFORMED
from jaxanon.recordings import dialect as dialects
from jaxanon.recordings import units

BLOCK = 1 << 23  # Bytes of CSV text at a time.
ROWS = 1 << 18  # Rows of a Parquet file at a time.
CSV, ARROW, HDF5 = files.TEXT, files.ARROW, files.HDF5
SUFFIXES = *CSV, *(f"{each}.gz" for each in CSV), *ARROW, *HDF5
QUOTED = r'["\r\n]'
DAMAGE = OSError, EOFError, zlib.error  # of files, also compressed ones


class Batch(NamedTuple):
    """Some rows of a recording: an Arrow array for each column."""

    columns: list[Any]
    rows: int


def _compute() -> Any:
    """Returns ``pyarrow.compute``, whose functions are defined at run time."""
    import pyarrow.compute

    return pyarrow.compute


def suffix_of(path: Path) -> str:
    """Returns the suffix by which a recording is read; empty for other files.

    Example:
      >>> suffix_of(Path("a/Walk.CSV.gz")), suffix_of(Path("notes.pdf"))
      ('.csv.gz', '')
    """
    name = path.name.lower()
    return max((s for s in SUFFIXES if name.endswith(s)), key=len, default="")


def open_recording(
    path: Path, encoding: str | None = None, read: Callable[[], bytes] | None = None
):
    """Opens a file in CSV, Parquet or Feather for reading.

    Args:
      path: path of the file.
      encoding: encoding of CSV; None detects it.
      read: function that returns the content, without gzip; None reads the file.

    Raises:
      ValueError: if the file is of another kind or cannot be read. No message quotes
        its rows.
    """
    suffix = suffix_of(path)
    if not suffix:
        raise ValueError(
            f"{str(path)!r} must be a recording in CSV, Parquet, Feather or HDF5, with "
            f"a name that ends in one of {', '.join(SUFFIXES)}."
        )
    if suffix.startswith(CSV):
        return CsvRecording(path, encoding, read)
    return ArrowRecording(path, read)


class _Source(io.BufferedIOBase):
    """A text file in UTF-8, without comments and rows whose quotes are broken.

    Their lines become empty, so that Arrow does not join other rows to them.

    Args:
      file: binary file, after its byte order mark.
      dialect: its dialect.
      lose: function called with the line number of each broken row.
    """

    def __init__(self, file, dialect: dialects.Dialect, lose):
        self._file, self._dialect, self._lose = file, dialect, lose
        self._text = dialects.Utf8(dialect.encoding)
        self._ready = self._line = b""  # To return; a line without its end.
        self._lines = 0  # Number of lines before.
        self._ended = False

    def readable(self):
        return True

    def read(self, size=-1, /):
        while not self._ready and not self._ended:
            data = self._file.read(size)
            self._ended = not data
            lines = self._line + self._text.feed(data, self._ended)
            end = 1 + max(lines.rfind(b"\n"), lines.rfind(b"\r", 0, -1))
            if self._ended or len(lines) - end > BLOCK:
                end = len(lines)
            self._ready, self._line = self._checked(lines[:end]), lines[end:]
        size = len(self._ready) if size is None or size < 0 else size
        found, self._ready = self._ready[:size], self._ready[size:]
        return found

    def _checked(self, lines):
        """Returns whole lines as Arrow can read them."""
        delimiter, before = self._dialect.delimiter, self._lines
        self._lines += lines.count(b"\n") or lines.count(b"\r")
        quoted = b'"' in lines
        if delimiter == " ":  # A run of blanks counts as one.
            lines = dialects.single_blanks(lines)
        if not quoted or csv_file.quotes_fit(lines, delimiter.encode()):
            return lines
        each = lines.splitlines(keepends=True)
        for index, line in enumerate(each):
            number = before + index + 1
            if b'"' not in line or number < self._dialect.first_line:
                continue
            text = line.decode().rstrip("\r\n")
            comment = text.startswith("#")
            if comment or dialects.strict_cells(text, delimiter) is None:
                each[index] = b"\n"
                if not comment:
                    self._lose(number)
        return b"".join(each)


def refuse_damaged(column, recording, index) -> None:
    """Raises ValueError if names of a column have bytes outside the encoding."""
    import pyarrow as pa

    if not isinstance(recording, CsvRecording) or not pa.types.is_string(column.type):
        return
    pc = _compute()
    if pc.any(pc.match_substring(column, DAMAGED)).as_py():
        raise ValueError(
            f"{str(recording.path)!r}: column {recording.header[index]!r} must be in "
            f"{recording.dialect.encoding.upper()}, got other bytes; give the encoding "
            "(--encoding), such as latin-1."
        )


class CsvRecording:
    """A CSV file, whose cells stay text.

    Attributes:
      header: column names as they are written.
      names, units: column names without units, and units; empty if unknown.
      decimal: decimal mark of numbers.
      losses: numbers of rows that are not in the output, by cause.
      first_malformed: line of the first malformed row; None if unknown or none.
    """

    def __init__(
        self,
        path: Path,
        encoding: str | None = None,
        read: Callable[[], bytes] | None = None,
    ):
        self.path, self._read = path, read
        self._zipped = path.name.lower().endswith(".gz")
        try:
            with self._open() as file:
                head = file.read(dialects.HEAD_BYTES)
        except DAMAGE as error:
            raise ValueError(f"{str(path)!r} cannot be read: {error}.") from None
        self.dialect = dialects.sniff(head, repr(str(path)), encoding=encoding)
        self.header = list(self.dialect.header)
        self.names, self.units = list(self.dialect.names), list(self.dialect.units)
        self.decimal = self.dialect.decimal or "."
        self.losses: collections.Counter[str] = collections.Counter()
        self.first_malformed: int | None = None

    def _open(self):
        if self._read is not None:
            return io.BytesIO(self._read())
        return gzip.open(self.path) if self._zipped else self.path.open("rb")

    def batches(self) -> Iterator[Batch]:
        """Yields the rows as text columns."""
        import pyarrow as pa
        import pyarrow.csv

        width = len(self.header)
        names = [str(n) for n in range(width)]

        def lose(line):
            self.losses[MALFORMED] += 1
            known = [each for each in (line, self.first_malformed) if each]
            self.first_malformed = min(known, default=None)

        def skip(row):
            if row.text.strip() and not row.text.startswith("#"):
                lose(row.number)
            return "skip"

        with self._open() as raw:
            first, delimiter = self.dialect.first_line, self.dialect.delimiter
            raw.seek(len(self.dialect.mark))
            source = _Source(raw, self.dialect, lose)
            try:
                reader = pyarrow.csv.open_csv(
                    source,
                    read_options=pyarrow.csv.ReadOptions(
                        column_names=names,
                        skip_rows=first - 1,
                        block_size=BLOCK,
                        use_threads=False,
                    ),
                    parse_options=pyarrow.csv.ParseOptions(
                        delimiter=delimiter, invalid_row_handler=skip
                    ),
                    convert_options=pyarrow.csv.ConvertOptions(
                        column_types={name: pa.string() for name in names},
                        strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    columns = self._without_comments(batch.columns)
                    yield Batch(columns, len(columns[0]))
            except DAMAGE as error:
                raise ValueError(
                    f"{str(self.path)!r} cannot be read to its end: {error}."
                ) from None
            except (pa.ArrowException, UnicodeError) as error:
                if "Empty CSV" in str(error):
                    return
                # Arrow's messages quote rows.
                raise ValueError(
                    f"{str(self.path)!r} must be CSV with {width} cells in each row, "
                    "like the header, got text that cannot be parsed; check quotes and "
                    "encoding (--encoding)."
                ) from None

    def _without_comments(self, columns) -> list:
        """Drops comments with as many delimiters as rows."""
        pc = _compute()

        comment = pc.starts_with(columns[0], "#")
        if not pc.any(comment).as_py():
            return columns
        return [column.filter(pc.invert(comment)) for column in columns]

    def writer(self, path: Path, columns: Sequence[int], gap: bool):
        """Returns a context that writes columns to a file of the same dialect."""
        return _csv_writer(self, path, columns, gap)

    def times_text(self, times: np.ndarray, index: int, unknown=None):
        """Returns numbers or dates as text in the dialect, for a column.

        Args:
          times: ``float64[n]``, ``int64[n]`` or ``datetime64[us]``.
          index: index of the column.
          unknown: ``bool[n]``, whether a number is missing.
        """
        if times.dtype.kind == "M":
            return dates_text(times)
        return decimal_text(times, self.decimal, self.missing, unknown)

    def empty(self, index: int):
        """Returns a column without rows."""
        import pyarrow as pa

        return pa.array([], "string")

    @property
    def missing(self) -> str:
        """Text of a missing number: an empty cell would disappear between blanks."""
        return "NaN" if self.dialect.delimiter == " " else ""

    def lines(self, columns: list, gaps) -> bytes:
        """Returns rows as bytes.

        Args:
          columns: Arrow arrays of text, in the order of the file, or ``float32[n]``.
          gaps: array of text for a last column, or None.
        """
        import pyarrow as pa

        pc = _compute()

        missing, newline = self.missing, self.dialect.newline
        numbers = lambda column: decimal_text(column, self.decimal, missing)
        cells = [numbers(c) if isinstance(c, np.ndarray) else c for c in columns]
        cells += [] if gaps is None else [gaps]
        cells = [pc.fill_null(c, missing) if c.null_count else c for c in cells]
        try:
            text = self._unquoted(cells)
            text = text if newline == "\n" else text.replace(b"\n", newline.encode())
        except pa.ArrowInvalid:  # A cell has a delimiter, a quote or a line end.
            *cells, last = map(self._quoted, cells)
            last = pc.binary_join_element_wise(last, pa.scalar(newline), "")
            lines = pc.binary_join_element_wise(*cells, last, self.dialect.delimiter)
            text = _bytes_of(lines)
        encoding = self.dialect.encoding
        if encoding.lower().replace("_", "-") in ("utf-8", "ascii"):
            return text
        return text.decode().encode(encoding)

    def _unquoted(self, cells) -> bytes:
        """Returns rows without any quote; raises ArrowInvalid if one is needed."""
        import pyarrow as pa
        import pyarrow.csv

        output = pa.BufferOutputStream()
        options = pyarrow.csv.WriteOptions(
            include_header=False,
            delimiter=self.dialect.delimiter,
            quoting_style="none",
            batch_size=1 << 14,
        )
        table = pa.table(cells, names=[str(n) for n in range(len(cells))])
        pyarrow.csv.write_csv(table, output, options)
        return output.getvalue().to_pybytes()

    def _quoted(self, column):
        pc = _compute()

        pattern = QUOTED.replace("[", "[" + re.escape(self.dialect.delimiter), 1)
        special = pc.match_substring_regex(column, pattern)
        if not pc.any(special).as_py():
            return column
        doubled = pc.replace_substring(column, '"', '""')
        quoted = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(special, quoted, column)

    def head(self, columns: Sequence[int], gap: bool) -> bytes:
        """Returns the byte order mark and the header."""
        dialect = self.dialect
        rows = [[self.header[n] for n in columns] + ["gap"] * gap]
        below = [units.split_name(self.header[n])[1] != self.units[n] for n in columns]
        if any(below):  # The file gives its units in a row of their own.
            rows.append([self.units[n] for n in columns] + [""] * gap)
        text = io.StringIO(newline="")
        table = csv.writer(
            text, delimiter=dialect.delimiter, lineterminator=dialect.newline
        )
        table.writerows(rows)
        return dialect.mark + text.getvalue().encode(dialect.encoding)


@contextlib.contextmanager
def _csv_writer(recording, path, columns, gap):
    zipped = path.name.lower().endswith(".gz")
    with writing.replacing(path) as plain, contextlib.ExitStack() as stack:
        file: Any = plain
        if zipped:
            file = gzip.GzipFile("", "wb", 6, plain, mtime=0)  # Its header has no name.
            stack.enter_context(file)
        file.write(recording.head(columns, gap))
        yield lambda values, gaps: file.write(recording.lines(values, gaps))


def decimal_text(
    values: np.ndarray, decimal: str = ".", missing: str = "", unknown=None
):
    """Returns numbers as an Arrow array of text, with the fewest digits that suffice.

    NaN is missing, and so are the numbers that ``unknown`` marks.

    Example:
      >>> decimal_text(np.float32([0.1, np.nan, 2]), ",").to_pylist()
      ['0,1', '', '2']
    """
    import pyarrow as pa

    pc = _compute()
    unknown = np.isnan(values) if unknown is None else unknown
    text = pc.cast(pa.array(values, mask=unknown if unknown.any() else None), "string")
    if decimal != ".":
        text = pc.replace_substring(text, ".", decimal)
    return pc.fill_null(text, missing)


def _bytes_of(lines) -> bytes:
    """Returns the concatenated strings of an Arrow array, without a loop."""
    if not len(lines):
        return b""
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    first, last = offsets[lines.offset], offsets[lines.offset + len(lines)]
    return memoryview(lines.buffers()[2])[int(first) : int(last)].tobytes()


class ArrowRecording:
    """A Parquet or Feather file; attributes as in ``CsvRecording``."""

    def __init__(self, path: Path, read: Callable[[], bytes] | None = None):
        import pyarrow as pa
        import pyarrow.parquet as pq

        content: Any = None if read is None else pa.BufferReader(read())

        self.path = path
        self._file: Any
        self._parquet = suffix_of(path) in (".parquet", ".pq")
        try:
            if self._parquet:
                self._file = pq.ParquetFile(content or path)
                self.schema = self._file.schema_arrow
            else:
                self._file = pa.ipc.open_file(content or pa.memory_map(str(path)))
                self.schema = self._file.schema
        except (pa.ArrowException, OSError):
            raise self._damaged() from None
        self.header = list(self.schema.names)
        split = [units.split_name(name) for name in self.header]
        self.names, self.units = ([*each] for each in zip(*split, strict=True))
        self.decimal = "."
        self.losses: collections.Counter[str] = collections.Counter()
        self.first_malformed = None

    def batches(self) -> Iterator[Batch]:
        """Yields the rows."""
        if self._parquet:
            found = self._file.iter_batches(batch_size=ROWS)
        else:
            count = self._file.num_record_batches
            found = (self._file.get_batch(n) for n in range(count))
        while (batch := self._valid(found)) is not None:
            for first in range(0, batch.num_rows, ROWS):
                part = batch.slice(first, ROWS)
                yield Batch(list(part.columns), part.num_rows)

    def _valid(self, found):
        """Returns the next batch without damage; None at the end."""
        import pyarrow as pa

        try:
            batch = next(found, None)
            if batch is not None:
                batch.validate(full=True)  # Damaged offsets would end the process.
            return batch
        except (pa.ArrowException, OSError):
            raise self._damaged() from None

    def _damaged(self):
        kind = "Parquet" if self._parquet else "Feather (version 2)"
        return ValueError(
            f"{str(self.path)!r} must be a {kind} file, got other or damaged content; "
            "write it again."
        )

    @contextlib.contextmanager
    def writer(self, path: Path, columns: Sequence[int], gap: bool):
        """Yields a function that writes columns to a file of the same kind."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        opened = None
        with writing.replacing(path) as file:

            def write(values, gaps):
                nonlocal opened
                arrays = []
                for index, value in zip(columns, values, strict=True):
                    if isinstance(value, np.ndarray):
                        kind = self.schema.field(index).type
                        double = pa.types.is_float64(kind)
                        kind = pa.float64() if double else pa.float32()
                        value = pa.array(value, mask=np.isnan(value)).cast(kind)
                    arrays.append(value)
                names = [self.header[n] for n in columns]
                if gaps is not None:
                    arrays, names = [*arrays, gaps], [*names, "gap"]
                table = pa.table(arrays, names=names)
                if opened is None:
                    if self._parquet:
                        opened = pq.ParquetWriter(file, table.schema)
                    else:
                        opened = pa.ipc.new_file(file, table.schema)
                opened.write_table(table)

            try:
                yield write
            finally:
                if opened is not None:
                    opened.close()

    def times_text(self, times: np.ndarray, index: int, unknown=None):
        """Returns times as an Arrow array of the type of a column."""
        return of_type(times, self.schema.field(index).type, unknown)

    def empty(self, index: int):
        """Returns a column without rows."""
        import pyarrow as pa

        return pa.array([], self.schema.field(index).type)


def without_text(column, times: np.ndarray):
    """Returns a column of times whose text is missing where it gives no time.

    Such a cell may hold a comment or a shifted sample.

    Args:
      column: Arrow array.
      times: ``float64[n]``, NaN where the time is unknown.
    """
    import pyarrow as pa

    unknown = ~np.isfinite(times)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not text or not unknown.any():
        return column
    nothing = pa.scalar(None, column.type)
    return _compute().if_else(pa.array(unknown), nothing, column)


def dates_text(dates: np.ndarray):
    """Returns ``datetime64[us]`` in UTC as an Arrow array of ISO 8601."""
    import pyarrow as pa

    return pa.array(np.char.add(np.datetime_as_string(dates), "Z"))


def of_type(times: np.ndarray, kind, unknown=None):
    """Returns numbers or dates as an Arrow array of the type of a column of times.

    Numbers for a column of whole numbers are rounded. Numbers for a column of dates or
    text, such as seconds since the start, stay numbers.

    Args:
      times: ``float64[n]``, ``int64[n]`` or ``datetime64[us]``.
      kind: Arrow type of the column.
      unknown: ``bool[n]``, whether a time is missing.

    Example:
      >>> import pyarrow as pa
      >>> of_type(np.array([0.4, 19.6]), pa.int32()).to_pylist()
      [0, 20]
    """
    import pyarrow as pa

    if times.dtype.kind == "M":
        if pa.types.is_timestamp(kind):
            per_s = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
            ticks = times.astype(np.int64)
            down = max(1, 10**6 // per_s)
            ticks = (ticks + down // 2) // down * max(1, per_s // 10**6)
            return pa.array(ticks).cast(kind)
        return (
            pa.array(times).cast(kind) if pa.types.is_date(kind) else dates_text(times)
        )
    if pa.types.is_integer(kind):
        unknown = ~np.isfinite(times) if unknown is None else unknown
        whole = np.round(np.where(unknown, 0, times)).astype(np.int64)
        return pa.array(whole, mask=unknown).cast(kind)
    array = pa.array(times, mask=unknown)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return array.cast(kind)
    return array
