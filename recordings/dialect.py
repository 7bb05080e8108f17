"""Detection of the dialect of a CSV file from its first bytes.

A dialect is the encoding, delimiter, decimal mark, line ending and header of a file.
``sniff`` detects it from the bytes alone: files of spreadsheets in any locale, of
loggers with lines of metadata before the header, and of phones.
"""

import codecs
import collections
import csv
import re
from typing import NamedTuple

from jaxanon.recordings import units

HEAD_BYTES = 1 << 16  # Bytes that ``sniff`` needs.
DELIMITERS = ",;\t|"  # And blanks, if none of these separates cells.
MAX_PREAMBLE = 100  # Lines before the header.
_MARKS = (  # A longer mark first: UTF-32 begins like UTF-16.
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
_DIGITS = re.compile(r"[-+\d.,;|\s]*\d[-+\d.,;|\s]*")  # Also parts of two numbers.
_MISSING = {"", "na", "nan", "null", "none", "n/a", "#n/a", "inf", "-inf"}


class Dialect(NamedTuple):
    """Dialect of a CSV file.

    Attributes:
      encoding: name of the text encoding, without its byte order mark.
      mark: byte order mark at the beginning of the file; may be empty.
      delimiter: character between cells; a blank stands for any run of blanks.
      decimal: decimal mark of numbers, ``"."`` or ``","``; empty if the first bytes
        hold no number with a fraction.
      newline: line ending.
      header: cells of the header as they are written, without quotes.
      names: column names without units.
      units: one unit per column; empty if the header gives none.
      first_line: line number of the first row, counted from 1.
      preamble: lines before the header, without comments.
    """

    encoding: str
    mark: bytes
    delimiter: str
    decimal: str
    newline: str
    header: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    first_line: int
    preamble: tuple[str, ...]


def encoding_of(head: bytes) -> tuple[str, bytes]:
    """Returns ``(encoding, byte order mark)`` of a file from its first bytes.

    UTF-16 without a mark is recognised by its zero bytes. Everything else is UTF-8;
    other encodings must be stated, because bytes alone cannot distinguish them.

    Example:
      >>> encoding_of("time,x".encode("utf-16"))
      ('utf-16-le', b'\\xff\\xfe')
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, mark
    even, odd = head[:4096:2], head[1:4096:2]
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if len(head) > 8 and zeros.count(0) > 0.7 * len(zeros) and 0 not in others:
            return encoding, b""
    return "utf-8", b""


class Utf8:
    """Conversion of the text of a CSV file to UTF-8, a block of bytes at a time.

    Bytes that are not in the encoding become U+FFFD. All readers use this class, so
    that they agree on damaged files. A number or time with U+FFFD is malformed, and
    readers refuse a name with it. It does not matter in a column that is not read.

    Args:
      encoding: name of the text encoding.

    Example:
      >>> text = Utf8("utf-16-le")
      >>> text.feed(b"a"), text.feed(b"\\0b\\0\\xff", ended=True).decode()
      (b'', 'ab\ufffd')
    """

    def __init__(self, encoding: str):
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._is_utf8 = codecs.lookup(encoding).name in ("utf-8", "ascii")

    def feed(self, data: bytes, ended: bool = False) -> bytes:
        """Returns the text that the next bytes complete."""
        if self._is_utf8 and data.isascii() and not self._decoder.getstate()[0]:
            return data
        return self._decoder.decode(data, ended).encode(errors="replace")


def to_utf8(data: bytes, encoding: str) -> bytes:
    """Returns the whole text of a file in UTF-8; see ``Utf8``."""
    blocks = range(0, len(data), HEAD_BYTES) if len(data) > HEAD_BYTES else (0,)
    if codecs.lookup(encoding).name == "utf-8":
        strict = codecs.getincrementaldecoder(encoding)()
        try:
            for at in blocks:  # Without a copy of valid text.
                strict.decode(data[at : at + HEAD_BYTES], at == blocks[-1])
            return data
        except UnicodeDecodeError:
            pass
    text = Utf8(encoding)
    parts = [text.feed(data[at : at + HEAD_BYTES], at == blocks[-1]) for at in blocks]
    return b"".join(parts)


def single_blanks(lines: bytes) -> bytes:
    """Returns whole lines with one blank between cells, and none around them."""
    lines = re.sub(rb"[ \t]+", b" ", lines)
    return re.sub(rb"(?:\A|(?<=[\r\n])) | (?=[\r\n]|\Z)", b"", lines)


def split_cells(line: str, delimiter: str) -> list[str]:
    """Returns the cells of one line, without quotes and blanks around them.

    Example:
      >>> split_cells('1; "a;b";', ";")
      ['1', 'a;b', '']
    """
    if delimiter == " ":
        line = " ".join(line.split())
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def strict_cells(row: str, delimiter: str) -> list[str] | None:
    """Returns the cells of one row; None if a quote is within a cell or does not end.

    All readers decide by this function which rows with quotes are malformed.

    Example:
      >>> strict_cells('1,"a ""b"", c"', ","), strict_cells('1,"a', ",")
      (['1', 'a "b", c'], None)
    """
    try:
        rows = list(
            csv.reader(
                row.splitlines(keepends=True),
                delimiter=delimiter,
                skipinitialspace=True,
                strict=True,
            )
        )
    except (csv.Error, ValueError):
        return None
    return rows[0] if len(rows) == 1 else None


def is_number(cell: str) -> bool:
    """Returns whether a cell is a number, with either decimal mark, or missing."""
    return cell.lower() in _MISSING or _NUMBER.fullmatch(cell) is not None


def sniff(
    head: bytes,
    where: str = "the file",
    *,
    encoding: str | None = None,
    names: tuple[str, ...] | None = None,
) -> Dialect:
    """Detects the dialect of a CSV file.

    Args:
      head: the first ``HEAD_BYTES`` bytes of the file, or all of it.
      where: name of the file in error messages.
      encoding: text encoding; None detects UTF-8 and UTF-16.
      names: column names of a file without a header; None reads the header.

    Raises:
      ValueError: if the text is not in the encoding, or no line names the columns. The
        message never quotes the file.

    Example:
      >>> dialect = sniff(b"# made by us\\ntime [ms];AccX (mg)\\n0;1,5\\n20;-2,25\\n")
      >>> dialect.delimiter, dialect.decimal, dialect.names, dialect.units
      (';', ',', ('time', 'AccX'), ('ms', 'mg'))
    """
    found, mark = encoding_of(head)
    encoding = encoding or found
    text = _decode(head[len(mark) :], encoding, where)
    newline = next(iter(re.findall(r"\r\n|\n|\r", text)), "\n")
    lines = re.split(r"\r\n|\n|\r", text)
    if len(head) >= HEAD_BYTES and len(lines) > 2:
        lines.pop()  # The last line may be cut.
    stated = None
    content = []  # (line number, line) without blank lines and comments.
    for number, line in enumerate(lines, 1):
        if match := re.fullmatch(r"sep=(.)", line.strip("\"' ")):
            stated = match[1] if match[1] in DELIMITERS else stated
        elif line.strip() and not line.startswith("#"):
            content.append((number, line))
    if not content:
        raise ValueError(f"{where}: it must hold a header and rows, got no line.")
    delimiter, at = _header_of(content, stated, names)
    if names is None:
        header = split_cells(content[at][1], delimiter)
        rows = content[at + 1 :]
    else:
        header, rows = list(names), content
    cells = [split_cells(line, delimiter) for _, line in rows[:200]]
    if any("\N{REPLACEMENT CHARACTER}" in cell for cell in header):
        raise ValueError(
            f"{where}, line {content[at][0]}: the text must be {encoding.upper()}, got "
            "other bytes; give the encoding (--encoding), such as latin-1."
        )
    header, unit_row = _complete(header, cells, names is None)
    split = [units.split_name(name) for name in header]
    its_units = [unit for _, unit in split]
    if unit_row:
        its_units = [a or b for a, b in zip(its_units, cells[0], strict=True)]
        rows, cells = rows[1:], cells[1:]
    first = rows[0][0] if rows else content[-1][0] + 1
    return Dialect(
        encoding=encoding,
        mark=mark,
        delimiter=delimiter,
        decimal=_decimal_of(cells),
        newline=newline,
        header=tuple(header),
        names=tuple(name for name, _ in split),
        units=tuple(its_units),
        first_line=first,
        preamble=tuple(line for _, line in content[:at]) if names is None else (),
    )


def _decode(data, encoding, where):
    try:
        # A head may end within a character, and a row may be damaged.
        return data.decode(encoding, errors="replace")
    except LookupError as error:
        raise ValueError(
            f"encoding must be a name that Python knows, such as 'latin-1', got "
            f"{encoding!r}."
        ) from error


def _header_of(content, stated, names):
    """Returns the delimiter, and the index of the header in ``content``."""
    candidates = stated or DELIMITERS + " "
    best = None
    for delimiter in candidates:
        if not any(delimiter in line for _, line in content):
            continue
        cells = [split_cells(line, delimiter) for _, line in content[:300]]
        at = 0 if names is not None else _header_index(cells)
        width = len(names) if names is not None else len(cells[at])
        if width < 2:
            continue
        fits = sum(len(row) in (width, width + 1) for row in cells[at + 1 :])
        numeric = [len(row) >= width and any(map(is_number, row)) for row in cells]
        numbers = sum(numeric[at + 1 :])
        others = len(cells) - at - numbers + sum(numeric[:at])  # Also rows before it.
        # Blanks also separate the words of a text; they count only as a last resort.
        most = 2 * fits > len(cells) - at - 1
        score = most, delimiter != " ", numbers / (numbers + others), width
        if best is None or score > best[0]:
            best = score, delimiter, at
    return (",", 0) if best is None else best[1:]


def _header_index(cells):
    """Returns the index of the header: the first line of the width of the rows."""
    tail = cells[len(cells) // 2 :]
    width, _ = collections.Counter(map(len, tail)).most_common(1)[0]
    for wanted in (width, width - 1):  # Rows may begin or end with an untitled cell.
        for index, row in enumerate(cells[:MAX_PREAMBLE]):
            if len(row) == wanted and not any(map(_DIGITS.fullmatch, row)):
                return index
    return 0


def _complete(header, cells, has_header):
    """Returns the header with a name for each cell, and whether units follow it."""
    widths = collections.Counter(map(len, cells))
    if len(header) + 1 == max(widths, key=lambda n: widths[n], default=0):
        wide = [row for row in cells if len(row) == len(header) + 1]
        if not any(row[-1] for row in wide):
            header = [*header, ""]  # Rows end in a delimiter.
        elif has_header:
            header = ["", *header]  # Rows begin with a number or name without title.
    first = cells[0] if cells and len(cells[0]) == len(header) else []
    known = [units.find(cell) is not None for cell in first]
    plain = all(
        ok or not is_number(cell) or not cell
        for ok, cell in zip(known, first, strict=True)
    )
    blank = [not cell for cell in first]
    unit_row = has_header and len(cells) > 1 and any(known) and plain
    unit_row &= all(a or b for a, b in zip(known, blank, strict=True))
    return header, bool(unit_row)


def _decimal_of(cells):
    """Returns the decimal mark of whole cells that are numbers; empty if none is."""
    counts = collections.Counter()
    for row in cells:
        for cell in row:
            if _NUMBER.fullmatch(cell):
                counts[","] += "," in cell
                counts["."] += "." in cell
    mark, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return mark if count else ""
