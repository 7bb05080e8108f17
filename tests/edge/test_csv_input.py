"""Rows are read as they come, in little memory; what is malformed is counted."""

import io
import os
import threading

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon.edge import csv_input
from jaxanon.edge.csv_input import Rows


class Trickle:
    """A file whose reads give so many bytes, again and again."""

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
    np.testing.assert_array_equal(times, [0.0, 0.08, 0.12, 0.14])
    wanted = [[1, 2, 3], [np.nan, 8.5, 90], [np.inf, 8, 9], [1, 2, 3]]
    np.testing.assert_array_equal(samples, wanted)
    assert rows.malformed == 4


@pytest.mark.parametrize("text", [b"", b"\n\n", b"0.0,5,6\n", b"time\n1\n", b"# c"])
def test_a_file_without_a_header_is_refused_and_not_shown(text):
    with pytest.raises(ValueError) as raised:
        Rows(io.BytesIO(text))
    assert "the first line must name the columns" in str(raised.value)
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
        pipe.write(b"time,x\n0,1\n0.5,")
        rows = Rows(file)
        got = iter(rows)
        threading.Timer(20, pipe.close).start()  # Else a failure would wait for ever.
        assert next(got)[0].tolist() == [0.0]
        pipe.write(b"2\n")
        assert next(got)[1].tolist() == [[2.0]]


def test_files_are_opened_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,x\n0,1\n")
    rows = csv_input.open_rows(path)
    assert [len(times) for times, _ in rows] == [1]
    rows.close()
    path.write_text("0,1\n")
    with pytest.raises(ValueError, match="put such a line before the rows"):
        csv_input.open_rows(path)
    with pytest.raises(FileNotFoundError, match="name one, or - to read a pipe"):
        csv_input.open_rows(tmp_path / "b.csv")
