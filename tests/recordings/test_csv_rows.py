"""Devices and imports read the same CSV; damaged rows are counted with their line."""

import gzip
import io
import os
import subprocess
import sys
import threading

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon.datasets.importing import cells, reading
from jaxanon.datasets.importing.table import Columns
from jaxanon.recordings.csv_rows import Rows, delimiter_of
from jaxanon.streaming import tables


class Trickle:
    """File whose reads return blocks of the given sizes, cyclically."""

    def __init__(self, data, sizes):
        self._file, self._sizes = io.BytesIO(data), sizes
        self._count = 0

    def read1(self, most):
        self._count += 1
        return self._file.read(min(most, self._sizes[self._count % len(self._sizes)]))

    def close(self):
        self._file.close()


def read(data, sizes=(1 << 20,)):
    rows = Rows(Trickle(data, sizes))
    parts = list(rows)
    width = len(rows.channels)
    times = np.concatenate([np.zeros(0), *(part[0] for part in parts)])
    samples = np.concatenate([np.zeros((0, width)), *(part[1] for part in parts)])
    return rows, times, samples


TEXT = b"""\xef\xbb\xbftime, acc x [g],acc y [m/s2],heart rate
# a comment
0.0,1,2,3
0.02,4,5
0.04,7,8,9,10
0.06,x,8,9

0.08,nan,8.5,9e1\r
0.1,,8,9
0.12,inf,8,9
0.14,1,2,3"""


@hypothesis.given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_rows_are_the_same_however_they_come(sizes):
    rows, times, samples = read(TEXT, sizes)
    assert rows.channels == ("acc x", "acc y", "heart rate")
    assert rows.units == ("g", "m/s2", None)
    np.testing.assert_array_equal(times, [0.0, 0.08, 0.1, 0.12, 0.14])
    wanted = [[1, 2, 3], [np.nan, 8.5, 90], [np.nan, 8, 9], [np.inf, 8, 9], [1, 2, 3]]
    np.testing.assert_array_equal(samples, wanted)
    assert (rows.malformed, rows.first_malformed) == (3, 4)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"0.0,5,6\n", b"time\n1\n", b"# c"])
def test_a_file_without_a_header_is_refused_and_not_shown(text):
    with pytest.raises(ValueError) as raised:
        Rows(io.BytesIO(text))
    assert "the header must name the columns" in str(raised.value)
    assert "5" not in str(raised.value)


def test_a_header_alone_is_no_rows():
    rows, times, _ = read(b"time [s],x")
    assert rows.channels == ("x",) and not len(times) and rows.malformed == 0


@pytest.mark.parametrize("size", [7, 1000, 1 << 16])
def test_a_line_without_end_takes_no_memory(size):
    data = b"time,x\n0,1\n" + b"9" * (3 << 16) + b"\n1,2\n" + b"8" * (2 << 16)
    rows, times, _ = read(data, (size,))
    np.testing.assert_array_equal(times, [0, 1])
    assert rows.malformed == 2


def test_rows_of_a_pipe_come_at_once():
    here, there = os.pipe()
    with open(there, "wb", buffering=0) as pipe, open(here, "rb") as file:
        pipe.write(b"time [s],x\n0,1\n0.5,")
        rows = Rows(file)
        got = iter(rows)
        # Otherwise a failure would wait forever.
        threading.Timer(20, pipe.close).start()
        assert next(got)[0].tolist() == [0.0]
        pipe.write(b"2\n")
        assert next(got)[1].tolist() == [[2.0]]


def test_units_in_brackets_and_known_ones_in_parentheses():
    rows = Rows(io.BytesIO(b"time (ms),x (mg),y [g],z (left)\n20,1,2,3\n"))
    assert rows.channels == ("x", "y", "z (left)")
    assert rows.units == ("mg", "g", None)
    assert next(iter(rows))[0].tolist() == [0.02]


