"""Exported files load as the same data."""

import numpy as np
import pytest

from jaxanon.datasets import export, load


@pytest.fixture
def data(watch_file):
    return load("smartwatch", source=watch_file, private=["side", "subject"])


def same(left, right):
    np.testing.assert_array_equal(left.windows, right.windows)
    assert left.windows.dtype == right.windows.dtype == np.float32
    assert list(left.labels) == list(right.labels)
    for attribute, label in left.labels.items():
        np.testing.assert_array_equal(label, right.labels[attribute])


@pytest.mark.parametrize("split", ["time_block", "subject"])
def test_all_comes_back(watch_file, tmp_path, split):
    data = load("smartwatch", source=watch_file, split=split)
    again = load(export(data, "all", tmp_path / "new" / "all.npz"))
    same(again.train, data.train)
    same(again.test, data.test)
    for field in ("name", "preset", "channels", "units", "rate_hz", "time", "public"):
        assert getattr(again.spec, field) == getattr(data.spec, field)
    for field in ("private", "classes", "mean", "std"):
        assert getattr(again.spec, field) == getattr(data.spec, field)
    assert again.spec.split == "given"


def test_one_side_stands_for_itself(tmp_path):
    data = load("smartwatch", private=["side", "subject"])
    path = export(data, "test", tmp_path / "test.npz")
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["windows"], data.test.windows)
        assert "split" not in arrays and "mean" not in arrays
    again = load(path)
    assert again.spec.split == "time_block" and again.spec.private == (
        "side",
        "subject",
    )
    assert len(again.train.windows) < len(data.test.windows)


def test_a_side_too_short_to_be_split(data, tmp_path):
    # 4 windows per recording, each sharing samples with all the others.
    path = export(data, "test", tmp_path / "test.npz")
    with pytest.raises(
        ValueError, match="split='time_block' must give training windows, got none"
    ):
        load(path)


def test_whoever_is_on_the_other_side_is_not_exported(watch_file, tmp_path):
    data = load("smartwatch", source=watch_file, split="subject")
    again = load(export(data, "train", tmp_path / "train.npz"), private="side")
    (who,) = np.unique(data.train.labels["subject"])
    assert again.spec.classes["subject"] == (data.spec.classes["subject"][who],)


def test_nothing_is_overwritten_without_being_asked(data, tmp_path):
    path = export(data, "train", tmp_path / "x.npz")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match=r"x.npz exists; pass overwrite=True"):
        export(data, "test", path)
    assert path.read_bytes() == before
    export(data, "test", path, overwrite=True)
    with np.load(path) as arrays:
        assert len(arrays["windows"]) == len(data.test.windows)


def test_an_interrupted_export_leaves_what_was_there(data, tmp_path, monkeypatch):
    path = export(data, "train", tmp_path / "x.npz")
    before = path.read_bytes()

    def killed(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", killed)
    with pytest.raises(KeyboardInterrupt):
        export(data, "test", path, overwrite=True)
    assert path.read_bytes() == before and list(tmp_path.glob("*")) == [path]


def test_says_what_was_wrong(data, tmp_path):
    with pytest.raises(ValueError, match=r"split must be one of .*'all'\], got 'both'"):
        export(data, "both", tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"path must end in .npz, got .*x.npy'"):
        export(data, "all", tmp_path / "x.npy")
