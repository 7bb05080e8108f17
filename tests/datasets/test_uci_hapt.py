"""UCI HAPT from small files in the original layout, and the real files' counts."""

import pathlib
import shutil

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store

ARCHIVE = pathlib.Path(__file__).parents[3] / "shared/data/uci_hapt/uci_hapt.zip"


@pytest.fixture
def copy(uci_hapt_folder, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(uci_hapt_folder, tmp_path / "copy")


def test_segments_are_counted_from_one_and_hold_their_ends(uci_hapt_folder, cache):
    first, second, *rest = store.read(registry.find("uci_hapt"), uci_hapt_folder, cache)
    assert len(rest) == 7
    # Row r of channel c holds r + c / 10: both sensors, rows 101 to 1100.
    np.testing.assert_allclose(first.rows[0], 101 + np.arange(6) / 10, rtol=1e-6)
    np.testing.assert_allclose(first.rows[-1], 1100 + np.arange(6) / 10, rtol=1e-6)
    assert first.labels == {"activity": 0, "subject": 0} and len(first.rows) == 1000
    assert second.labels["activity"] == 3 and second.rows[0, 0] == 1101


def test_basic6_and_all12(uci_hapt_folder):
    basic = load("uci_hapt", source=uci_hapt_folder)
    assert basic.spec.classes["activity"] == ("walking", "sitting")
    assert (basic.spec.private, basic.spec.split) == (("subject",), "time_block")
    both = load("uci_hapt", source=uci_hapt_folder, preset="all12", split="subject")
    assert both.spec.classes["activity"] == ("walking", "sitting", "stand to sit")
    # Halves overlap: 1000 rows hold (1000 - 128) // 64 + 1 = 14 windows, 200 hold 2.
    counts = [len(side.windows) for side in both[1:]]
    assert sorted(counts) == [14 + 14 + 2, 2 * (14 + 14 + 2)]


def test_samples_of_a_slower_rate_are_means(uci_hapt_folder):
    data = load("uci_hapt", source=uci_hapt_folder, preset="acc10")
    assert (data.spec.rate_hz, data.spec.time) == (10.0, 10)
    assert data.spec.channels == ("acc.x", "acc.y", "acc.z")
    first = np.concatenate([side.windows for side in data[1:]]).min(0)
    # Rows 101 to 105 of channel c, r + c / 10 each, have the mean 103 + c / 10.
    want = 103 + 5 * np.arange(10)[:, None] + np.arange(3) / 10
    np.testing.assert_allclose(first, want, rtol=1e-6)
    # 1000 rows are 200 samples, 20 windows, some of which lie between the sides.
    ones = [side.labels["subject"] == 1 for side in data[1:]]
    assert 30 <= sum(map(np.sum, ones)) <= 40


def test_magnitudes_are_those_that_motion_sense_has(copy):
    labels = copy / "RawData" / "labels.txt"
    labels.write_text(labels.read_text().replace(" 4 1101", " 2 1101"))
    data = load("uci_hapt", source=copy, preset="mag3")
    shared = registry.find("motion_sense").presets["mag5"]
    spec = data.spec
    assert (spec.channels, spec.units, spec.time, spec.rate_hz) == (
        shared.channels,
        shared.units,
        shared.length,
        registry.find("motion_sense").rate_hz,
    )
    assert spec.classes["activity"] == ("walking", "upstairs")
    # Row r of channel c holds r + c / 10, first the three of acceleration. Row 101 has
    # rotation rate (101.3, 101.4, 101.5) and acceleration (101, 101.1, 101.2).
    first = np.concatenate([side.windows[:, 0] for side in data[1:]]).min(0)
    want = [np.hypot(np.hypot(101.3, 101.4), 101.5), np.hypot(101, 101.1), 101.2]
    np.testing.assert_allclose(first, [want[0], np.hypot(*want[1:])], rtol=1e-6)


def test_time_blocks_share_no_sample(uci_hapt_folder):
    data = load("uci_hapt", source=uci_hapt_folder)
    for activity in (0, 1):  # The second person, with one recording of each.
        train, test = (
            side.windows[
                (side.labels["subject"] == 1) & (side.labels["activity"] == activity)
            ][..., 0]
            for side in data[1:]
        )
        # Rows hold their number: at least a window lies between the sides.
        assert train.max() + 128 < test.min()


def test_zip_gives_the_same(uci_hapt_folder, zipped, tmp_path):
    packed = load("uci_hapt", source=zipped(uci_hapt_folder, tmp_path / "hapt.zip"))
    folder = load("uci_hapt", source=uci_hapt_folder)
    np.testing.assert_array_equal(packed.train.windows, folder.train.windows)


@pytest.mark.parametrize(
    "line, message",
    [
        (
            "1 1 13 1 200",
            "experiment 1, user 1, rows 1-200: activity must be from 1 to 12, got 13",
        ),
        ("1 31 1 1 200", "subject must be from 1 to 30, got 31"),
        ("1 1 1 2900 3001", "acc_exp01_user01.txt must hold these rows, got 3000"),
        ("1 1 1 0 200", "acc_exp01_user01.txt must hold these rows, got 3000"),
        ("9 1 1 1 200", "acc_exp09_user01.txt must hold these rows, got no such"),
        ("1 1 1 200", "labels.txt must hold 5 numbers per row, got"),
        ("1 1 one 1 2", "labels.txt is truncated or damaged"),
        ("", r"labels.txt must hold 5 numbers per row, got None"),
    ],
)
def test_says_what_is_wrong_with_the_labels(copy, line, message):
    (copy / "RawData" / "labels.txt").write_text(line)
    with pytest.raises(ValueError, match=message):
        load("uci_hapt", source=copy)


def test_says_which_file_is_missing_or_damaged(copy, tmp_path, monkeypatch):
    signal = copy / "RawData" / "gyro_exp01_user01.txt"
    signal.write_text(signal.read_text()[:-30])
    with pytest.raises(
        ValueError, match=r"gyro_exp01_user01.txt is truncated or damaged"
    ):
        load("uci_hapt", source=copy)
    (copy / "RawData" / "labels.txt").unlink()
    with pytest.raises(ValueError, match=r"labels.txt .* is missing"):
        load("uci_hapt", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of uci_hapt"):
        load("uci_hapt", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match=r"uci_hapt was not found; download .*dataset/341"
    ):
        load("uci_hapt")


@pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"{ARCHIVE.name} is absent")
def test_the_real_archive(cache):
    recordings = store.read(registry.find("uci_hapt"), ARCHIVE, cache)
    assert len(recordings) == 1214
    rows = np.zeros(12, int)
    for recording in recordings:
        rows[recording.labels["activity"]] += len(recording.rows)
    # Counted from labels.txt, ends included (NOTES.md of the data).
    assert rows[:6].tolist() == [122091, 116707, 107961, 126677, 138105, 136865]
    assert rows[6:].tolist() == [10316, 8029, 12428, 11150, 14418, 10867]
    data = load("uci_hapt", preset="all12", source=ARCHIVE)
    assert data.spec.num_classes("subject") == 30
    for side in data[1:]:
        assert set(side.labels["activity"].tolist()) == set(range(12))
        assert set(side.labels["subject"].tolist()) == set(range(30))
