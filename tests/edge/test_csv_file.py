"""A CSV outlet holds only whole rows: full disks, killed processes, torn rows."""

import errno
import os
import signal
import subprocess
import sys
import types

import numpy as np
import pytest
from outlet_rows import NUMBERS, SIGNATURE, block, read

from jaxanon.edge import outlets
from jaxanon.edge.csv_file import CsvFile
from jaxanon.edge.types import Block


def _gap(first, count, reason, written=True):
    nothing = np.full((count if written else 0, 2), np.nan, np.float32)
    return Block(first / 50, 50.0, nothing, reason, (first + count) / 50)


def _samples(found):
    return {index: numbers for index, gap, numbers in found if not gap}


def test_what_is_written_is_read_again_bit_for_bit(tmp_path):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    outlet.write(block(0, 100))
    outlet.write(_gap(100, 3, "no data,\nfor a while"))
    outlet.write(_gap(103, 90, "the clock jumped", written=False))
    outlet.write(block(193, 7))
    outlet.close()
    assert (
        (tmp_path / "a.csv")
        .read_text()
        .startswith("# jaxanon stream, format 1, rate_hz 50.0\n")
    )
    found = read(tmp_path / "a.csv")
    samples = _samples(found)
    assert list(samples) == [*range(100), *range(193, 200)]
    np.testing.assert_array_equal(
        np.float32(list(samples.values())), np.delete(NUMBERS[:200], range(100, 193), 0)
    )
    gaps = [(index, gap) for index, gap, _ in found if gap]
    assert gaps == [
        *((index, "no data, for a while") for index in (100, 101, 102)),
        (103, "the clock jumped"),
    ]


def test_a_block_of_another_rate_is_refused(tmp_path):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    with pytest.raises(ValueError, match="rate_hz must be the outlet's 50.0, got 25.0"):
        outlet.write(Block(0.0, 25.0, NUMBERS[:2], "", 0.08))
    outlet.close()


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of 16 KiB, or skips the test."""
    where = tmp_path / "disk"
    where.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(where)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here: not root, or a container")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_disk_that_is_really_full(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8192))
    outlet = outlets.open_outlet(small_disk / "a.csv", SIGNATURE)
    for first in range(0, 400, 10):
        outlet.write(block(first, 10))
    ballast.unlink()
    for first in range(400, 450, 10):
        outlet.write(block(first, 10))
    outlet.close()
    _one_gap(read(small_disk / "a.csv"), "not written: No space left on device", 450)


def _one_gap(found, reason, count):
    """Asserts that one stretch of ``count`` samples is missing, where the gap is."""
    (place,) = [place for place, row in enumerate(found) if row[1]]
    before, after = found[:place], found[place + 1 :]
    assert found[place][:2] == (len(before), reason)
    assert 0 < len(before) < count - len(after)
    assert [index for index, *_ in before] == list(range(len(before)))
    assert [index for index, *_ in after] == list(range(count - len(after), count))
    for index, numbers in _samples(found).items():
        assert numbers == NUMBERS[index].tolist()


class _FullDisk:
    """Disk that takes ``room`` bytes, then half of a write, then nothing."""

    def __init__(self, room, number=errno.ENOSPC):
        self.room, self.number, self.write = room, number, os.pwrite

    def __call__(self, file, data, at):
        if len(data) > self.room and self.room < 2:
            raise OSError(self.number, os.strerror(self.number))
        taken = len(data) if len(data) <= self.room else self.room // 2
        self.room -= taken
        return self.write(file, data[:taken], at)


@pytest.mark.parametrize("room", [1, 30, 300, 1000, 1777])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_lost_stretch_stands_in_the_file(tmp_path, monkeypatch, room, number):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    outlet.write(block(0, 10))
    monkeypatch.setattr(os, "pwrite", disk := _FullDisk(room, number))
    for first in range(10, 100, 10):
        outlet.write(block(first, 10))
        read(tmp_path / "a.csv")  # No row is ever incomplete.
    disk.room = 10**6
    outlet.write(block(100, 10))
    outlet.close()
    found = read(tmp_path / "a.csv")
    kept = len(_samples(found))
    said = f"{110 - kept} rows are missing in {tmp_path / 'a.csv'} "
    said += f"({os.strerror(number)})"
    assert outlet.lost() == f"{said}; check the free space and health of its disk."
    _one_gap(found, f"not written: {os.strerror(number)}", 110)


def test_a_stretch_lost_at_the_end_is_tried_once_more(tmp_path, monkeypatch):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    monkeypatch.setattr(os, "pwrite", disk := _FullDisk(200))
    outlet.write(block(0, 30))
    disk.room = 10**6
    outlet.close()
    *before, last = read(tmp_path / "a.csv")
    assert [row[:2] for row in before] == [(index, "") for index in range(len(before))]
    assert last[:2] == (len(before), "not written: No space left on device")
    outlet.close()  # Closing twice is not an error.


def test_what_waiting_does_not_mend_is_raised(tmp_path, monkeypatch):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    monkeypatch.setattr(os, "pwrite", _FullDisk(100, errno.EFBIG))
    with pytest.raises(OSError, match="File too large"):
        outlet.write(block(0, 10))
    outlet.close()
    found = read(tmp_path / "a.csv")
    assert [row[0] for row in found] == list(range(len(found)))


def test_a_file_that_cannot_begin_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "pwrite", _FullDisk(20))
    with pytest.raises(OSError, match="No space left on device"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    monkeypatch.undo()
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)  # Nothing remained.
    outlet.write(block(0, 1))
    outlet.close()
    assert [row[0] for row in read(tmp_path / "a.csv")] == [0]


def test_what_could_not_be_forced_onto_the_disk_counts_as_lost(tmp_path, monkeypatch):
    outlet = CsvFile(tmp_path / "a.csv", SIGNATURE, sync_s=0)
    outlet.write(block(0, 10))
    sync, fails = os.fsync, [True]

    def fsync(file):
        if fails.pop():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(file)

    monkeypatch.setattr(os, "fsync", fsync)
    outlet.write(block(10, 10))
    monkeypatch.undo()
    outlet.write(block(20, 10))
    outlet.close()
    _one_gap(read(tmp_path / "a.csv"), "not written: Input/output error", 30)


PROGRAM = """
import sys, types
import numpy as np
from jaxanon.edge import outlets
from jaxanon.edge.types import Block

