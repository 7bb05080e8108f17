"""A CSV outlet that goes on in a file: torn rows, other streams, other processes."""

import types

import pytest
from outlet_rows import SIGNATURE, block, read

from jaxanon.edge import outlets


@pytest.mark.parametrize(
    "torn", ["0.200000,,1.5", "0.2", "0.2,,1.0,", "\0\0\0", "\0\n\0\n"]
)
def test_a_torn_last_row_is_cut_off(tmp_path, torn):
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    outlet.write(block(0, 10))
    outlet.close()
    with (tmp_path / "a.csv").open("a") as file:
        file.write(torn)
    for _ in range(2):  # One that is opened and closed again leaves no second gap.
        outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
        outlet.close()
        assert [row[0] for row in read(tmp_path / "a.csv")] == list(range(10))
    outlet = outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    outlet.write(block(20, 10))
    outlet.close()
    found = read(tmp_path / "a.csv")
    assert [row[0] for row in found] == [*range(10), 10, *range(20, 30)]
    assert found[10][1] == "the stream stopped here and was started again later"


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
    with pytest.raises(ValueError, match="is not of this stream: it begins with.*name"):
        outlets.open_outlet(tmp_path / "a.csv", other, append=True)
    assert (tmp_path / "a.csv").read_bytes() == before


def test_nothing_is_overwritten_unasked(tmp_path):
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="--append.*goes on at its end"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE)
    with pytest.raises(ValueError, match="is not of this stream"):
        outlets.open_outlet(tmp_path / "a.csv", SIGNATURE, append=True)
    (tmp_path / "b.csv").write_text("# jaxanon stream, format 1, rate_hz 50.0\n" * 9000)
    with pytest.raises(ValueError, match="is not of this stream"):
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
    with pytest.raises(ValueError, match="/dev/full is not a regular file; '-' writes"):
        outlets.open_outlet("/dev/full", SIGNATURE, append=append)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="is not a regular file"):
        outlets.open_outlet(tmp_path, SIGNATURE)
