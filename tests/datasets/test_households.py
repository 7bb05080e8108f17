"""The five homes, from small files in the original layout and from the real files."""

import gzip
import pathlib
import shutil

import numpy as np
import pytest

from jaxanon.datasets import load

ARCHIVE = pathlib.Path(__file__).parents[3] / "shared/data/households/households.zip"
START = np.datetime64("2014-05-27T10:30", "m")
DAYS, HOUR, DAY = 10, 60, 1440
LONG, SHORT = 3000, 9000  # Minutes at which gaps begin.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes two homes, ten days across a month's end, gaps as in the originals."""
    folder = tmp_path_factory.mktemp("homes") / "households"
    folder.mkdir()
    for name, scale, appliances in (
        ("REFIT_House1", 1, "Kettle,Dishwasher,WashingMachine,Microwave"),
        ("IDEAL_House3", 3, "Shower,WashingMachine,Dishwasher"),
    ):
        lines = {}
        for minute, values in enumerate(readings(scale)):
            time = str(START + np.timedelta64(minute, "m")).replace("T", " ")
            row = values[: 1 + len(appliances.split(","))]
            text = ",".join([f"{time}:00", *map(repr, map(float, row))])
            lines.setdefault(time[:7], []).append(text)
        for month, rows in lines.items():
            text = "\n".join([f"Time,Aggregate,{appliances}", *rows]) + "\n"
            path = folder / f"{name}_{month}.gzip"
            path.write_bytes(gzip.compress(text.encode()))
    (folder / "example_Kettle.gzip").write_bytes(gzip.compress(b"of no concern"))
    return folder


def readings(scale):
    """Returns t + 1 in minute t, other appliance values, and filled gaps."""
    values = np.arange(1.0, DAYS * DAY + 1)[:, None] * scale
    values = values + np.array([0, 0.25, 0.5, 0.75, 0.125])
    values[LONG : LONG + 14] = values[LONG - 1]
    values[LONG + 14 : LONG + 40] = 0
    values[SHORT : SHORT + 9] = 0
    return values


def true_minutes(scale):
    """Returns the aggregate that the library should use, NaN in the long gap."""
    values = readings(scale)[:, 0]
    values[LONG : LONG + 40] = np.nan
    values[SHORT : SHORT + 9] = values[SHORT - 1]
    return values


@pytest.mark.parametrize("every", [15, 60])
def test_windows_are_means_of_what_was_read(folder, every):
    data = load("households", source=folder, preset=f"day{24 * 60 // every}")
    spec = data.spec
    assert spec.channels == (
        *("aggregate", "dishwasher", "washing_machine", "time_sin", "time_cos"),
    )
    assert spec.classes["subject"] == ("IDEAL 3", "REFIT 1")
    assert spec.classes["survey"] == ("REFIT", "IDEAL")
    assert (spec.public, spec.private, spec.split) == (
        "power",
        ("subject",),
        "time_block",
    )
    assert spec.rate_hz == pytest.approx(1 / 60 / every)
    samples = 60 // every
    for number, (survey, scale) in enumerate((("IDEAL", 3), ("REFIT", 1))):
        truth = true_minutes(scale)
        sides = []
        for side in data[1:]:
            own = side.labels["subject"] == number
            assert set(
                spec.classes["survey"][i] for i in side.labels["survey"][own]
            ) == {survey}
            # The first sample is the mean of a ramp of one step per minute.
            first = side.windows[own][:, 0, 0] / scale - 1 - (every - 1) / 2
            starts = np.round(first).astype(int)
            sides.append(starts)
            for window, target, start in zip(
                side.windows[own], side.labels["power"][own], starts, strict=True
            ):
                means = truth[start : start + DAY].reshape(-1, every).mean(axis=1)
                np.testing.assert_allclose(window[:, 0], means, rtol=1e-6)
                after = truth[start + DAY : start + DAY + HOUR].mean()
                assert target == pytest.approx(after, rel=1e-6)
                # The clock at the middle of the first sample.
                clock = (start + 10 * 60 + 30 + (every - 1) / 2) / DAY
                turn = np.angle(window[0, 4] + 1j * window[0, 3]) / (2 * np.pi)
                assert abs((turn - clock + 0.5) % 1 - 0.5) < 1e-4
        train, test = sides
        assert ((START.astype(int) + np.concatenate(sides)) % HOUR == 0).all()
        # A training window's hour ends at least 25 hours before the first test window.
        assert train.max() + 25 * HOUR + 25 * HOUR <= test.min()
        assert not (set(train) & set(test)) and (np.diff(train) >= HOUR).all()
        assert len(test) > 10
    assert spec.target.samples == samples and spec.target.channel == "aggregate"
    power = data.train.labels["power"].astype(float)
    assert spec.target.mean == pytest.approx(power.mean())
    assert spec.target.std == pytest.approx(power.std())


