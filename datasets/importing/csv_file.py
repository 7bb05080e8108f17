"""Columns of a CSV file as Arrow arrays.

Well-formed text goes through ``pyarrow.csv``. Text that it would misread, such as a
quote that does not end, goes line by line through the ``csv`` module. Both count rows
that cannot be read by cause, and never quote them.
"""

import collections
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxanon.recordings import dialect as dialects

MALFORMED = "malformed row"  # Cause of losses: another number of cells, or broken text.
DAMAGED = "\N{REPLACEMENT CHARACTER}"  # Stands for bytes outside the encoding.
MAX_CELL_LINES = 20  # Longest quoted cell; a longer one is a quote that does not end.
# Cells that mean a missing number, in the spellings that pyarrow compares.
NULLS = (
    *("", "NA", "na", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN"),
    *("null", "NULL", "Null", "none", "None", "NONE"),
)
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?"
)


class Read(NamedTuple):
    """Columns of a CSV file.

    Attributes:
      columns: Arrow array by column index; text, unless all cells fit the wish.
      malformed: number of rows that could not be read.
      first_malformed: line of the first of them; None if there is none.
      line_of: function from row to line number, for messages.
    """

    columns: dict[int, Any]
    malformed: int
    first_malformed: int | None
    line_of: Any


def read(
    data: bytes,
    dialect: dialects.Dialect,
    numbers: Sequence[int],
    texts: Sequence[int],
    time: int | None,
    where: str = "the file",
) -> Read:
    """Reads columns of a whole file.

    Malformed rows are dropped if there is a time column, which shows the gap. Without
    times they stay as rows without any value, so that no window spans them.

    Args:
      data: content of the file.
      dialect: its dialect.
      numbers, texts, time: indices of the columns to read.
      where: name of the file in error messages.

    Raises:
      ValueError: if a text column is in another encoding.
    """
    data = dialects.to_utf8(data[len(dialect.mark) :], dialect.encoding)
    data = data.removeprefix(b"\xef\xbb\xbf")
    start = _offset(data, dialect.first_line)
    body = data[start:] if start else data
    if body.find(b"#", 0, 1) == 0 or b"\n#" in body or b"\r#" in body:
        body = re.sub(rb"(?:\A|(?<=[\r\n]))#[^\r\n]*(?:\r\n|\r|\n|\Z)", b"", body)
    if dialect.delimiter == " ":
        body = dialects.single_blanks(body)
    plain = b'"' not in body or quotes_fit(body, dialect.delimiter.encode())
    if plain and DAMAGED.encode() in body:  # To name the line of a damaged name.
        plain = not texts
    found = _fast(body, dialect, numbers, texts, time) if plain else None
    if found is not None and not found.malformed:
        return found._replace(line_of=lambda row: _line_of(data, dialect, row))
    if found is not None and time is not None:
        lines = _records(data, dialect)
        first = next((line for line, cells in lines if cells is None), None)
        return found._replace(
            first_malformed=first, line_of=lambda row: _line_of(data, dialect, row)
        )
    return _slow(data, dialect, numbers, texts, time, where)


def _fast(body, dialect, numbers, texts, time):
    """Reads through pyarrow; malformed rows are dropped and counted."""
    import pyarrow as pa
    import pyarrow.csv

    malformed = 0

    def skip(row):
        nonlocal malformed
        malformed += bool(row.text.strip())
        return "skip"

    text = pa.dictionary(pa.int32(), pa.string())
    types = {str(n): pa.float64() for n in numbers} | {str(n): text for n in texts}
    if time is not None:
        types[str(time)] = _time_type(body, dialect, time)
    names = [str(n) for n in range(len(dialect.header))]
    used = sorted(types, key=int)
    if not body.strip():
        empty = {int(n): pa.array([], types[n]) for n in used}
        return Read(empty, 0, None, None)
    for given in (types, types | {n: pa.string() for n in used if types[n] != text}):
        malformed = 0
        try:
            table = pyarrow.csv.read_csv(
                pa.py_buffer(body),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=names, block_size=1 << 22
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=dialect.delimiter, invalid_row_handler=skip
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=given,
                    include_columns=used,
                    null_values=list(NULLS),
                    decimal_point=dialect.decimal or ".",
                ),
            )
        except pa.ArrowInvalid:
            continue
        return Read({int(n): table[n] for n in used}, malformed, None, None)
    return None


