"""Dialects of CSV files are detected from their first bytes."""

import pytest

from jaxanon.recordings.dialect import HEAD_BYTES, sniff

ROWS = "0.0,1.5,walk\n0.5,-2.25,run\n1.0,3.0,run\n"


def found(text, encoding="utf-8", **choice):
    """Returns delimiter, decimal mark, names and first line."""
    dialect = sniff(text.encode(encoding), **choice)
    return dialect.delimiter, dialect.decimal, dialect.names, dialect.first_line


NAMES = ("time", "x", "act")
# By commas, a row without the first number has two texts, like a header.
DATE = "2026-03-02T08:00:00,125Z"
DATED, EMPTY, NUMBERED = f"1,5;{DATE};run\n", f";{DATE};run\n", "1,5;7,25;run\n"
CASES = {
    "plain": ("time,x,act\n" + ROWS, (",", ".", NAMES, 2)),
    "semicolons and decimal commas": (
        "time;x;act\n" + ROWS.replace(",", ";").replace(".", ","),
        (";", ",", NAMES, 2),
    ),
    "tabs": (("time,x,act\n" + ROWS).replace(",", "\t"), ("\t", ".", NAMES, 2)),
    "pipes": (("time,x,act\n" + ROWS).replace(",", "|"), ("|", ".", NAMES, 2)),
    "blanks": (("time,x,act\n" + ROWS).replace(",", "  "), (" ", ".", NAMES, 2)),
    "commas between quoted decimal commas": (
        '"time","x"\n"0,5","1,25"\n"1,0","2,5"\n',
        (",", ",", ("time", "x"), 2),
    ),
    "integers": ("a;b\n1;2\n3;4\n", (";", "", ("a", "b"), 2)),
    "a name with the delimiter": (
        'time,"acc, x",act\n' + ROWS,
        (",", ".", ("time", "acc, x", "act"), 2),
    ),
    "a line for spreadsheets": (
        "sep=;\ntime;x\n1;2,5\n",
        (";", ",", ("time", "x"), 3),
    ),
    "comments": ("# a, b, c, d\n\n#\ntime,x,act\n" + ROWS, (",", ".", NAMES, 5)),
    "metadata before the header": (
        "Serial: 12\nStart, 2026-03-02\nOwner: a, b\n\ntime,x,act\n" + ROWS,
        (",", ".", NAMES, 6),
    ),
    "a line of units": ("time,x,act\ns,m/s^2,\n" + ROWS, (",", ".", NAMES, 3)),
    "delimiters at the end of rows": (
        "time,x,act\n" + ROWS.replace("\n", ",\n"),
        (",", ".", (*NAMES, ""), 2),
    ),
    "numbers of rows without a title": (
        "x,y\n0,1.5,2.5\n1,2.5,3.5\n",
        (",", ".", ("", "x", "y"), 2),
    ),
    "an empty first cell before decimal commas": (
        "x;time;act\noh\n" + DATED * 3 + EMPTY + DATED * 9,
        (";", ",", ("x", "time", "act"), 2),
    ),
    "damaged rows and an empty first cell before decimal commas": (
        "x;time;act\n" + "oh\n" * 5 + EMPTY.replace(DATE, "7,25") + NUMBERED * 9,
        (";", ",", ("x", "time", "act"), 2),
    ),
    "one column": ("x\n1.5\n2.5\n", (",", ".", ("x",), 2)),
    "only a header": ("time,x\n", (",", "", ("time", "x"), 2)),
    "one damaged row": ("x,y,act\n1,2\n", (",", "", ("x", "y", "act"), 2)),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("case", CASES)
def test_dialects(case, newline, encoding):
    text, wanted = CASES[case]
    assert found(text.replace("\n", newline), encoding) == wanted


def test_units_of_the_header_and_of_the_next_line():
    assert sniff(b"time [ms],AccX (mg),y\n1,2,3\n2,3,4\n").units == ("ms", "mg", "")
    assert sniff(b"time,x,y [g]\ns,mg,\n1,2,3\n").units == ("s", "mg", "g")
    # A row of text is not a line of units.
    assert sniff(b"act,who\nsit,ann\nrun,bob\n").first_line == 2


def test_preamble_and_newline_are_kept():
    dialect = sniff(b"Start 13:00\r\nx,y\r\n1,2\r\n2,3\r\n3,4\r\n")
    assert (dialect.preamble, dialect.newline) == (("Start 13:00",), "\r\n")


def test_a_head_that_ends_within_a_row_and_a_character():
    row = "0.5,1.5,a\u00e9\n"
    text = "time,x,act\n" + row * (HEAD_BYTES // 8)
    for cut in range(6):
        head = text.encode()[: HEAD_BYTES - cut]
        assert sniff(head + b" " * cut).names == NAMES


def test_latin_1_is_read_only_if_stated():
    head = "time,stra\u00dfe\n1,2\n2,3\n".encode("latin-1")
    with pytest.raises(
        ValueError, match=r"a\.csv, line 1: the text must be UTF-8.*lati"
    ):
        sniff(head, "a.csv")
    assert sniff(head, encoding="latin-1").names == ("time", "stra\u00dfe")
    with pytest.raises(ValueError, match="encoding must be a name that Python knows"):
        sniff(head, encoding="klingon")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only a comment\n"])
def test_a_file_without_lines_is_refused(text):
    with pytest.raises(ValueError, match=r"a\.csv: it must hold a header and rows"):
        sniff(text, "a.csv")


def test_utf_16_without_a_mark():
    text = "time,x\n0.5,1\n1.5,2\n"
    for encoding in ("utf-16-le", "utf-16-be"):
        assert sniff(text.encode(encoding)).encoding == encoding