def test_statistics_are_of_training_minutes(folder):
    data = load("households", source=folder, preset="day24")
    rows = []
    for number, scale in enumerate((3, 1)):
        test = data.test.windows[data.test.labels["subject"] == number]
        boundary = test[0, 0, 0] / scale - 30.5 - 25 * HOUR  # A gap before it.
        truth = true_minutes(scale)
        kept = np.isfinite(truth) & (np.arange(len(truth)) < round(boundary))
        kept[:30] = False  # Before the first full hour.
        start = LONG + 40 + (-(LONG + 40) - 30) % HOUR
        kept[(LONG - 30) // HOUR * HOUR + 30 : start] = False
        rows.append(truth[kept])
    rows = np.concatenate(rows)
    assert data.spec.mean[0] == pytest.approx(rows.mean(), rel=1e-6)


def test_months_are_clients_where_there_is_enough_of_them(folder):
    # May has fewer than five days here, June slightly more than five: neither has
    # seven.
    with pytest.raises(ValueError, match="households must hold a recording"):
        load("households", source=folder, preset="months24")


def test_a_zip_gives_the_same(folder, zipped, tmp_path):
    archive = zipped(folder, tmp_path / "homes.zip")
    one, other = (load("households", source=s) for s in (folder, archive))
    assert one.spec == other.spec
    np.testing.assert_array_equal(one.test.windows, other.test.windows)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda text: text[:-30], "must hold a time and 5 numbers per row"),
        (
            lambda text: text.replace("Dishwasher", "Dish"),
            r"must have the columns \['Dish",
        ),
        (
            lambda text: text.replace(",2.0,", ",nan,"),
            "NaN, infinity, or ti",
        ),
        (lambda text: text + text.splitlines()[1] + "\n", "or time does not increase"),
    ],
)
def test_says_which_file_is_damaged(folder, tmp_path, spoil, message):
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "REFIT_House1_2014-05.gzip"
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(spoil(text).encode())  # Plain text also works.
    with pytest.raises(ValueError, match=f"REFIT_House1_2014-05.gzip.*{message}"):
        load("households", source=copy)


def test_says_what_is_truncated_twice_there_or_missing(folder, tmp_path, monkeypatch):
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "REFIT_House1_2014-05.gzip"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="2014-05.gzip is truncated or damaged"):
        load("households", source=copy)
    shutil.copy(folder / path.name, path)
    shutil.copy(path, path.with_suffix(".csv"))
    with pytest.raises(ValueError, match="twice, perhaps compressed and uncompressed"):
        load("households", source=copy)
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match="download the folder Data of https://git"
    ):
        load("households")


@pytest.mark.skipif(not ARCHIVE.is_file(), reason="../shared/data/households is absent")
def test_the_five_homes_as_they_are():
    homes = load("households", source=ARCHIVE, preset="day24")
    assert homes.spec.classes["subject"] == (
        *("IDEAL 175", "IDEAL 65", "REFIT 2", "REFIT 20", "UK-DALE 2"),
    )
    months = load("households", source=ARCHIVE, preset="months24")
    # 42 files less those of REFIT's house 2 of November to February, with few readings.
    assert len(months.spec.classes["subject"]) == 38
    for data in (homes, months):
        for side in data[1:]:
            # A metered home draws some power, a filled gap none.
            assert side.windows[..., 0].min() > 0 and side.labels["power"].min() > 0