def _slow(data, dialect, numbers, texts, time, where):
    """Reads line by line; malformed rows without time become blank rows."""
    import pyarrow as pa

    indices = (*numbers, *texts, *(() if time is None else (time,)))
    cells: dict[int, list] = {n: [] for n in indices}
    lines, malformed, first = [], 0, None
    for line, row in _records(data, dialect):
        if row is None:
            malformed += 1
            first = line if first is None else first
            if time is not None:
                continue
        lines.append(line)
        for n in indices:
            cell = "" if row is None else row[n]
            if n in texts and DAMAGED in cell:
                raise ValueError(
                    f"{where}, line {line}: the text must be "
                    f"{dialect.encoding.upper()}, got other bytes; give the encoding "
                    "(--encoding), such as latin-1."
                )
            cells[n].append(cell)
    return Read(
        {n: pa.array(cells[n], pa.string()) for n in indices},
        malformed,
        first,
        lambda row: lines[row],
    )


def _records(data, dialect) -> Iterator[tuple[int, list[str] | None]]:
    """Yields the line and the cells of each row; None for malformed rows."""
    width, delimiter = len(dialect.header), dialect.delimiter
    start = _offset(data, dialect.first_line)
    matches = (match[0] for match in _LINE.finditer(data, start) if match[0])
    lines = enumerate(matches, dialect.first_line)
    waiting: collections.deque[tuple[int, bytes]] = collections.deque()

    def peek(index):
        while len(waiting) <= index:
            if (more := next(lines, None)) is None:
                return None
            waiting.append(more)
        return waiting[index]

    while peek(0):
        number, record = waiting.popleft()
        if not record.strip() or record.startswith(b"#"):
            continue
        taken = 0
        while record.count(b'"') % 2 and taken < MAX_CELL_LINES and peek(taken):
            record += waiting[taken][1]
            taken += 1
        cells = _split(record, delimiter)
        if cells is None or len(cells) != width:
            yield number, None
            continue
        for _ in range(taken):
            waiting.popleft()
        yield number, cells


def _split(line, delimiter):
    """Returns the cells of a row; None if it is malformed."""
    text = line.decode().rstrip("\r\n")
    if delimiter == " ":
        text = " ".join(text.split())
    cells = dialects.strict_cells(text, delimiter)
    return None if cells is None else [cell.strip() for cell in cells]


def _offset(data, first_line):
    """Returns the offset of a line, counted from 1."""
    offset = 0
    for _ in range(first_line - 1):
        match = _LINE.match(data, offset)
        offset = len(data) if match is None else match.end()
    return offset


def _line_of(data, dialect, row):
    """Returns the line number of a row that was read."""
    rows = (line for line, cells in _records(data, dialect) if cells is not None)
    return next(itertools.islice(rows, row, None), dialect.first_line + row)


def quotes_fit(body, delimiter) -> bool:
    """Returns whether each quote begins or ends a cell of one line, or is doubled."""
    codes = np.frombuffer(body, np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    if len(quotes) % 2 or not len(quotes):
        return not len(quotes)
    is_edge = np.zeros(256, bool)
    is_edge[np.frombuffer(delimiter + b"\r\n", np.uint8)] = True
    opening, closing = quotes[::2], quotes[1::2]
    before, after = codes[opening - 1], codes[np.minimum(closing + 1, len(codes) - 1)]
    doubled = np.append(False, opening[1:] == closing[:-1] + 1)
    begins = is_edge[before] | (opening == 0) | doubled
    ends = is_edge[after] | (closing == len(codes) - 1)
    ends[:-1] |= doubled[1:]
    if not (begins.all() and ends.all()):
        return False
    breaks = np.flatnonzero((codes == ord("\n")) | (codes == ord("\r")))
    return bool(
        (np.searchsorted(breaks, opening) == np.searchsorted(breaks, closing)).all()
    )


def _time_type(body, dialect, time):
    """Returns the Arrow type of the time column, from its first cells."""
    import pyarrow as pa

    lines = (match[0] for match in itertools.islice(_LINE.finditer(body), 50))
    rows = [
        dialects.split_cells(
            line.decode(errors="replace").strip("\r\n"), dialect.delimiter
        )
        for line in lines
    ]
    cells = [row[time] for row in rows if len(row) == len(dialect.header)]
    cells = [cell for cell in cells if cell not in NULLS]
    if cells and all(re.fullmatch(r"-?\d{1,19}", cell) for cell in cells):
        return pa.int64()
    if cells and all(map(dialects.is_number, cells)):
        return pa.float64()
    matches = [_ISO.fullmatch(cell) for cell in cells]
    if cells and all(matches):
        zones = {bool(match[3]) for match in matches if match}
        if len(zones) == 1:
            return pa.timestamp("ns", "UTC" if zones.pop() else None)
    return pa.string()
