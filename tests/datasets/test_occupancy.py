"""Occupancy from a small table in the original layout, and the real table's counts."""

import os
import pathlib

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store
from jaxanon.datasets.occupancy.description import COLUMNS, DATASET
from jaxanon.datasets.occupancy.occupancy_dataset_builder import read_table

SHARED = pathlib.Path(__file__).parents[3] / "shared/data"
REAL = pathlib.Path(os.environ.get("JAXANON_DATA") or SHARED) / "occupancy"
TITLES = [*COLUMNS]
TITLES.insert(TITLES.index("S5_CO2") + 1, "S5_CO2_Slope")
HEADER = ",".join(["Date", "Time", *TITLES, "Room_Occupancy_Count"])
# Day, first time, number of rows, and number of people.
DAYS = [
    ("2017-12-22", "20:00:00", [(3, 130), (2, 130), (1, 130), (0, 260)]),
    ("2017-12-23", "8:15:00", [(0, 130), (3, 130), (2, 130), (1, 130)]),
]


def lines(days=DAYS, blank=()):
    """Returns lines where column c of row r is r + c / 8; ``blank`` cells are empty.

    Each entry of ``blank`` is ``(row, title)``.
    """
    found = [HEADER]
    for day, first, stretches in days:
        clock = np.datetime64(f"{day}T{first:0>8}")
        for people, count in stretches:
            for _ in range(count):
                row = len(found) - 1
                cells = [
                    "" if (row, t) in blank else str(row + c / 8)
                    for c, t in enumerate(TITLES)
                ]
                date, time = str(clock).split("T")
                # As in the original file, hours have no leading zero.
                time = f"{int(time[:2])}{time[2:]}"
                found.append(",".join([date, time, *cells, str(people)]))
                clock += np.timedelta64(30, "s")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("occupancy")
    text = "\n".join(lines(blank=[(5, "S5_CO2"), (6, "S5_CO2"), (0, "S1_Temp")]))
    (found / "Occupancy_Estimation.csv").write_text(text + "\n")
    return found


def test_stretches_are_of_as_many_people_without_a_gap(folder, cache):
    found = store.read(registry.find("occupancy"), folder, cache)
    # The evening's 0 lasts through midnight, but not to the next morning.
    assert [own.labels["people"] for own in found] == [3, 2, 1, 0, 0, 3, 2, 1]
    assert [len(own.rows) for own in found] == [130] * 3 + [260] + [130] * 4
    assert [own.trial for own in found] == [0] * 4 + [1] * 4
    days = [own.labels["subject"] for own in found]
    assert days == ["2017-12-22"] * 4 + ["2017-12-23"] * 4
    # The slope of CO2, the 14th of 16, is dropped.
    columns = np.delete(np.arange(16), 13) / 8
    rows = np.concatenate([own.rows for own in found])
    want = np.arange(len(rows))[:, None] + columns
    want[0, 0] = want[1, 0]  # No row is before it.
    np.testing.assert_array_equal(rows, want.astype(np.float32))


def test_windows_of_a_room(folder):
    data = load("occupancy", source=folder)
    spec = data.spec
    assert spec.classes == {
        "people": ("0", "1", "2", "3"),
        "subject": ("2017-12-22", "2017-12-23"),
    }
    assert (spec.public, spec.private) == ("people", ("subject",))
    assert (spec.time, spec.rate_hz, len(spec.channels)) == (16, 1 / 30, 15)
    assert dict(zip(spec.channels, spec.units, strict=True)) == {
        **{f"{n} temp": "°C" for n in range(1, 5)},
        **{f"{n} light": "lx" for n in range(1, 5)},
        **{f"{n} sound": "V" for n in range(1, 5)},
        **{"CO2": "ppm", "PIR 6": "1", "PIR 7": "1"},
    }
    # 32 of 130 rows test, 98 less 16 train: (32 - 16) // 2 + 1 and (82 - 16) // 2 + 1.
    for side, count in ((data.train, 34), (data.test, 9)):
        late = side.labels["people"][side.labels["subject"] == 1]
        assert np.bincount(late).tolist() == [count] * 4


def test_a_gap_of_five_minutes_is_none(tmp_path):
    for seconds, count in ((300, 1), (301, 2)):
        text = lines([("2017-12-22", "20:00:00", [(0, 60)])])
        clock = np.datetime64("2017-12-22T20:29:30") + np.timedelta64(seconds, "s")
        day, time = str(clock).split("T")
        text += lines([(day, time, [(0, 60)])])[1:]
        folder = tmp_path / str(seconds)
        folder.mkdir()
        (folder / "Occupancy_Estimation.csv").write_text("\n".join(text))
        assert len(store.read(DATASET, folder)) == count


