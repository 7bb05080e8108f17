"""Sleep-EDF from small files in the layout of the published features."""

import numpy as np
import pytest

from jaxanon.datasets import load
from jaxanon.datasets.sleep_edf.description import CHANNELS

# Stages and their numbers of epochs. Sleep is from epoch 70 to 160, so epochs 10 to 220
# of 225 are at most 60 away.
NIGHT = [(0, 70), (1, 5), (2, 30), (3, 8), (2, 1), (4, 20), (0, 3), (2, 23), (0, 65)]


def night(length=None):
    """Writes features that hold their epoch and channel, and stages."""
    stages = np.repeat(*zip(*NIGHT, strict=True)).astype(np.int8)[:length]
    rows = np.arange(len(stages))[:, None] + np.arange(72) / 100
    return {"X": rows.astype(np.float32), "y": stages}


@pytest.fixture
def folder(tmp_path):
    """Writes two nights of two people; the first night of the second is truncated."""
    tmp_path = tmp_path / "nights"
    tmp_path.mkdir()
    for name in ("SC4001E0", "SC4002E0", "SC4011G0", "SC4012G0"):
        arrays = night(110 if name == "SC4011G0" else None)
        np.savez_compressed(tmp_path / f"{name}.npz", **arrays)
    np.savez(tmp_path / "another.npz", X=np.zeros(3))
    return tmp_path


def test_sequences_end_with_the_epoch_whose_stage_they_have(folder):
    data = load("sleep_edf", source=folder)
    spec = data.spec
    assert (spec.time, spec.split, spec.private) == (10, "trial", ("subject",))
    assert spec.rate_hz == 1 / 30 and spec.channels == CHANNELS
    assert spec.channels[::18] == tuple(
        f"Fpz-Cz.delta{of}" for of in ("", ".change", ".mean", ".std")
    )
    assert spec.channels[9] == "Pz-Oz.delta" and spec.units[7] == "log V^2"
    assert spec.classes["stage"] == ("W", "N1", "N2", "N3", "REM")
    assert spec.classes["subject"] == ("00", "01")
    stages = night()["y"]
    for side, ends in ((data.train, (220, 110)), (data.test, (220, 220))):
        last = np.concatenate([np.arange(10 + 9, end) for end in ends])
        np.testing.assert_array_equal(side.windows[:, -1, 0], last)
        np.testing.assert_array_equal(side.windows[:, 0, 0], last - 9)
        np.testing.assert_array_equal(side.labels["stage"], stages[last])
        who = np.repeat([0, 1], [end - 19 for end in ends])
        np.testing.assert_array_equal(side.labels["subject"], who)


def test_the_whole_recording_may_be_taken(folder):
    data = load("sleep_edf", source=folder, preset="whole")
    assert data.spec.classes["stage"] == ("W", "N1", "N2", "N3", "REM")
    total = len(night()["y"])
    ends = np.concatenate([np.arange(9, total)] * 2)
    np.testing.assert_array_equal(data.test.windows[:, -1, 0], ends)


def test_the_end_of_a_night_may_test(folder):
    data = load("sleep_edf", source=folder, split="time_block")
    # 210 epochs from the 10th: 168 before the boundary, 10 of them dropped.
    first, last = (
        side.windows[side.labels["subject"] == 0][..., 0] for side in data[1:]
    )
    assert first.min() == 10 and first.max() == 10 + 168 - 10 - 1
    assert last.min() == 10 + 168 and last.max() == 219
    assert [len(first), len(last)] == [2 * (158 - 9), 2 * (42 - 9)]


def test_one_file_of_all_nights_gives_the_same(folder, tmp_path):
    path = tmp_path / "apart" / "sleep_edf_features.npz"
    path.parent.mkdir()
    arrays = {}
    for file in folder.glob("SC4*.npz"):
        with np.load(file) as arrays_of:
            arrays |= {f"{file.stem}_{name}": arrays_of[name] for name in arrays_of}
    np.savez(path, **arrays)
    data = load("sleep_edf", source=folder)
    for source in (path, path.parent):
        other = load("sleep_edf", source=source)
        assert other.spec == data.spec
        np.testing.assert_array_equal(other.train.windows, data.train.windows)


def test_says_when_a_night_is_too_short(folder):
    for path in folder.glob("SC4*1?0.npz"):
        np.savez(path, **night(7))
    with pytest.raises(ValueError, match="no training windows: the longest of 2 reco"):
        load("sleep_edf", source=folder, preset="whole")


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"y": None}, r"night 'SC4001E0': it must have both X and y; download"),
        ({"X": np.zeros((226, 71))}, r"X must be float\[epochs, 72\] .* \(226, 71\)"),
        ({"X": np.zeros((224, 72))}, r"shapes \(224, 72\) and \(225,\)"),
        ({"X": np.zeros((0, 72)), "y": np.zeros(0, int)}, r"shapes \(0, 72\) and"),
        ({"y": np.full(225, 5)}, r"y must be 0 to 4 \(W, N1, N2, N3, REM\), got \[5\]"),
        ({"X": np.full((225, 72), np.nan)}, "must be finite, got NaN or infinity"),
    ],
)
def test_says_what_is_wrong_with_a_night(tmp_path, arrays, message):
    arrays = {f"SC4001E0_{name}": array for name, array in (night() | arrays).items()}
    path = tmp_path / "sleep_edf_features.npz"
    np.savez(path, **{name: a for name, a in arrays.items() if a is not None})
    with pytest.raises(ValueError, match=message):
        load("sleep_edf", source=path)


def test_says_which_file_is_wrong(folder, tmp_path, monkeypatch):
    path = folder / "SC4001E0.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(ValueError, match=r"SC4001E0.npz is a damaged .npz file"):
        load("sleep_edf", source=folder)
    (folder / "deeper").mkdir()
    for place in (folder, folder / "deeper"):
        (place / "SC4001E0.npz").write_bytes(whole)
    with pytest.raises(ValueError, match="got SC4001E0 again"):
        load("sleep_edf", source=folder)
    np.savez(tmp_path / "mine.npz", SC4831E0_X=np.zeros((3, 72)), SC4831E0_y=[0, 0, 0])
    with pytest.raises(ValueError, match="nights must be named SC4001E0 to SC4822G0"):
        load("sleep_edf", source=tmp_path / "mine.npz")
    with pytest.raises(FileNotFoundError, match="has no file of sleep_edf"):
        load("sleep_edf", source=tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"gone.npz' is not a file"):
        load("sleep_edf", source=tmp_path / "gone.npz")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match=r"sleep_edf was not found; download the fo"
    ):
        load("sleep_edf")
