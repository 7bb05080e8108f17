"""A reader sees the old file or the whole new one; replacement is opt-in."""

import os

import hypothesis.strategies as st
import pytest
from hypothesis import given

from jaxanon.datasets import writing


def test_a_new_file_appears_with_its_folders(tmp_path):
    writing.write(tmp_path / "a" / "b.txt", "naïve")
    writing.write(tmp_path / "a" / "b.bin", b"\x00\xff")
    assert (tmp_path / "a" / "b.txt").read_bytes() == "naïve".encode()
    assert (tmp_path / "a" / "b.bin").read_bytes() == b"\x00\xff"


def test_nobody_sees_it_half_done(tmp_path):
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")
    with writing.replacing(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, where):
    target = tmp_path / "report.json"
    target.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    if where != "write":
        monkeypatch.setattr(writing.os, where, fail)
    with pytest.raises(OSError, match="disk full"):
        with writing.replacing(target) as file:
            file.write(b"new")
            if where == "write":
                fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_there_is_replaced_when_asked_alone(tmp_path):
    target = tmp_path / "x.npz"
    writing.check_writable(target, overwrite=False)
    target.touch()
    writing.check_writable(target, overwrite=True)
    said = r"x\.npz exists; pass overwrite=True \(--overwrite\) to replace it, or move"
    with pytest.raises(FileExistsError, match=said):
        writing.check_writable(target, overwrite=False)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc here")
def test_where_nothing_can_be_written_it_is_refused_before():
    place = "/proc/self"  # Not even root may write there.
    for path in (f"{place}/x.npz", f"{place}/not/there/x.npz"):
        with pytest.raises(PermissionError, match=rf"{place} must be writable"):
            writing.check_writable(path, overwrite=True)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "a.npz").touch()
    with pytest.raises(
        NotADirectoryError, match=r"a\.npz must be a folder, got a file"
    ):
        writing.check_writable(tmp_path / "a.npz" / "b" / "c.npy", overwrite=True)
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(NotADirectoryError, match="link must be a folder"):
        writing.check_writable_folder(tmp_path / "link")
    (tmp_path / "link").unlink()
    writing.check_writable_folder(tmp_path / "new" / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]  # No file remains.


def test_a_folder_is_no_file_s_name(tmp_path):
    with pytest.raises(IsADirectoryError, match="must be a file, got a folder"):
        writing.check_writable(tmp_path, overwrite=True)


def test_others_may_read_it(tmp_path):
    writing.write(tmp_path / "x", "")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o666 & ~mask


NAMES = st.text(st.characters(exclude_categories=()), max_size=60)


@given(st.lists(NAMES | st.text("./\\%~ aA2EF", max_size=200), unique=True, min_size=2))
def test_a_name_of_a_file_is_one_and_its_own(names):
    made = [writing.file_name(name) for name in names]
    assert len(set(made)) == len(names)
    for name in made:
        assert name and name not in (".", "..") and not set(name) & set('/\\:*?"<>|\0')
        assert len(name.encode()) <= 150 and name.strip(". ") == name
    assert [writing.file_name(n) for n in ("gender", "confusion_a.b", "Größe")] == [
        "gender", "confusion_a.b", "Größe"
    ]  # fmt: skip