def test_dates_may_have_slashes():
    text = "\n".join(lines())
    there = read_table("f", text.encode())
    slashes = read_table("f", text.replace("2017-12-", "2017/12/").encode())
    assert there.clock[0] == np.datetime64("2017-12-22T20:00:00")
    np.testing.assert_array_equal(slashes.clock, there.clock)


def test_a_zip_gives_the_same(folder, zipped, tmp_path):
    packed = zipped(folder, tmp_path / "room.zip")
    one, other = (load("occupancy", source=source) for source in (folder, packed))
    assert one.spec == other.spec
    np.testing.assert_array_equal(one.test.windows, other.test.windows)


def swap(text, number, old, new):
    """Changes one cell of the text, in line ``number`` counted from 1."""
    line = text[number - 1]
    assert old in line
    return [*text[: number - 1], line.replace(old, new, 1), *text[number:]]


@pytest.mark.parametrize(
    "spoil, message",
    [
        (
            lambda text: [*text[:3], text[3][:-9]],
            r"line 4, must .*\(it has 17 of 19",
        ),
        (lambda text: swap(text, 3, "1.125", "warm"), r"line 3, .*float: 'warm'"),
        (
            lambda text: swap(text, 3, "-12-22", "-13-22"),
            r"line 3, .*\(time data '2017-",
        ),
        (
            lambda text: [*text[:3], text[3][:-1] + "4"],
            r"line 4, .*\(it has '4' people",
        ),
        (lambda text: [*text[:3], text[3][:-1]], r"line 4, .*\(it has '' people\)"),
        (lambda text: [*text[:3], text[2]], r"line 4, .*\(time does not increase"),
        (lambda text: text[:1], "Estimation.csv is truncated, it has no rows"),
        (
            lambda text: swap(text, 1, "S5_CO2,", "CO,"),
            r"must have the columns \['S5_CO2'\]",
        ),
        (lambda text: [], r"must have the columns \['Date', 'Time', .*\], got \[\]"),
        (
            lambda text: swap(text, 3, "1.125", "inf"),
            r"line 3, .*\(a reading is infinite\)",
        ),
    ],
)
def test_says_what_is_damaged(tmp_path, spoil, message):
    text = "\n".join(spoil(lines()))
    (tmp_path / "Occupancy_Estimation.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load("occupancy", source=tmp_path)


def test_a_sensor_that_was_never_read():
    blank = [(row, "S3_Light") for row in range(2000)]
    with pytest.raises(ValueError, match="f must have a reading of S3_Light"):
        read_table("f", "\n".join(lines(blank=blank)).encode())


def test_says_what_is_twice_there_or_missing(folder, tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / "copy" / name).mkdir(parents=True)
        content = (folder / "Occupancy_Estimation.csv").read_bytes()
        (tmp_path / "copy" / name / "Occupancy_Estimation.csv").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"must hold exactly one table, got \['one/Occ.*remove"
    ):
        load("occupancy", source=tmp_path / "copy")
    with pytest.raises(FileNotFoundError, match="has no file of occupancy"):
        load("occupancy", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match="occupancy was not found; download Occupancy"
    ):
        load("occupancy")


@pytest.mark.skipif(
    not REAL.exists(), reason="occupancy is not in $JAXANON_DATA or ../shared/data"
)
def test_the_room_as_it_is(cache):
    found = store.read(registry.find("occupancy"), REAL, cache)
    people = np.repeat(
        [own.labels["people"] for own in found], [len(own.rows) for own in found]
    )
    assert np.bincount(people).tolist() == [8228, 459, 748, 694]  # The UCI version.
    data = load("occupancy", source=REAL)
    assert data.spec.classes["subject"] == (
        *("2017-12-22", "2017-12-23", "2017-12-25", "2018-01-10"),
    )
    co2 = data.train.windows[..., data.spec.channels.index("CO2")]
    assert 340 < co2.min() and co2.max() < 1300
    # Light increases with people, because an empty room stays dark.
    light = data.train.windows[..., data.spec.channels.index("1 light")].mean(axis=1)
    told = [light[data.train.labels["people"] == n].mean() for n in range(4)]
    assert told[0] < 10 < min(told[1:])