signature = types.SimpleNamespace(
    channels=("acc x", "acc, y"), units=("g", "m/s²"), rate_hz=50.0)
outlet = outlets.open_outlet(sys.argv[1], signature, append=True)
numbers = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
index = int(sys.argv[2])
print("go", flush=True)
while True:
    place = index % 500
    part = numbers[place:place + 5]
    outlet.write(Block(index / 50, 50.0, part, "", (index + 5) / 50))
    index += 5
"""


def test_killed_in_the_middle(tmp_path):
    path = tmp_path / "a.csv"
    for start in (0, 10_000_000):
        words = [sys.executable, "-P", "-c", PROGRAM, str(path), str(start)]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path)
        assert child.stdout.readline() == b"go\n"
        size = path.stat().st_size
        while path.stat().st_size < size + 20_000:
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    found = read(path)
    (place,) = [place for place, row in enumerate(found) if row[1]]
    gap = "the stream was interrupted here and resumed later"
    assert found[place][:2] == (place, gap)
    assert place > 100 and len(found) > place + 100
    for index, _, numbers in found[:place] + found[place + 1 :]:
        assert numbers == NUMBERS[index % 500].tolist()
    assert [row[0] for row in found[:place]] == list(range(place))
    rest = [row[0] - 10_000_000 for row in found[place + 1 :]]
    assert rest == list(range(len(rest)))


@pytest.mark.parametrize(
    "torn", ["0.200000,,1.5", "0.2", "0.2,,1.0,", "\0\0\0", "\0\n\0\n"]
)
def test_a_torn_last_row_is_cut_off(tmp_path, torn):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    outlet.write(block(0, 10))
    outlet.close()
    with (tmp_path / "a.csv").open("a") as file:
        file.write(torn)
    for _ in range(2):  # Opening and closing it again adds no second gap.
        outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
        outlet.close()
        assert [row[0] for row in read(tmp_path / "a.csv")] == list(range(10))
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    outlet.write(block(20, 10))
    outlet.close()
    found = read(tmp_path / "a.csv")
    assert [row[0] for row in found] == [*range(10), 10, *range(20, 30)]
    assert found[10][1] == "the stream was interrupted here and resumed later"


def test_a_head_that_was_cut_off_is_written_anew(tmp_path):
    (tmp_path / "a.csv").write_text("# jaxanon str")
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    outlet.write(block(0, 3))
    outlet.close()
    assert [row[:2] for row in read(tmp_path / "a.csv")] == [(0, ""), (1, ""), (2, "")]


@pytest.mark.parametrize(
    ("field", "value"), [("units", ("m/s²", "m/s²")), ("rate_hz", 100.0)]
)
def test_a_file_of_another_signature_is_refused(tmp_path, field, value):
    outlets.open_outlet(tmp_path / "a.csv", SIGNATURE).close()
    before = (tmp_path / "a.csv").read_bytes()
    other = types.SimpleNamespace(**vars(SIGNATURE) | {field: value})
    with pytest.raises(ValueError, match="must begin with .* for this stream.*use"):
        outlets.open_outlet(tmp_path / "a.csv", other, append=True)
    assert (tmp_path / "a.csv").read_bytes() == before


def test_nothing_is_overwritten_unasked(tmp_path):
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="it exists; continue it with --append"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    with pytest.raises(ValueError, match="must begin with .* for this stream"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    (tmp_path / "b.csv").write_text("# jaxanon stream, format 1, rate_hz 50.0\n" * 9000)
    with pytest.raises(ValueError, match="must begin with .* for this stream"):
        outlets.open_outlet(tmp_path / "b.csv", SIGNATURE, append=True)
    assert (tmp_path / "a.csv").read_text() == "mine"


def test_rows_that_are_none_are_refused(tmp_path):
    outlets.open_outlet(tmp_path / "a.csv", SIGNATURE).close()
    with (tmp_path / "a.csv").open("a") as file:
        file.write("spam\n" * 20_000)
    with pytest.raises(ValueError, match="no whole row in its last 65536 bytes"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    assert (tmp_path / "a.csv").stat().st_size > 100_000


def test_one_process_at_a_time(tmp_path):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    with pytest.raises(BlockingIOError, match="another process writes this file"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    outlet.close()


@pytest.mark.parametrize("append", [True, False])
def test_a_device_is_no_file(append):
    with pytest.raises(ValueError, match="/dev/full must be a regular file; use '-'"):
        outlets.open_outlet("/dev/full", SIGNATURE, append=append)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="must be a regular file"):
        outlets.open_outlet(tmp_path, SIGNATURE)