def test_times_of_a_pipe_show_their_unit_in_several_rows():
    here, there = os.pipe()
    with open(there, "wb", buffering=0) as pipe, open(here, "rb") as file:
        pipe.write(b"time,x\n1770000000000,1\n")
        rows = Rows(file)
        got = iter(rows)
        late = b"".join(b"%d,1\n" % (1770000000000 + 20 * n) for n in range(1, 4))
        threading.Timer(0.2, pipe.write, [late]).start()
        threading.Timer(20, pipe.close).start()
        assert next(got)[0].tolist() == [0.02 * n for n in range(4)]
        assert rows.origin == 1770000000


def test_an_ambiguous_unit_is_refused_as_in_an_import():
    text = "".join(f"{20 * n},{n}\n" for n in range(8))
    with pytest.raises(ValueError, match=r"milliseconds\?.*--time-format\) s or ms"):
        list(Rows(io.BytesIO(f"time,x\n{text}".encode())))
    rows = Rows(io.BytesIO(f"time,x\n{text}".encode()), time_format="ms")
    assert next(iter(rows))[0].tolist() == [0.02 * n for n in range(8)]


def test_a_packet_alone_does_not_show_the_unit():
    """Ten rows share each time, so that one packet has no rate."""
    text = "".join(f"{200 * (n // 10)},{n}\n" for n in range(60))
    rows = Rows(Trickle(f"time,x\n{text}".encode(), [40]), rate_hz=50.0)
    times = np.concatenate([part[0] for part in rows])
    np.testing.assert_allclose(times, [0.2 * (n // 10) for n in range(60)], atol=1e-9)


# Input that either reader accepted before the merge: text, and rows of time, x and y.
ROWS = [[0.0, 1.0, 2.0], [0.5, -3.0, 40.0]]
ACCEPTED = {
    "plain": (b"time,x,y\n0,1,2\n0.5,-3,40\n", ROWS),
    "no newline at the end": (b"time,x,y\n0,1,2\n0.5,-3,40", ROWS),
    "CRLF": (b"time,x,y\r\n0,1,2\r\n0.5,-3,40\r\n", ROWS),
    "CR": (b"time,x,y\r0,1,2\r0.5,-3,40\r", ROWS),
    "byte order mark": (b"\xef\xbb\xbftime,x,y\n0,1,2\n0.5,-3,40\n", ROWS),
    "semicolons": (b"time;x;y\n0;1;2\n0.5;-3;40\n", ROWS),
    "tabs": (b"time\tx\ty\n0\t1\t2\n0.5\t-3\t40\n", ROWS),
    "blanks": (b"time , x,  y\n 0 ,1 , 2\n0.5,\t-3,40 \n", ROWS),
    "quotes": (b'"time","x","y"\n"0","1","2"\n0.5, "-3",40\n', ROWS),
    "blank lines": (b"\ntime,x,y\n\n0,1,2\n  \n0.5,-3,40\n\n", ROWS),
    "comments": (b"# of a, b\n#c\ntime,x,y\n# d,e,f\n0,1,2\n#\n0.5,-3,40\n", ROWS),
    "a delimiter at the end": (b"time,x,y,\n0,1,2,\n0.5,-3,40,\n", ROWS),
    "exponents": (b"time,x,y\n0.,+1.0,.2e1\n5e-1,-3E0,4e+1\n", ROWS),
    "units": (b"time,x [g],y [m/s2]\n0,1,2\n0.5,-3,40\n", ROWS),
    "other places": (b"y,time,x\n2,0,1\n40,0.5,-3\n", [[0, 2, 1], [0.5, 40, -3]]),
    "a unit of time": (b"Time [s],x,y\n0,1,2\n0.5,-3,40\n", ROWS),
    "empty cells": (b"time,x,y\n0,,2\n0.5,NA, \n", [[0, None, 2], [0.5, None, None]]),
    "words": (b"time,x,y\n0,null,2\n0.5,NaN,none\n", [[0, None, 2], [0.5, None, None]]),
    "a long line": (b"time,x,y\n0,1,2%s\n0.5,-3,40\n" % (b" " * 6_000), ROWS),
}


def imported(path, names=("x", "y"), time="time"):
    """Returns ``time, *names`` of each row, and the table, as the import reads them."""
    (table,) = reading.tables([path], Columns(channels=tuple(names), time=time))
    return np.column_stack([table.times, table.samples]), table


@pytest.mark.parametrize("case", ACCEPTED)
def test_both_accept_what_either_did(tmp_path, case):
    text, wanted = ACCEPTED[case]
    wanted = np.array(wanted, float)
    for sizes in ((1 << 20,), (1,), (7, 2)):
        rows, times, samples = read(text, sizes)
        np.testing.assert_array_equal(np.column_stack([times, samples]), wanted)
        assert rows.malformed == 0
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    time = "Time [s]" if b"Time" in text else "time"
    found, table = imported(path, rows.channels, time)
    np.testing.assert_array_equal(found, wanted)
    assert not table.losses


DAMAGED = {
    "too few cells": b"0,1",
    "too many cells": b"0,1,2,3",
    "a word": b"0,oh,2",
    "an underscore": b"0,1_0,2",
    "digits of another script": "0,١,2".encode(),
    "a zero byte": b"0,1\0,2",
    "no UTF-8": b"0,1\xff,2",
    "a quote without end": b'0,"1,2',
    "text behind a quote": b'0,"1"5,2',
    "hexadecimal": b"0,0x1,2",
}


def anonymized(path):
    """Returns ``time, x, y`` of each complete row, and the losses, of ``anonymize``."""
    recording = tables.open_recording(path)
    wanted = [recording.names.index(name) for name in ("time", "x", "y")]
    rows = [np.zeros((0, 3))]
    for batch in recording.batches():
        columns = [cells.numbers(batch.columns[n], recording.decimal) for n in wanted]
        for _, wrong in columns:
            recording.losses["cell"] += 0 if wrong is None else int(wrong.sum())
        rows.append(np.column_stack([numbers for numbers, _ in columns]))
    rows = np.concatenate(rows)
    return rows[np.isfinite(rows).all(axis=1)], recording.losses


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("case", DAMAGED)
def test_all_readers_count_what_is_damaged_with_its_line(tmp_path, case, zipped):
    text = b"time,x,y\n0,1,2\n" + DAMAGED[case] + b"\n1,2,3\n"
    rows, times, _ = read(text)
    np.testing.assert_array_equal(times, [0, 1])
    assert (rows.malformed, rows.first_malformed) == (1, 3)
    path = tmp_path / ("a.csv.gz" if zipped else "a.csv")
    path.write_bytes(gzip.compress(text) if zipped else text)
    found, table = imported(path)
    np.testing.assert_array_equal(found, [[0, 1, 2], [1, 2, 3]])
    assert sum(table.losses.values()) == 1 and set(table.first_lines.values()) == {3}
    found, losses = anonymized(path)
    np.testing.assert_array_equal(found, [[0, 1, 2], [1, 2, 3]])
    assert sum(losses.values()) == 1


LONE = "\ud800"  # Half of a pair: no text.


@pytest.mark.parametrize(
    ("row", "count"),
    [
        (b"0.5,3,4,\xff", 3),  # A column that nobody reads.
        (b"0.5,3\xe4,4,b", 2),
        (b"0.5\xff,3,4,b", 2),
        (b"0.5,3,4,\xc3", 3),  # A character begins, and the row ends.
        (f"0.5,3,4,{LONE}", 3),
        (f"0.5,{LONE},4,b", 2),
    ],
)
def test_all_readers_agree_on_bytes_outside_the_encoding(tmp_path, row, count):
    head, tail = "time,x,y,note\n0,1,2,a\n", "\n1,2,3,b\n"
    if isinstance(row, str):
        text = (head + row + tail).encode("utf-16", "surrogatepass")
    else:
        text = head.encode() + row + tail.encode()
    wanted = (
        [[0, 1, 2], [0.5, 3, 4], [1, 2, 3]] if count == 3 else [[0, 1, 2], [1, 2, 3]]
    )
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    for sizes in ((1 << 20,), (1,), (3, 5)):
        rows = Rows(Trickle(text, sizes), channels=("x", "y"))
        found = [np.column_stack(part) for part in rows]
        np.testing.assert_array_equal(np.concatenate(found), wanted)
        assert rows.malformed == 3 - count
    found, table = imported(path)
    np.testing.assert_array_equal(found, wanted)
    assert sum(table.losses.values()) == 3 - count
    np.testing.assert_array_equal(anonymized(path)[0], wanted)


def test_damaged_names_are_refused_by_all_readers_of_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"time,x,note\n0,1,a\n1,2,\xe4\n")
    columns = Columns(channels=("x",), labels=("note",))
    with pytest.raises(ValueError, match="line 3: the text must be UTF-8.*--encoding"):
        _ = [*reading.tables([path], columns)]
    recording = tables.open_recording(path)
    (batch,) = recording.batches()
    with pytest.raises(ValueError, match="column 'note' must be in UTF-8.*--encoding"):
        tables.refuse_damaged(batch.columns[2], recording, 2)
    (table,) = reading.tables([path], columns._replace(encoding="latin-1"))
    assert table.labels["note"].names == ("a", "\xe4")
    (batch,) = tables.open_recording(path, "latin-1").batches()
    assert batch.columns[2].to_pylist() == ["a", "\xe4"]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_runs_of_blanks_count_as_one_however_a_file_is_read(tmp_path, size):
    text = b"time  x\ty\r\n 0 1  2 \r\n0.5\t\t-3 40\r\n"
    dialect = tables.dialects.sniff(text)
    source = tables._Source(io.BytesIO(text), dialect, None)
    parts = list(iter(lambda: source.read(size), b""))
    assert b"".join(parts) == b"time x y\r\n0 1 2\r\n0.5 -3 40\r\n"
    assert max(map(len, parts)) <= size
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    np.testing.assert_array_equal(anonymized(path)[0], ROWS)


def test_lines_are_counted_with_all_that_says_nothing(tmp_path):
    text = b"# one\n\ntime,x,y\r\n# four\r\n\r\n0,1,2\noh\n"
    for sizes in ((1 << 20,), (1,), (3, 5)):
        assert read(text, sizes)[0].first_malformed == 7
    path = tmp_path / "a.csv"
    path.write_bytes(text.replace(b"oh", b"1,2,3\noh"))
    _, table = imported(path)
    assert table.first_lines == {"malformed row": 8}


def test_a_column_is_named_with_its_unit_or_without(tmp_path):
    path = tmp_path / "a.csv"
    for header, name, wanted in (
        ("x [g],y", "x", 1),
        ("x [g],y", "x [g]", 1),
        ("x [g],x", "x", 2),  # The name itself comes first.
    ):
        path.write_text(f"{header},time\n1,2,0\n")
        found, _ = imported(path, (name,))
        assert found[0, 1] == wanted


@pytest.mark.parametrize("names", ["x [g],x [m]", "x,x", "y,z", "y"])
def test_a_column_that_is_not_there_once_is_refused(tmp_path, names):
    path = tmp_path / "a.csv"
    path.write_text(f"{names}\n")
    with pytest.raises(
        ValueError, match="a.csv': it must have exactly one column 'x', got"
    ):
        imported(path, ("x",))


def test_a_cell_of_several_lines_is_read_by_the_import(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,act\n1,"sit\ndown"\n2,walk\n')
    (table,) = reading.tables([path], Columns(channels=("x",), labels=("act",)))
    assert table.labels["act"].names == ("sit\ndown", "walk")


PROBE = """
import sys, time
import jaxanon, numpy, csv
start = time.perf_counter()
import jaxanon.recordings.csv_rows
print(time.perf_counter() - start)
assert not {"jax", "scipy", "tensorflow_datasets"} & set(sys.modules)
"""


def test_it_is_imported_in_a_few_milliseconds_without_jax(tmp_path):
    took = [
        float(
            subprocess.check_output([sys.executable, "-P", "-c", PROBE], cwd=tmp_path)
        )
        for _ in range(3)
    ]
    assert min(took) < 0.02


def test_delimiters_in_quotes_do_not_count():
    assert delimiter_of('"acc, left, x";"acc, left, y";time') == ";"
    rows, _, samples = read(b'"a, b, c";time\n1,5;0\n2,5;1\n')
    assert rows.channels == ("a, b, c",)
    np.testing.assert_array_equal(samples[:, 0], [1.5, 2.5])
