"""WISDM from small files in the original layout."""

import itertools
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets import load, registry, store
from jaxanon.datasets.wisdm import reading
from jaxanon.datasets.wisdm.reading import Piece, align, read_tasks

MS = 1_000_000
RANDOM = np.random.default_rng(0)


def lines(user, letter, times, values):
    signs = (",".join(map(repr, row)) for row in values.tolist())
    if times is None:  # As in the published cut.
        return [f"{user},{letter},{row}" for row in signs]
    pairs = zip(times.tolist(), signs, strict=True)
    return [f"{user},{letter},{time},{row};" for time, row in pairs]


def write(folder, sensor, user, text):
    path = folder / f"raw/watch/{sensor}/data_{user}_{sensor}_watch.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*text, ""]))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes three people with 1000 rows each of walking, soup, sandwich and kicking.

    The first channel of each sensor is the time in samples. The second sensor's clock
    is 10 ms behind and misses the first two rows.
    """
    folder = tmp_path_factory.mktemp("wisdm") / "wisdm-dataset"
    for user in (1600, 1601, 1650):
        for sensor, first, late in (("accel", 0, 0), ("gyro", 2, 10)):
            text = []
            # Tasks are in the file by their codes, not by their times.
            for letter, start in {"A": 9000, "H": 3000, "L": 0, "M": 6000}.items():
                at = start + np.arange(first, 1000)
                values = RANDOM.normal(size=(len(at), 3)).round(6)
                values[:, 0] = at
                text += lines(user, letter, (50 * at + late) * MS, values)
            write(folder, sensor, user, text)
    for other in ("phone/accel/data_1600_accel_phone.txt", "._data_1600_gyro.txt"):
        (folder / "raw" / other).parent.mkdir(parents=True, exist_ok=True)
        (folder / "raw" / other).write_text("of no concern")
    return folder


@pytest.fixture
def copy(folder, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(folder, tmp_path / "copy")


def test_watch_has_both_sensors_and_one_activity_of_eating(folder):
    data = load("wisdm", source=folder)
    spec = data.spec
    assert (spec.rate_hz, spec.time, spec.split) == (20.0, 200, "time_block")
    assert spec.channels == ("acc.x", "acc.y", "acc.z", "gyro.x", "gyro.y", "gyro.z")
    assert (spec.public, spec.private) == ("activity", ("subject",))
    assert spec.classes["activity"] == ("walking", "eating")
    assert spec.classes["task"] == ("walking", "soup", "sandwich")
    assert spec.classes["subject"] == ("1600", "1601", "1650")
    for side in data[1:]:  # 10 ms apart, the same sample of both sensors.
        np.testing.assert_array_equal(side.windows[..., 0], side.windows[..., 3])
        np.testing.assert_array_equal(
            side.labels["activity"], np.array([0, 1, 1])[side.labels["task"]]
        )


def test_the_last_fifth_of_every_task_tests_a_window_apart(folder):
    data = load("wisdm", source=folder)
    for subject in range(3):
        for task, start in enumerate((9000, 3000, 0)):
            train, test = (
                side.windows[
                    (side.labels["subject"] == subject) & (side.labels["task"] == task)
                ][..., 0]
                for side in data[1:]
            )
            # Rows 2 to 999: row 2 + 798 is the first to test; the 200 before are
            # dropped.
            firsts = [2 + 100 * window for window in range(4)]
            np.testing.assert_array_equal(train[:, 0] - start, firsts)
            assert train.max() - start == 2 + 300 + 199 < 2 + 798 - 200
            assert test.min() == start + 800 and len(test) == 1


def test_the_accelerometer_alone(folder, tmp_path):
    data = load("wisdm", source=folder, preset="watch-accel")
    assert data.spec.channels == ("acc.x", "acc.y", "acc.z")
    assert data.spec.classes["activity"] == ("walking", "kicking")
    # 1000 rows: 600 train, in 5 windows, and 200 test, in one.
    assert [len(side.windows) for side in data[1:]] == [3 * 2 * 5, 3 * 2]
    # The published cut has no times, and repeats all rows of one file.
    for user in (1600, 1601, 1650):
        text = (folder / f"raw/watch/accel/data_{user}_accel_watch.txt").read_text()
        rows = [line.rstrip(";").split(",") for line in text.splitlines()]
        rows = [",".join(row[:2] + row[3:]) for row in rows if row[1] in "AM"]
        path = tmp_path / f"cut/train/data_{user}_accel_watch.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(rows * (2 if user == 1601 else 1)))
    cut = load("wisdm", source=tmp_path / "cut", preset="watch-accel")
    assert cut.spec == data.spec
    np.testing.assert_array_equal(cut.train.windows, data.train.windows)
    np.testing.assert_array_equal(cut.test.windows, data.test.windows)


def test_zips_give_the_same_and_the_fuller_one_is_taken(folder, zipped, tmp_path):
    place = tmp_path / "zips"
    place.mkdir()
    fewer = shutil.copytree(folder, tmp_path / "fewer")
    (fewer / "raw/watch/accel/data_1650_accel_watch.txt").unlink()
    named = zipped(fewer, place / "a.zip")
    zipped(folder, place / "b.zip")
    data = load("wisdm", source=folder)
    packed = load("wisdm", source=place / "b.zip")
    np.testing.assert_array_equal(packed.test.windows, data.test.windows)
    people = lambda source: load(
        "wisdm", source=source, preset="watch-accel"
    ).spec.classes["subject"]
    assert people(place) == ("1600", "1601", "1650")
    assert people(named) == ("1600", "1601")


def test_who_lacks_a_sensor_is_left_out_with_a_warning(copy):
    (copy / "raw/watch/gyro/data_1601_gyro_watch.txt").unlink()
    one = lines(1650, "A", np.array([7]), np.zeros((1, 3)))
    write(copy, "gyro", 1650, one)
    with pytest.warns(UserWarning, match=r"dropped users \['1601', '1650'\]"):
        data = load("wisdm", source=copy)
    assert data.spec.classes["subject"] == ("1600",)


instants = st.lists(st.integers(0, 400), unique=True, min_size=1, max_size=12)


@given(instants, instants)
def test_the_nearest_row_is_found(accel, gyro):
    sides = [
        Piece(np.sort(times) * 10 * MS, np.sort(times)[:, None] + np.zeros(3))
        for times in (accel, gyro)
    ]
    pieces = align([sides[0]], [sides[1]])
    want = []  # By comparing every pair.
    for time in sorted(accel):
        nearest = min(sorted(gyro), key=lambda other: abs(other - time))
        if abs(nearest - time) * 10 <= 25:
            want.append((time, nearest))
    rows = np.concatenate([np.zeros((0, 6)), *pieces])
    assert [tuple(row) for row in rows[:, [0, 3]].tolist()] == want
    for piece in pieces:
        assert (np.diff(piece[:, 0]) * 10 <= 500).all()
    for one, other in itertools.pairwise(pieces):
        assert (other[0, 0] - one[-1, 0]) * 10 > 500


def test_rows_are_sorted_and_of_two_at_one_time_the_first_stays():
    at = np.array([100, 0, 50, 50, 600, 601, 1200]) * MS
    values = np.arange(7.0)[:, None] * np.ones(3)
    text = "\n".join(lines(1600, "S", at, values)).encode()
    ((task, pieces),) = read_tasks("a.txt", "1600", text).items()
    assert task == 17 and reading.GAP_NS == 500 * MS
    # 100 to 600 ms is not yet a gap; 601 to 1200 ms is.
    assert [piece.rows[:, 0].tolist() for piece in pieces] == [[1, 2, 0, 4, 5], [6]]
    assert pieces[0].times.tolist() == (np.array([0, 50, 100, 600, 601]) * MS).tolist()


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda text: text[:-1], "is truncated or damaged (a row does"),
        (lambda text: text[:-12], "is truncated or damaged"),
        (lambda text: "", "is truncated or damaged (it has no rows)"),
        (
            lambda text: text.replace(",H,", ",N,"),
            "activities with the letters ABCDEFGHIJKLMOPQRS, got ['N']",
        ),
        (
            lambda text: text.replace(",H,", ",hot,"),
            "activities with the letters ABCDEFGHIJKLMOPQRS, got ['ho']",
        ),
        (
            lambda text: text.replace("1601,L", "1602,L"),
            "only rows of user 1601, got [1602]",
        ),
        (
            lambda text: text.replace(",3000.0,", ",nan,"),
            "got NaN or infinity; download",
        ),
        (
            lambda text: text.replace(",3000.0,", ",inf,"),
            "got NaN or infinity; download",
        ),
        (lambda text: text.replace(",3000.0,", ",x,"), "is truncated or damaged"),
    ],
)
def test_says_which_file_is_damaged_and_how(copy, spoil, message):
    path = copy / "raw/watch/accel/data_1601_accel_watch.txt"
    # The first two rows have no partner in the gyroscope, so they are dropped.
    text = path.read_text().replace(",3002.0,", ",3000.0,").strip()
    path.write_text(spoil(text))
    with pytest.raises(ValueError) as error:
        load("wisdm", source=copy)
    assert message in str(error.value)


def test_says_whose_file_is_one_too_many(copy, tmp_path, monkeypatch):
    accel = copy / "raw/watch/accel"
    shutil.copy(accel / "data_1600_accel_watch.txt", copy)
    with pytest.raises(ValueError, match="the only file of its kind of user 1600"):
        load("wisdm", source=copy, preset="watch-accel")
    shutil.move(
        accel / "data_1601_accel_watch.txt", accel / "data_1599_accel_watch.txt"
    )
    with pytest.raises(ValueError, match="a user from 1600 to 1650, got 1599"):
        load("wisdm", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of wisdm"):
        load("wisdm", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    for preset in ("watch", "watch-accel"):
        with pytest.raises(
            FileNotFoundError, match=r"wisdm was not found; extract .*dataset/507"
        ):
            load("wisdm", preset=preset)


def test_recordings_of_the_presets_are_kept_apart(folder, cache):
    dataset = registry.find("wisdm")
    both = store.read(dataset, folder, cache)
    alone = store.read(dataset.presets["watch-accel"].origin, folder, cache)
    assert [r.rows.shape[1] for r in both] == [6] * 12
    assert [r.rows.shape[1] for r in alone] == [3] * 12
