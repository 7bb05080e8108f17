"""UCI HAR from small files in the original layout."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets import load
from jaxanon.datasets.uci_har.description import CHANNELS
from jaxanon.datasets.uci_har.uci_har_dataset_builder import join_windows, runs

# Subject, activity and number of windows; repeated runs of a class are separate.
RUNS = {
    "train": [(1, 5, 12), (1, 1, 10), (1, 1, 10), (3, 5, 11), (3, 1, 20)],
    "test": [(2, 5, 11), (2, 1, 12)],
}
INERTIAL = "Inertial Signals"


def cut(rows):
    """Returns windows of 128 rows, one every 64: ``float[N, 128, 9]``."""
    return np.stack([rows[i : i + 128] for i in range(0, len(rows) - 127, 64)])


def sides():
    """Returns each side's windows with subjects and activities; all rows differ."""
    random = np.random.default_rng(0)
    for side, done in RUNS.items():
        windows = [cut(random.normal(size=(64 * n + 64, 9))) for _, _, n in done]
        who, what = (
            np.concatenate([np.full(run[2], run[i]) for run in done]) for i in (0, 1)
        )
        yield side, np.concatenate(windows).astype(np.float32), who, what


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("har")
    for side, windows, who, what in sides():
        place = top / "UCI HAR Dataset" / side
        (place / INERTIAL).mkdir(parents=True)
        for channel, name in enumerate(CHANNELS):
            path = place / INERTIAL / f"{name}_{side}.txt"
            np.savetxt(path, windows[..., channel], "%16.7e")
        np.savetxt(place / f"subject_{side}.txt", who, "%d")
        np.savetxt(place / f"y_{side}.txt", what, "%d")
        (place / f"X_{side}.txt").write_text("of no concern")
        (top / "__MACOSX").mkdir(exist_ok=True)
        (top / "__MACOSX" / f"._y_{side}.txt").write_text("of no concern")
    return top


@pytest.fixture
def copy(folder, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(folder, tmp_path / "copy") / "UCI HAR Dataset"


def test_the_given_windows_come_back_as_they_were(folder):
    data = load("uci_har", source=folder)
    spec = data.spec
    assert (spec.split, spec.private, spec.time) == ("given", ("subject",), 128)
    assert (spec.rate_hz, spec.channels) == (50.0, CHANNELS)
    assert spec.classes == {
        "activity": ("walking", "standing"),
        "subject": ("1", "2", "3"),
    }
    written = {side: rest for side, *rest in sides()}
    for side, name in ((data.train, "train"), (data.test, "test")):
        windows, who, what = written[name]
        np.testing.assert_allclose(side.windows, windows, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(side.labels["subject"] + 1, who)
        np.testing.assert_array_equal(side.labels["activity"], what == 5)
    # Rows count once, although most of them are in two windows.
    rows = np.unique(np.concatenate(data.train.windows), axis=0).astype(np.float64)
    assert len(rows) == 64 * (63 + 5)  # 63 windows in 5 runs.
    np.testing.assert_allclose(spec.mean, rows.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(spec.std, rows.std(axis=0), rtol=1e-12)


def test_time_blocks_are_of_given_windows_and_share_no_row(folder):
    data = load("uci_har", source=folder, split="time_block")
    found = {
        w.tobytes() for side in load("uci_har", source=folder)[1:] for w in side[0]
    }
    train, test = ({row.tobytes() for w in s[0] for row in w} for s in data[1:])
    assert not train & test
    assert {w.tobytes() for side in data[1:] for w in side.windows} <= found
    for subject in range(3):  # Every person trains and tests in every activity.
        for side in data[1:]:
            mine = side.labels["activity"][side.labels["subject"] == subject]
            assert set(mine.tolist()) == {0, 1}
    # Row 1075 of 1344, in 20 windows, is the boundary. The last multiple of 64
    # before it is 1024, where the 17th window begins: 1344 - 1024 = 320 rows are 4
    # windows. Those that end 128 rows before have 1024 - 128 = 896 rows, 13 windows.
    counts = [
        np.sum((side.labels["subject"] == 2) & (side.labels["activity"] == 0))
        for side in data[1:]
    ]
    assert counts == [13, 4]


def test_raw6_has_what_the_two_sensors_measured(folder):
    every = load("uci_har", source=folder)
    data = load("uci_har", source=folder, preset="raw6")
    assert data.spec.channels == tuple(
        f"{name}_{axis}" for name in ("total_acc", "body_gyro") for axis in "xyz"
    )
    assert data.spec.units == ("g",) * 3 + ("rad/s",) * 3
    wanted = every.test.windows[..., [6, 7, 8, 3, 4, 5]]
    np.testing.assert_array_equal(data.test.windows, wanted)


def test_zip_gives_the_same_and_people_may_be_split(folder, zipped, tmp_path):
    data = load("uci_har", source=zipped(folder, tmp_path / "a.zip"), split="subject")
    whose = [set(side.labels["subject"].tolist()) for side in data[1:]]
    assert not whose[0] & whose[1] and whose[0] | whose[1] == {0, 1, 2}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_joined_and_cut_again_windows_are_the_same(lengths):
    random = np.random.default_rng(0)
    windows = np.concatenate(
        [cut(random.normal(size=(64 * n + 64, 9))) for n in lengths]
    )
    found = runs(windows, {"subject": np.zeros(len(windows))})
    assert [last - first for first, last in found] == lengths
    again = [cut(join_windows(windows[first:last])) for first, last in found]
    np.testing.assert_array_equal(np.concatenate(again), windows)


def test_a_run_ends_with_a_label():
    windows = np.zeros((4, 128, 9))  # Their halves agree.
    labels = {"activity": np.array([0, 0, 1, 1]), "subject": np.array([0, 0, 0, 1])}
    assert runs(windows, labels) == [(0, 2), (2, 3), (3, 4)]


def change(old, new):
    return lambda text: text.replace(old, new)


@pytest.mark.parametrize(
    "file, spoil, message",
    [
        (
            "y",
            change("5", "7"),
            "y_train.txt must hold whole numbers from 1 to 6, got 7",
        ),
        ("y", change("5", "1.5"), "from 1 to 6, got 1.5 in line 1"),
        ("subject", change("3", "31"), "from 1 to 30, got 31 in line 33"),
        ("y", lambda text: text[:-8], "one line per window, got .*'y_train.txt': 59"),
        ("total_acc_y", lambda text: text[:-40], "acc_y_train.txt is truncated or dam"),
        ("body_acc_x", lambda text: "", "must hold 128 numbers per row, got None"),
        (
            "body_gyro_z",
            lambda text: "nan" + text[16:],
            "must be finite, got NaN or infinity; download",
        ),
    ],
)
def test_says_which_file_is_damaged(copy, file, spoil, message):
    place = "" if file in ("y", "subject") else INERTIAL
    path = copy / "train" / place / f"{file}_train.txt"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(ValueError, match=message):
        load("uci_har", source=copy)


def test_says_which_files_are_missing(copy, tmp_path, monkeypatch):
    (copy / "test" / INERTIAL / "total_acc_z_test.txt").unlink()
    (copy / "test" / "y_test.txt").unlink()
    with pytest.raises(
        ValueError,
        match=r"must have the files \['total_acc_z_test.txt', 'y_test.txt'\]",
    ):
        load("uci_har", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of uci_har"):
        load("uci_har", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match=r"uci_har was not found; .*dataset/240"
    ):
        load("uci_har")
