"""Homes from readings and data sets: whole days, and names in error messages."""

import numpy as np
import pytest

from jaxanon import energy
from jaxanon.datasets import store
from jaxanon.datasets.recordings import Recording
from jaxanon.energy import loading
from jaxanon.energy.homes import device_names, take

DAY = 1440


def readings(*, days=3, first=0, homes=("a", "b"), devices=("pc", "tv")):
    """Columns of readings, each ``home number + 10 * device number + day / 8``."""
    parts = []
    for h, home in enumerate(homes):
        for d, device in enumerate(devices):
            minute = first * DAY + np.arange(days * DAY)
            watts = 1 + h + 10 * d + (minute // DAY - first) / 8
            parts.append((np.full(len(minute), home), np.full(len(minute), device)))
            parts[-1] += (minute, watts)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def without(columns, rows):
    return [np.delete(column, rows) for column in columns]


def test_readings_become_homes_by_kind():
    made = energy.from_readings(*readings(first=366), 2)
    assert made.power.shape == (2, 2 * DAY, 2) and made.kind_names == ("pc", "tv")
    assert made.power[1, [0, DAY], 1].tolist() == [12, 12.125]
    assert str(made.dates[0, 0]) == "1971-01-02"
    assert device_names(made) == [["pc", "tv"]] * 2
    assert take(made, 1, 2).names == ("b",) and len(take(made, 1, 2).dates) == 1
    times = readings()[2].astype("datetime64[m]").astype("datetime64[s]")
    home, device, _, power = readings()
    same = energy.from_readings(home, device, times, power, 3)
    np.testing.assert_array_equal(same.power[0, :, 0], readings()[3][: 3 * DAY])


def test_homes_and_devices_may_be_numbered():
    homes, devices, *rest = readings(homes=(12, 3), devices=(1, 2))
    assert homes.dtype.kind == devices.dtype.kind == "i"
    made = energy.from_readings(homes, devices, *rest, 2)
    assert made.names == ("12", "3") and made.kind_names == ("1", "2")
    assert made.power[:, 0].tolist() == [[1, 11], [2, 12]]
    with pytest.raises(TypeError, match="strings or ints, got float64"):
        energy.from_readings(homes, devices / 2, *rest, 2)


def test_days_with_gaps_are_left_out_and_short_gaps_bridged():
    """15 minutes of home a's first device on its first day, 16 on its second."""
    columns = readings()
    gaps = np.r_[100:115, DAY + 100 : DAY + 116]
    columns[3][[0, 1]] = np.nan  # Also missing: filled with the next reading.
    made = energy.from_readings(*without(columns, gaps), 2)
    assert not np.isnan(made.power).any()
    assert made.power[0, [0, 110, DAY], 0].tolist() == [1, 1, 1.25]
    assert [str(day) for day in made.dates[0]] == ["1970-01-01", "1970-01-03"]
    assert [str(day) for day in made.dates[1]] == ["1970-01-01", "1970-01-02"]
    message = "at most 2 for a, .* got 3; pc has the fewest"
    with pytest.raises(ValueError, match=message):
        energy.from_readings(*without(columns, gaps), 3)


def test_a_device_that_a_home_lacks_is_not_there():
    columns = readings()
    own = (columns[0] == "b") & (columns[1] == "tv")
    made = energy.from_readings(*(column[~own] for column in columns), 3)
    assert np.isnan(made.power[1, :, 1]).all() and not np.isnan(made.power[0]).any()
    settings = energy.PFDRLSettings(days=2, test_days=1)
    neighborhood = energy.neighborhood_from_settings(settings, made)
    assert neighborhood.present.tolist() == [True, True, True, False]
    # Equivalent to a device that is NaN throughout.
    columns[3][own] = np.nan
    np.testing.assert_array_equal(energy.from_readings(*columns, 3).power, made.power)


def test_readings_out_of_order_name_home_and_device():
    columns = readings()
    swapped = [column.copy() for column in columns]
    swapped[2][[6 * DAY + 3, 6 * DAY + 4]] = [4, 3]
    with pytest.raises(ValueError, match="minute must increase, got .* for pc of b"):
        energy.from_readings(*swapped, 3)
    swapped[2] = swapped[2].astype(
        np.uint32
    )  # Differences of uint32 are never negative.
    with pytest.raises(ValueError, match="minute must increase, got .* for pc of b"):
        energy.from_readings(*swapped, 3)
    with pytest.raises(ValueError, match="got none for a"):
        energy.from_readings(["a"] * 2, ["tv"] * 2, [0, 1], [np.nan] * 2, 2)
    columns[2][4] = 3
    with pytest.raises(ValueError, match="two readings of pc of a at 1970-01-01T00:0"):
        energy.from_readings(*columns, 3)
    with pytest.raises(
        TypeError, match="minute must be integer minutes .* got float64"
    ):
        energy.from_readings(*columns[:2], columns[2] / 2, columns[3], 3)
    with pytest.raises(ValueError, match="num_days must be >= 1, got 0"):
        energy.from_readings(*readings(), 0)
    with pytest.raises(ValueError, match=r"must be non-empty rows of one length, go"):
        energy.from_readings(*columns[:3], columns[3][1:], 3)


@pytest.mark.parametrize("watts", [np.inf, 1e39])
def test_power_that_is_not_finite_names_home_and_device(watts):
    columns = readings()
    columns[3] = columns[3].astype(np.float64)
    columns[3][6 * DAY + 3] = watts
    with pytest.raises(
        ValueError, match=r"power must be finite, got .* W for pc of b at"
    ):
        energy.from_readings(*columns, 3)


def test_power_in_words_is_refused_and_in_a_file_that_is_named(tmp_path):
    columns = readings()
    words = columns[3].astype(str)
    with pytest.raises(TypeError, match="power must be numbers in W, got <U"):
        energy.from_readings(*columns[:3], words, 3)
    names = ("home", "device", "minute", "power")
    path = tmp_path / "own.npz"
    np.savez(path, **dict(zip(names, (*columns[:3], words), strict=True)))
    with pytest.raises(ValueError, match=r"own\.npz.*power must be numbers"):
        energy.load_homes(path, days=1, test_days=1)


def test_readings_of_another_age_cost_nothing():
    """A minute in the year 200,000 does not allocate the days between."""
    columns = readings()
    made = energy.from_readings(*columns, 3)
    later = [np.append(column, column[-1:]) for column in columns]
    later[2][-1] = 10**11
    again = energy.from_readings(*later, 3)
    np.testing.assert_array_equal(again.power, made.power)
    np.testing.assert_array_equal(again.dates, made.dates)


def test_what_meters_say_wrongly_names_home_and_device():
    settings = energy.PFDRLSettings(days=2, test_days=1)
    columns = readings()
    columns[3][6 * DAY + 7] = -2
    with pytest.raises(
        ValueError,
        match="negative, got -2.0 W for pc of b at 1970-01-01T00:07; reverse",
    ):
        energy.from_readings(*columns, 3)
    columns[3][6 * DAY + 7] = 2
    made = energy.from_readings(*columns, 3)
    made.power[1, 7, 0] = -2
    with pytest.raises(
        ValueError, match=r"negative, got -2.0 W for pc of b in minute 7"
    ):
        energy.neighborhood_from_settings(settings, made)
    made.power[1, 7, 0] = np.inf
    with pytest.raises(
        ValueError, match="finite, got infinity for pc of b in minute 7"
    ):
        energy.neighborhood_from_settings(settings, made)


def test_a_file_of_one_s_own(tmp_path):
    columns = dict(zip(loading.COLUMNS, readings(), strict=True))
    np.savez(tmp_path / "mine.npz", **columns)
    made = energy.load_homes(tmp_path / "mine.npz", days=2, test_days=1)
    assert made.power.shape == (2, 3 * DAY, 2)
    some = {"days": 2, "test_days": 1, "homes": 1, "kinds": ["tv"]}
    made = energy.load_homes(tmp_path / "mine.npz", **some)
    assert made.names == ("a",) and made.kind_names == ("tv",)
    assert made.power[0, 0, 0] == 11 and made.dates.shape == (1, 3)
    del columns["device"], columns["power"]
    np.savez(tmp_path / "less.npz", **columns)
    with pytest.raises(ValueError, match=r"lacks \['device', 'power'\]"):
        energy.load_homes(tmp_path / "less.npz")


def test_devices_are_those_that_the_chosen_homes_have(tmp_path):
    """Two of three homes have a tv and no pc; the first has only a pc."""
    columns = readings(homes=("a", "b", "c"))
    home, device, *_ = columns
    gone = np.where(home == "a", device == "tv", device == "pc")
    columns = without(columns, np.flatnonzero(gone))
    np.savez(tmp_path / "own.npz", **dict(zip(loading.COLUMNS, columns, strict=True)))
    some = {"days": 2, "test_days": 1, "devices": 1}
    kinds = lambda **more: energy.load_homes(tmp_path / "own.npz", **some, **more)[2]
    assert kinds() == ("tv",) and kinds(homes=1) == ("pc",)
    with pytest.raises(
        ValueError, match="devices must be at most 1, the kinds in these"
    ):
        energy.load_homes(tmp_path / "own.npz", **some | {"devices": 2}, homes=1)


def test_metered_homes_are_their_whole_days(monkeypatch):
    """Three homes: 1.5 days from noon, two days, and a clock set back."""
    watts = lambda minutes, clock: np.stack([clock, *[minutes // DAY + 1.0] * 7], 1)
    noon, whole = np.arange(720, 2880), np.arange(4320, 4320 + 2 * DAY)
    shown = watts(whole, whole % DAY)
    shown[:, [3, 4]] = 0  # Two circuits without power.
    odd = np.r_[0:120, 60:1440]
    parts = [
        Recording(watts(noon, noon % DAY), 720, {"subject": "short"}),
        Recording(shown, 4320, {"subject": "whole"}),
        Recording(watts(odd, odd), 0, {"subject": "autumn"}),
    ]
    monkeypatch.setattr(store, "read", lambda *_: parts)
    made = energy.load_homes("pecan_street", days=1, test_days=1)
    assert made.names == ("whole",)
    assert made.kind_names == ("air1", "drye1", "refrigerator1", "oven1")
    assert made.power[0, [0, -1], 0].tolist() == [4000, 5000]  # From kW to W.
    assert [str(day) for day in made.dates[0]] == ["1970-01-04", "1970-01-05"]
    with pytest.raises(ValueError, match="whole days of a home of .* .short 1, whole"):
        energy.load_homes("pecan_street", days=2, test_days=1)
    with pytest.raises(
        ValueError, match=r"homes must be at most 1, .* \(whole\), got 2"
    ):
        energy.load_homes("pecan_street", days=1, test_days=1, homes=2)
    with pytest.raises(
        ValueError, match="devices must be at most 4, the kinds in these"
    ):
        energy.load_homes("pecan_street", days=1, test_days=1, devices=5)


def test_composed_homes_learn_and_are_tested_on_other_traces(monkeypatch):
    """Watts are the day's number: the last 20 % of ten are days 8 and 9."""
    traces = [
        Recording(np.full((DAY, 1), day, np.float32), day, {"subject": f"{kind}/x"})
        for day in range(10)
        for kind in ("Lamp", "TV", "PC")
    ]
    monkeypatch.setattr(store, "read", lambda *_: traces)
    sizes = {"homes": 3, "devices": 2, "days": 4, "test_days": 3}
    made = energy.load_homes("tracebase", **sizes)
    assert made.power.shape == (3, 7 * DAY, 2) and made.names[2] == "home 3"
    assert made.power[:, : 4 * DAY].max() <= 7 and made.power[:, 4 * DAY :].min() >= 8
    with pytest.raises(ValueError, match="devices must be at most 1, the kinds to"):
        energy.load_homes("tracebase", **sizes, kinds=["TV"])
    one = energy.load_homes("tracebase", **sizes | {"devices": None}, kinds=["TV"])
    assert one.kind_names == ("TV",) and one.power.shape[2] == 1
    with pytest.raises(
        ValueError, match=r"kinds must be among \['Lamp'.* got \['Oven'\]"
    ):
        energy.load_homes("tracebase", kinds=["Oven"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"name_or_npz": "smartwatch"},
            "name_or_npz must be one of .* got 'smartwatch'",
        ),
        ({"days": 0}, "days must be >= 1, got 0"),
        ({"devices": 7}, "devices must be at most 6, got 7"),
        ({"kinds": ["oven"]}, r"kinds must be among \['tele.* got \['oven'\]"),
    ],
)
def test_loading_says_what_there_is_not(settings, message):
    with pytest.raises(ValueError, match=message):
        energy.load_homes(**{"name_or_npz": "simulated"} | settings)
