"""Pecan Street from small files in the format of Dataport."""

import gzip
import shutil
import sys

import numpy as np
import pytest

from jaxanon.datasets import load
from jaxanon.datasets.pecan_street.clocks import minute_of_day, universal

pytest.importorskip("pyarrow")
DAYS, DAY = 8, 1440
SERVER = "-05"  # Hours from UTC of all stamps: daylight time in Texas.
START = np.datetime64("2019-06-03T00:00", "m")  # The server's clock.
CIRCUITS = ("air1", "furnace1", "dishwasher1", "drye1", "refrigerator1", "oven1")


def lines(home, columns, values):
    """Returns the rows of a file.

    Dataid, localminute, then ``values[minute, column]``.
    """
    yield ",".join(["dataid", "localminute", *columns])
    order = np.random.default_rng(home).permutation(len(values))
    for minute in order:
        time = str(START + np.timedelta64(int(minute), "m")).replace("T", " ")
        row = ["" if np.isnan(x) else repr(float(x)) for x in values[minute]]
        yield ",".join([str(home), f"{time}:00{SERVER}", *row])


def use(home):
    """Returns home + t / 1024 for minute t, which float32 represents exactly."""
    return home + np.arange(DAYS * DAY) / 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes two Austin homes, one with solar power and a gap, and one in New York."""
    folder = tmp_path_factory.mktemp("pecan") / "pecan_street"
    folder.mkdir()
    nothing = np.full(DAYS * DAY, np.nan)
    air = np.arange(DAYS * DAY) % 7 / 8
    solar = np.where(np.arange(DAYS * DAY) % 2, 0.25, np.nan)
    grid = use(26) - np.nan_to_num(solar)
    grid[700:705] = np.nan  # Bridged.
    austin = [*lines(26, ["grid", "solar", "air1"], np.stack([grid, solar, air], 1))]
    more = lines(59, ["grid", "solar", "air1"], np.stack([use(59), nothing, air], 1))
    austin += [*more][1:]
    (folder / "1minute_data_austin.csv").write_text("\n".join(austin) + "\n")
    every = np.stack([use(27), *[air * (i + 1) for i in range(6)]], 1)
    text = "\n".join(lines(27, ["use", *CIRCUITS], every)) + "\n"
    (folder / "1minute_data_newyork.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_texas_alone_by_its_own_clock(folder):
    data = load("pecan_street", source=folder, preset="texas24")
    spec = data.spec
    assert spec.classes == {"region": ("texas",), "subject": ("26", "59")}
    assert spec.channels == ("use", "time_sin", "time_cos") and spec.units[0] == "kW"
    assert (spec.public, spec.split, spec.target.unit) == ("power", "time_block", "kW")
    for number, home in enumerate((26, 59)):
        truth = use(home)
        if home == 26:
            truth[700:705] = truth[699]
        hours = truth.reshape(-1, 60).mean(axis=1)
        sides = [
            (side.windows[side.labels["subject"] == number],
             side.labels["power"][side.labels["subject"] == number])
            for side in data[1:]
        ]  # fmt: skip
        # 192 hours: 154.5 train, less the 25 before the test.
        for (windows, power), start in zip(sides, (0, 154), strict=True):
            for i, (window, target) in enumerate(zip(windows, power, strict=True)):
                at = start + i
                np.testing.assert_allclose(window[:, 0], hours[at : at + 24], rtol=1e-6)
                assert target == pytest.approx(hours[at + 24], rel=1e-6)
                turn = 2 * np.pi * ((np.arange(at, at + 24) % 24) + 29.5 / 60) / 24
                np.testing.assert_allclose(window[:, 1], np.sin(turn), atol=4e-3)
                np.testing.assert_allclose(window[:, 2], np.cos(turn), atol=4e-3)
        assert [len(windows) for windows, _ in sides] == [154 - 25 - 24, 192 - 154 - 24]


def test_new_users_are_in_new_york_and_keep_their_own_time(folder):
    data = load("pecan_street", source=folder, preset="new_users24")
    spec = data.spec
    assert spec.classes["region"] == ("texas", "new_york")
    assert spec.classes["subject"] == ("26", "59", "27")
    assert set(data.train.labels["subject"].tolist()) == {0, 1}
    texas = load("pecan_street", source=folder, preset="texas24")
    assert (spec.mean, spec.target) == (texas.spec.mean, texas.spec.target)
    own = data.test.labels["subject"] == 2
    assert own.sum() == 192 - 24  # All windows.
    # Midnight on the server's clock is one in the morning in New York.
    turn = 2 * np.pi * (1 + 29.5 / 60) / 24
    np.testing.assert_allclose(data.test.windows[own][0, 0, 1], np.sin(turn), atol=4e-3)
    np.testing.assert_allclose(data.test.windows[own][0, 0, 0], use(27)[:60].mean())


def test_circuits_and_the_table_of_homes(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    table = "dataid,city,state\nwhose home,where,which\n59,San Diego,California\n"
    (copy / "metadata.csv").write_text(table)
    data = load("pecan_street", source=copy, preset="circuits24")
    spec = data.spec
    assert spec.channels == ("use", *CIRCUITS, "time_sin", "time_cos")
    assert spec.classes["region"] == ("texas", "new_york", "california")
    # By region and home.
    assert spec.classes["subject"] == ("26", "27", "59")
    air = np.arange(DAY) % 7 / 8
    bridged = air.copy()
    bridged[700:705] = air[699]  # A reading holds until the next one.
    for number, own, factors in (
        (0, bridged, (1, 0, 0, 0, 0, 0)),
        (1, air, (1, 2, 3, 4, 5, 6)),
    ):
        window = data.train.windows[data.train.labels["subject"] == number][0]
        hours = own.reshape(-1, 60).mean(axis=1)
        expected = hours[:, None] * np.array(factors)
        np.testing.assert_allclose(window[:, 1:7], expected, rtol=1e-5)
    here = data.train.labels["region"] == 2
    turn = 2 * np.pi * (22 + 29.5 / 60) / 24  # Two hours behind Texas.
    np.testing.assert_allclose(
        data.train.windows[here][0, 0, 7], np.sin(turn), atol=4e-3
    )


def test_clocks_go_back_once_a_year():
    # 2019-11-03, 01:30 in New York, before and after; then 02:30, and a winter's day.
    stamps = ["2019-11-03 00:30:00-05", "2019-11-03 00:30:00-06"]
    stamps += ["2019-11-03 01:30:00-06", "2019-12-24 17:00:00-06"]
    minutes = universal(np.array(stamps))
    assert np.diff(minutes).tolist()[:2] == [60, 60]
    found = minute_of_day(minutes, "America/New_York").tolist()
    assert found == [90, 90, 150, 18 * 60]


@pytest.mark.parametrize(
    "spoil, message",
    [
        (
            lambda t: t.replace("localminute", "minute"),
            r"must have the columns \['localm",
        ),
        (
            lambda t: t.replace("grid", "net"),
            r"must have the columns \['use or grid'\]",
        ),
        (lambda t: t.replace(SERVER, "", 1), "must have an offset from UTC"),
        (lambda t: t[:-40] + "\n", "1minute_data_austin.csv is truncated or damaged"),
        (lambda t: t.replace(",0.5", ",half", 1), "austin.csv is truncated or damaged"),
    ],
)
def test_says_which_file_is_damaged(folder, tmp_path, spoil, message):
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "1minute_data_austin.csv"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(ValueError, match=message):
        load("pecan_street", source=copy)


def test_says_what_is_missing(folder, tmp_path, monkeypatch):
    (tmp_path / "some").mkdir()
    shutil.copy(folder / "1minute_data_austin.csv", tmp_path / "some/1minute_data.csv")
    with pytest.raises(ValueError, match="must be named after a region.* list home 26"):
        load("pecan_street", source=tmp_path / "some")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pecan_street requires pyarrow"):
        load("pecan_street", source=tmp_path / "some")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match="download the 1-minute data of a region at"
    ):
        load("pecan_street")


def test_zips_beside_each_other_are_one(folder, zipped, tmp_path, monkeypatch):
    place = tmp_path / "pecan_street"
    for part in ("austin.csv", "newyork.csv.gz"):
        alone = tmp_path / part
        alone.mkdir()
        shutil.copy(folder / f"1minute_data_{part}", alone)
        place.mkdir(exist_ok=True)
        zipped(alone, place / f"{part}.zip")
    monkeypatch.setenv("JAXANON_DATA", str(tmp_path))
    one, other = (
        load("pecan_street", source=s, preset="new_users24") for s in (None, folder)
    )
    assert one.spec == other.spec
    np.testing.assert_array_equal(one.test.windows, other.test.windows)
