"""Random gaps, clocks and errors of meters, compared with plain loops."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import energy

SEEDS = st.integers(0, 2**32 - 1)
few = functools.partial(settings, deadline=None)


def mended(column):
    """Returns each minute's last reading, or the first one at the start."""
    last = next(one for one in column if one == one)
    found = []
    for one in column:
        last = one if one == one else last
        found.append(last)
    return found


def spoil(column, kind, start):
    column[: start % 5] = np.nan if kind == "gaps" else column[: start % 5]
    if kind == "gaps":
        column[start : start + 15] = np.nan
    if kind == "long":
        column[start : start + 16] = np.nan
    if kind == "negative":
        column[start] = -0.5
    if kind == "infinite":
        column[start] = np.inf
    if kind == "absent":
        column[:] = np.nan


COLUMNS = ("whole", "gaps", "absent", "long", "negative", "infinite")
WRONG = {"long": r"got 16 for {} from minute {};",
         "negative": r"must not be negative, got -0.5 W for {} in minute {};",
         "infinite": r"must be finite, got infinity for {} in minute {};"}  # fmt: skip


@few(max_examples=60)
@given(
    SEEDS,
    st.lists(st.sampled_from(COLUMNS), min_size=4, max_size=4).filter(
        lambda kinds: sum(kind in WRONG for kind in kinds) < 2
    ),
    st.lists(st.integers(5, 20), min_size=4, max_size=4),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
def test_meters_are_mended_device_by_device_or_named(seed, kinds, starts, dtype, named):
    rng = np.random.default_rng(seed)
    power = rng.integers(0, 90, size=(2, 40, 2)).astype(dtype)
    for place, (kind, start) in enumerate(zip(kinds, starts, strict=True)):
        spoil(power[place // 2, :, place % 2], kind, start)
    given = power.copy()
    read = lambda: energy.clean_power(
        power, *((["a", "b"], ["c", "d"]) if named else ())
    )
    wrong = [place for place, kind in enumerate(kinds) if kind in WRONG]
    if wrong:
        home, device = divmod(wrong[0], 2)
        name = f"device {device} of home {home}"
        name = f"{'cd'[device]} of {'ab'[home]}" if named else name
        said = WRONG[kinds[wrong[0]]].format(name, starts[wrong[0]])
        with pytest.raises(ValueError, match=said):
            read()
        return
    found = read()
    np.testing.assert_array_equal(power, given)  # The input is unchanged.
    assert found.power.dtype == np.float32 and found.present.dtype == bool
    for place, kind in enumerate(kinds):
        column = found.power[place // 2, :, place % 2]
        there = kind != "absent"
        assert found.present[place // 2, place % 2] == there
        own = mended(given[place // 2, :, place % 2]) if there else np.zeros(40)
        np.testing.assert_array_equal(column, np.float32(own))
    again = energy.clean_power(found.power)
    np.testing.assert_array_equal(again.power, found.power)


@given(
    st.sampled_from([bool, complex, object, "U3", "S3", "M8[s]"]),
    st.sampled_from([(2, 3), (3,), (), (0, 3, 1), (2, 0, 1), (2, 3, 0), (1, 1, 1, 1)]),
    st.sampled_from([np.int16, np.uint8, np.float16, np.float64]),
)
def test_power_that_is_none_is_refused(kind, shape, real):
    with pytest.raises(TypeError, match="power must hold real numbers, got"):
        energy.clean_power(np.zeros((1, 2, 1)).astype(kind))
    with pytest.raises(ValueError, match=r"must be a non-empty float\[homes"):
        energy.clean_power(np.zeros(shape, real))
    found = energy.clean_power(np.full((1, 2, 1), 3, real))
    assert found.power.dtype == np.float32 and (found.power == 3).all()


DAY = 1440
CLOCKS = {
    "minutes": lambda minute: minute,
    "short": lambda minute: minute.astype(np.int32),
    "unsigned": lambda minute: minute.astype(np.uint32),
    "times": lambda minute: minute.astype("datetime64[m]"),
    "seconds": lambda minute: minute.astype("datetime64[m]").astype("datetime64[s]"),
}
GAPS = st.sampled_from([0, 3, 15, 16])


@few(max_examples=25)
@given(
    SEEDS,
    st.lists(st.tuples(GAPS, st.integers(0, DAY - 16)), min_size=8, max_size=8),
    st.sampled_from([1, 2]),
    st.sampled_from(sorted(CLOCKS)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_homes_are_of_their_first_whole_days(
    seed, gaps, num_days, clock, by_number, by_time, left_out
):
    rng, first = np.random.default_rng(seed), 12345
    homes, devices = ([30, 7], [1, 2]) if by_number else (["x", "y"], ["pc", "tv"])
    power = rng.integers(0, 50, size=(2, 2, 2, DAY)).astype(
        float
    )  # [home, day, device]
    for own, (gap, start) in zip(power.reshape(8, DAY), gaps, strict=True):
        own[start : start + gap] = np.nan
    rows = np.argwhere(np.ones(power.shape, bool))
    if left_out:  # A minute may be missing or NaN.
        rows = rows[~np.isnan(power[tuple(rows.T)])]
    minute = rows[:, 1] * DAY + rows[:, 3]
    order = (minute,) if by_time else (minute, rows[:, 2], rows[:, 0])
    rows = rows[np.lexsort(order)]
    made = lambda: energy.from_readings(
        np.array(homes)[rows[:, 0]],
        np.array(devices)[rows[:, 2]],
        CLOCKS[clock]((first + rows[:, 1]) * DAY + rows[:, 3]),
        power[tuple(rows.T)],
        num_days,
    )
    most = np.max(np.array(gaps)[:, 0].reshape(2, 2, 2), axis=2)  # [home, day]
    entire = [np.flatnonzero(own < 16).tolist() for own in most]
    lacking = [home for home in (0, 1) if len(entire[home]) < num_days]
    if lacking:
        said = f"at most {len(entire[lacking[0]])} for {homes[lacking[0]]}"
        with pytest.raises(ValueError, match=said):
            made()
        return
    found = made()
    assert found.names == tuple(map(str, homes))  # Sorted as strings: "30" before "7".
    assert found.kind_names == tuple(map(str, devices))
    assert found.power.shape == (2, num_days * DAY, 2)
    assert found.power.dtype == np.float32
    np.testing.assert_array_equal(found.kinds, [[0, 1]] * 2)
    for home in (0, 1):
        kept = entire[home][:num_days]
        dates = np.array([first + day for day in kept]).astype("datetime64[D]")
        np.testing.assert_array_equal(found.dates[home], dates)
        for device in (0, 1):
            own = [mended(power[home, day, device]) for day in kept]
            column = found.power[home, :, device]
            np.testing.assert_array_equal(column, np.float32(own).ravel())


def every(change):
    arrays = ("home", "device", "minute", "power")
    return lambda rows: rows | {name: change(rows[name]) for name in arrays}


REFUSED = {
    "none": (lambda rows: rows | {"num_days": 0}, ValueError, "num_days must be >= 1"),
    "half": (lambda rows: rows | {"num_days": 0.5}, TypeError, "num_days must be a P"),
    "home": (lambda rows: rows | {"home": np.ones(DAY)}, TypeError, "home and device"),
    "clock": (lambda rows: rows | {"minute": np.ones(DAY)}, TypeError, "minute must"),
    "long": (lambda rows: rows | {"power": np.ones(DAY + 1)}, ValueError, "one length"),
    "rank": (every(lambda x: x[None]), ValueError, "rows of one length"),
    "empty": (every(lambda x: x[:0]), ValueError, "rows of one length"),
    "days": (lambda rows: rows | {"num_days": 2}, ValueError, "at most 1 for h"),
    "blank": (
        lambda rows: rows | {"power": np.full(DAY, np.nan)},
        ValueError,
        "none for h",
    ),
}


@few(max_examples=30)
@given(st.sampled_from(sorted(REFUSED)), st.integers(1, DAY - 1))
def test_readings_that_are_none_are_refused_by_name(wrong, row):
    rows = {
        "home": np.full(DAY, "h"), "device": np.full(DAY, "tv"),
        "minute": np.arange(DAY), "power": np.ones(DAY), "num_days": 1,
    }  # fmt: skip
    change, kind, said = REFUSED[wrong]
    with pytest.raises(kind, match=said):
        energy.from_readings(**change(rows))
    minute, power = rows["minute"].copy(), rows["power"].copy()
    minute[row], power[row] = row - 1, -1
    for one, said in (
        ({"minute": minute}, "two readings of tv of h at 1970-01-01T"),
        ({"minute": rows["minute"][::-1]}, "minute must increase"),
        ({"power": power}, "negative, got -1.0 W for tv of h"),
    ):
        with pytest.raises(ValueError, match=said):
            energy.from_readings(**rows | one)
