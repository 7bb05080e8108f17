"""Row files are opened by name, and played back at their own clock's speed."""

import threading

import numpy as np
import pytest

from jaxanon.edge import csv_input


def test_files_are_opened_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,x\n0,1\n")
    rows = csv_input.open_rows(path)
    assert [len(times) for times, _ in rows] == [1]
    rows.close()
    path.write_text("0,1\n")
    with pytest.raises(
        ValueError, match=r"a.csv, line 1: .* insert such a line before"
    ):
        csv_input.open_rows(path)
    with pytest.raises(FileNotFoundError, match="name one, or - to read a pipe"):
        csv_input.open_rows(tmp_path / "b.csv")


def test_a_recording_s_pieces_come_as_its_clock_says():
    times = np.arange(30) / 50
    pieces = csv_input.paced([(times, times[:, None])], 50.0, None, threading.Event())
    assert [len(part) for part, _ in pieces] == [5] * 6
    stop = threading.Event()
    played = csv_input.paced([(times, times[:, None])], 50.0, 1e6, stop)
    found = [next(played)[0]]
    stop.set()
    np.testing.assert_array_equal(found[0], times[:5])
    assert list(played) == []  # Stopped from outside.
