"""Room climate from small files in the original layout, and the real files' counts."""

import os
import pathlib
import shutil

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store
from jaxanon.datasets.room_climate.description import ACTIVITIES, CHANNELS
from jaxanon.datasets.room_climate.room_climate_dataset_builder import (
    UNLABELLED,
    interpolate,
    read_measurement,
)

SHARED = pathlib.Path(__file__).parents[3] / "shared/data"
REAL = pathlib.Path(os.environ.get("JAXANON_DATA") or SHARED) / "room_climate"
# Activity, number of people, and seconds; 0 is n/a.
DONE = [(0, 0, 200), (0, 1, 60), (1, 1, 200), (2, 2, 200), (3, 1, 200), (4, 2, 200)]
LENGTH = sum(seconds for *_, seconds in DONE)


def lines(nodes=(1, 2, 3), shift=0):
    """Node n is read n / 10 s after every fourth second; column c is 10 n + c + s."""
    found, ends = [], np.cumsum([seconds for *_, seconds in DONE])
    for second in range(0, LENGTH + 1, 4):
        activity, people, _ = DONE[min(np.searchsorted(ends, second, "right"), 5)]
        for node in nodes:
            time = second + node / 10
            read = [f"{10 * node + c + time:.1f}" for c in range(4)]
            stamp = 1458031648000 + shift + round(1000 * time)
            row = [len(found) + 1, stamp, second, node, *read, people, activity, 0, 1]
            found.append(", ".join(map(str, row)))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes three measurements per room, equally long; A also has a fourth node."""
    found = tmp_path_factory.mktemp("climate") / "room_climate"
    for room in "ABC":
        place = found / f"datasets-location_{room}"
        place.mkdir(parents=True)
        for number in (1, 2, 10):
            name = f"room_climate-location_{room}-measurement{number:02}.csv"
            nodes = (1, 2, 3, 4) if room == "A" else (1, 2, 3)
            (place / name).write_text("\n".join(lines(nodes, 86_400_000 * number)))
    (found / "README.md").write_text("of no concern")
    return found


def test_stretches_of_a_room_are_of_one_activity(folder, cache):
    found = store.read(registry.find("room_climate"), folder, cache)
    assert len(found) == 9 * 5  # Without unlabelled measurements.
    assert [own.trial for own in found[::5]] == [1, 2, 10] * 3
    assert [own.labels["subject"] for own in found[::15]] == [0, 1, 2]
    assert [own.labels["activity"] for own in found[:5]] == [0, 1, 2, 3, 4]
    # A row every 4 s, starting with the first reading at 0.1 s: 0.1 to 196.1 and so on.
    away, read, *_ = found
    assert away.rows.shape == (50, len(CHANNELS)) and len(read.rows) == 50
    columns = np.array([10 * node + c for node in (1, 2, 3) for c in range(4)])
    times = 0.1 + 4 * np.arange(50)[:, None]
    np.testing.assert_allclose(away.rows[1:], (columns + times)[1:], rtol=1e-6)
    np.testing.assert_allclose(read.rows, columns + times + 260, rtol=1e-6)
    # Before a node's first reading, at 0.2 and 0.3 s, that reading holds.
    first = columns + np.repeat([0.1, 0.2, 0.3], 4)
    np.testing.assert_allclose(away.rows[0], first, rtol=1e-6)


def test_windows_of_three_rooms(folder):
    data = load("room_climate", source=folder)
    spec = data.spec
    assert spec.classes == {"activity": ACTIVITIES, "subject": ("A", "B", "C")}
    assert (spec.public, spec.private, spec.split) == (
        *("activity", ("subject",), "time_block"),
    )
    assert (spec.time, spec.rate_hz, spec.channels) == (32, 0.25, CHANNELS)
    assert spec.units == ("°C", "%", "nm", "nm") * 3
    # 50 rows hold (50 - 32) // 8 + 1 windows; the last of three measurements tests.
    for side, count in ((data.train, 2 * 3), (data.test, 3)):
        assert len(side.windows) == 3 * 5 * count
        for room in range(3):
            mine = side.labels["activity"][side.labels["subject"] == room]
            assert np.bincount(mine).tolist() == [count] * 5


def test_climate_is_without_light(folder):
    both = load("room_climate", source=folder)
    data = load("room_climate", source=folder, preset="climate")
    assert data.spec.channels == tuple(
        f"{what}, node {node}" for node in (1, 2, 3) for what in ("temp", "humidity")
    )
    assert data.spec.units == ("°C", "%") * 3
    kept = [0, 1, 4, 5, 8, 9]
    np.testing.assert_array_equal(data.test.windows, both.test.windows[..., kept])


def test_a_zip_gives_the_same_and_rooms_may_be_split(folder, zipped, tmp_path):
    packed = zipped(folder, tmp_path / "all.zip")
    one, other = (
        load("room_climate", source=source, split="subject")
        for source in (folder, packed)
    )
    assert one.spec == other.spec
    np.testing.assert_array_equal(one.test.windows, other.test.windows)
    sides = [set(side.labels["subject"].tolist()) for side in one[1:]]
    assert [len(side) for side in sides] == [2, 1] and not sides[0] & sides[1]


def test_rows_are_put_into_the_order_of_time():
    text = lines()
    there = read_measurement("f", "\n".join(text).encode())
    back = read_measurement("f", "\n".join(text[::-1]).encode())
    assert (np.diff(back[:, 1]) > 0).all()
    for one, other in zip(interpolate(there), interpolate(back), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_activity_counts_and_somebody_without_one_is_not_told():
    rows = read_measurement("f", "\n".join(lines()).encode())
    rows = rows[rows[:, 2] < 20]  # Five rows of every node: 0.1 s to 16.3 s.
    for people, activity, label in (
        (0, 0, 0),
        (2, 0, UNLABELLED),
        (0, 4, 4),
        (1, 4, 4),
    ):
        rows[:, 8:10] = people, activity
        values, found = interpolate(rows)
        assert found.tolist() == [label] * 5 and values.shape == (5, 12)


def cut_node(text):
    return [line for line in text if line.split(", ")[3] != "2"]


def at_once(text):
    rows = [line.split(", ") for line in text]
    return [", ".join([number, "100", *rest]) for number, _, *rest in rows]


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda text: [*text[:-1], text[-1][:-4]], "02.csv is truncated or damaged"),
        (lambda text: [*text, "1, 2, 3, four"], "02.csv is truncated or damaged"),
        (lambda text: [*text[:9], "x" + text[9]], "could not convert string"),
        (lambda text: [line[:-3] for line in text], r"hold 12 numbers per row, got \("),
        (lambda text: [], "02.csv must hold 12 numbers per row, got None"),
        (cut_node, "must hold at least 2 readings of node 2, got 0; it is truncated"),
        (at_once, "must last from 4 s to 31622400 s, got 0 s; it is truncated"),
        (lambda text: text[:5], "must hold at least 2 readings of node 3, got 1"),
        (
            lambda text: [line.replace(", 2, 4, 0", ", 2, 5, 0") for line in text],
            r"activities from 0 to 4, got .* \[5.\]; download",
        ),
        (
            lambda text: [line.replace(" 11.1", "nan") for line in text],
            "got NaN, infinity",
        ),
    ],
)
def test_says_which_file_is_damaged(folder, tmp_path, spoil, message):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (path,) = copy.rglob("*B-measurement02.csv")
    path.write_text("\n".join(spoil(path.read_text().splitlines())))
    with pytest.raises(ValueError, match=message) as told:
        load("room_climate", source=copy)
    assert "location_B-measurement02.csv" in str(told.value)


def test_says_what_is_twice_there_or_missing(folder, tmp_path, monkeypatch):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (path,) = copy.rglob("*A-measurement01.csv")
    twin = shutil.copy(path, copy / "room_climate-location_A-measurement1.csv")
    with pytest.raises(ValueError, match="A-measurement1.csv twice; remove"):
        load("room_climate", source=copy)
    pathlib.Path(twin).unlink()
    shutil.rmtree(copy / "datasets-location_B")
    with pytest.raises(
        FileNotFoundError, match=r"of the rooms \['B'\] of room_climate"
    ):
        load("room_climate", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of room_climate"):
        load("room_climate", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match="room_climate was not found; download http"
    ):
        load("room_climate")


@pytest.mark.skipif(
    not REAL.exists(), reason="room_climate is not in $JAXANON_DATA or ../shared/data"
)
def test_the_rooms_as_they_are(cache):
    found = store.read(registry.find("room_climate"), REAL, cache)
    measured = {(own.labels["subject"], own.trial) for own in found}
    count = np.bincount([room for room, _ in measured])
    assert count.tolist() == [60, 44, 40]  # See NOTES.md in the data folder.
    rows = np.concatenate([own.rows for own in found])
    temperature, humidity = rows[:, 0::4], rows[:, 1::4]
    assert 20 < temperature.min() and temperature.max() < 26
    assert 33 < humidity.min() and humidity.max() < 66
    data = load("room_climate", source=REAL)
    for side in data[1:]:
        pairs = 5 * side.labels["subject"] + side.labels["activity"]
        assert np.bincount(pairs, minlength=15).min() > 70
