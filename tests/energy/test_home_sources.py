"""Homes from files of data sets: Dataport's layout, and real traces."""

import pathlib

import numpy as np
import pytest

from jaxanon import energy

SHARED = pathlib.Path(__file__).parents[3] / "shared/data"
DAY = 1440


def dataport(home, watts, start="2019-06-03T00:00"):
    """Yields lines of a Dataport file, in kW, on the clock of its server."""
    for minute, row in enumerate(watts):
        time = str(np.datetime64(start, "m") + np.timedelta64(minute, "m")).replace(
            "T", " "
        )
        numbers = ",".join("" if np.isnan(x) else repr(float(x)) for x in row)
        yield f"{home},{time}:00-05,{numbers}"


@pytest.fixture(scope="module")
def austin(tmp_path_factory):
    """Two homes for three days of Texas's summer time; the second has no oven.

    On day 2 the first home's meter has a gap of 20 minutes.
    """
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("pecan") / "pecan_street"
    folder.mkdir()
    minute = np.arange(3 * DAY)
    oven = np.where(minute % DAY < 60, 2.0, 0.003) + minute // DAY / 1024
    one = np.stack([oven + 0.5, oven, 0 * oven + 0.25], 1)
    two = np.stack([0 * oven + 0.5, np.nan * oven, 0 * oven + 0.25], 1)
    lines = ["dataid,localminute,use,oven1,refrigerator1", *dataport(26, one)]
    del lines[1 + DAY + 300 : 1 + DAY + 320]
    lines += dataport(59, two)
    (folder / "1minute_data_austin.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_pecan_street_by_home_and_circuit(austin, tmp_path):
    where = {"source": austin, "data_dir": tmp_path}
    made = energy.load_homes("pecan_street", days=1, test_days=1, **where)
    assert made.names == ("26", "59") and made.kind_names == ("refrigerator1", "oven1")
    assert [str(day) for day in made.dates[0]] == ["2019-06-03", "2019-06-05"]
    assert [str(day) for day in made.dates[1]] == ["2019-06-03", "2019-06-04"]
    # The oven of the first and third day, in W; none in the second home.
    expected = [2000, 3, 2000 + 2000 / 1024]
    found = made.power[0, [0, 60, DAY], 1]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.isnan(made.power[1, :, 1]).all() and (made.power[1, :, 0] == 250).all()
    neighborhood = energy.neighborhood_from_settings(
        energy.PFDRLSettings(days=1, test_days=1), made
    )
    assert neighborhood.present.tolist() == [True, True, True, False]
    assert (
        neighborhood.levels.standby[1] == pytest.approx(3)
        and not neighborhood.levels.standby[0]
    )


@pytest.mark.slow
def test_tracebase_shows_standby():
    """Composed homes have devices in standby, and no negative power."""
    if not (SHARED / "tracebase").exists():
        pytest.skip("the traces are not in shared/data/tracebase")
    pytest.importorskip("pyarrow")
    sizes = {"homes": 6, "devices": 5, "days": 4, "test_days": 1}
    made = energy.load_homes("tracebase", source=SHARED / "tracebase", **sizes)
    neighborhood = energy.neighborhood_from_settings(
        energy.PFDRLSettings(days=4, test_days=1), made
    )
    stands_by = np.asarray(neighborhood.levels.standby > 0)
    assert neighborhood.present.all() and 0.3 < stands_by.mean() < 1
    ratio = np.asarray(neighborhood.levels.on / neighborhood.levels.standby)[stands_by]
    assert (ratio >= 3).all()


@pytest.mark.slow
def test_british_homes_have_days_in_common():
    if not (SHARED / "households").exists():
        pytest.skip("the homes are not in shared/data/households")
    made = energy.load_homes("households", days=20, test_days=3)
    assert len(made.names) == 5 and made.power.shape[1:] == (23 * DAY, 5)
    assert not np.isnan(made.power[:, :, :2]).any()  # Every home has both.
    assert (np.diff(made.dates.astype(int), axis=1) >= 1).all()
