"""Files of recordings: all columns as they are written, and files of the same form."""

import collections
import contextlib
import csv
import functools
import gzip
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.importing.csv_file import MALFORMED
from jaxanon.recordings import dialect as dialects
from jaxanon.recordings import units

BLOCK = 1 << 23  # Bytes of CSV text at a time.
ROWS = 1 << 18  # Rows of a Parquet file at a time.
CSV = ".csv", ".tsv", ".txt"
HDF5 = ".h5", ".hdf5", ".hdf"
ARROW = ".parquet", ".feather", ".arrow"
SUFFIXES = *CSV, *(f"{each}.gz" for each in CSV), *ARROW, *HDF5
QUOTED = r'["\r\n]'


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
    """A binary file that notes whether quotes were read."""

    def __init__(self, file):
        self._file, self.quoted = file, False

    def readable(self):
        return True

    def read(self, size=-1, /):
        data = self._file.read(size)
        self.quoted = self.quoted or b'"' in data
        return data


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
        except (OSError, EOFError) as error:
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

        def skip(row):
            if row.text.strip() and not row.text.startswith("#"):
                # A quote that does not end swallows rows.
                self.losses[MALFORMED] += len(row.text.strip().splitlines())
                if self.first_malformed is None and row.number is not None:
                    self.first_malformed = row.number
            return "skip"

        with self._open() as raw:
            file: Any = raw
            first, delimiter = self.dialect.first_line, self.dialect.delimiter
            if delimiter == " ":  # A run of blanks counts as one.
                text = raw.read()[len(self.dialect.mark) :].decode(
                    self.dialect.encoding, "replace"
                )
                text = re.sub(r"[ \t]+", " ", text)
                text = re.sub(r"(?m)^ | $", "", text)
                file, encoding = io.BytesIO(text.encode()), "utf-8"
            else:
                raw.seek(len(self.dialect.mark))
                encoding = self.dialect.encoding
            source = _Source(file)
            try:
                reader = pyarrow.csv.open_csv(
                    source,
                    read_options=pyarrow.csv.ReadOptions(
                        column_names=names,
                        skip_rows=first - 1,
                        block_size=BLOCK,
                        encoding=encoding,
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
                    if source.quoted:
                        columns = self._without_swallowed(columns)
                    yield Batch(columns, len(columns[0]))
            except (pa.ArrowException, UnicodeError) as error:
                if "Empty CSV" in str(error):
                    return
                # Arrow's messages quote rows.
                raise ValueError(
                    f"{str(self.path)!r} must be CSV in {encoding.upper()} with "
                    f"{width} cells in each row, like the header, got text that cannot "
                    "be parsed; check quotes and encoding (--encoding)."
                ) from None

    def _without_comments(self, columns) -> list:
        """Drops comments with as many delimiters as rows."""
        pc = _compute()

        comment = pc.starts_with(columns[0], "#")
        if not pc.any(comment).as_py():
            return columns
        return [column.filter(pc.invert(comment)) for column in columns]

    def _without_swallowed(self, columns) -> list:
        """Drops and counts rows with a cell of several rows: a quote did not end.

        Such a cell has line ends and delimiters, and holds raw samples.
        """
        pc = _compute()

        pattern = r"(?s)[\r\n].*" + re.escape(self.dialect.delimiter)
        found = [pc.match_substring_regex(column, pattern) for column in columns]
        swallowed = functools.reduce(pc.or_, found)
        if not pc.any(swallowed).as_py():
            return columns
        for column, which in zip(columns, found, strict=True):
            cells = pc.utf8_rtrim(column.filter(which), "\r\n")
            ends = pc.count_substring_regex(cells, r"\r\n|\r|\n")
            self.losses[MALFORMED] += pc.sum(ends).as_py() or 0
        self.losses[MALFORMED] += pc.sum(swallowed).as_py()
        return [column.filter(pc.invert(swallowed)) for column in columns]

    def writer(self, path: Path, columns: Sequence[int], gap: bool):
        """Returns a context that writes columns to a file of the same dialect."""
        return _csv_writer(self, path, columns, gap)

    def times_text(self, seconds: np.ndarray, unknown=None):
        """Returns numbers as text in the dialect; ``bool[n]`` marks missing ones."""
        return decimal_text(seconds, self.decimal, self.missing, unknown)

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

        delimiter, missing = self.dialect.delimiter, self.missing
        cells = []
        for column in columns:
            if isinstance(column, np.ndarray):
                text = decimal_text(column, self.decimal, missing)
                if self.decimal == delimiter:
                    text = pc.binary_join_element_wise('"', text, '"', "")
            else:
                text = self._quoted(column)
            cells.append(text)
        if gaps is not None:
            cells.append(self._quoted(gaps))
        end = pa.scalar(self.dialect.newline)
        cells[-1] = pc.binary_join_element_wise(cells[-1], end, "")
        lines = pc.binary_join_element_wise(
            *cells, delimiter, null_handling="replace", null_replacement=missing
        )
        text = _bytes_of(lines)
        encoding = self.dialect.encoding
        if encoding.lower().replace("_", "-") in ("utf-8", "ascii"):
            return text
        return text.decode().encode(encoding)

    def _quoted(self, column):
        pc = _compute()

        pattern = QUOTED.replace("[", "[" + re.escape(self.dialect.delimiter), 1)
        special = pc.fill_null(pc.match_substring_regex(column, pattern), False)
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
            file = gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=6, mtime=0)
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
        self._parquet = suffix_of(path) == ".parquet"
        try:
            if self._parquet:
                self._file = pq.ParquetFile(content or path)
                self.schema = self._file.schema_arrow
            else:
                self._file = pa.ipc.open_file(content or pa.memory_map(str(path)))
                self.schema = self._file.schema
        except (pa.ArrowException, OSError):
            kind = "Parquet" if self._parquet else "Feather (version 2)"
            raise ValueError(
                f"{str(path)!r} must be a {kind} file, got other or damaged content; "
                "write it again."
            ) from None
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
        for batch in found:
            for first in range(0, batch.num_rows, ROWS):
                part = batch.slice(first, ROWS)
                yield Batch(list(part.columns), part.num_rows)

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

            yield write
            if opened is not None:
                opened.close()

    def times_text(self, seconds: np.ndarray, unknown=None):
        """Returns numbers as an Arrow array; ``bool[n]`` marks missing ones."""
        import pyarrow as pa

        return pa.array(seconds, mask=unknown)
