"""Gaps, clocks, months and targets after a window, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets import energy
from jaxanon.datasets.description import Forecast, Preset
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.windows import cut_each

DAY = 1440


def minutes_from(start, count, who="a"):
    """Returns a row per minute: minute of the day, and minutes since the start."""
    clock = (start + np.arange(count)) % DAY
    rows = np.stack([clock, np.arange(count)], axis=1).astype(np.float64)
    return Recording(rows, start, {"subject": who})


def unlabelled(recording, rows):
    return recording._replace(rows=rows, labels={"subject": 0})


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(0, 5))
def test_short_gaps_are_bridged_and_long_ones_cut(steps, tolerance):
    minutes = np.cumsum(steps)
    rows = np.arange(len(minutes), dtype=float)[:, None]
    expected = []  # Minute by minute, from the first to the last.
    last = None
    for minute in range(minutes[0], minutes[-1] + 1):
        read = np.flatnonzero(minutes == minute)
        if len(read):
            if last is None or minute - last[0] - 1 > tolerance:
                expected.append((minute, []))
            last = minute, float(read[0])
            # Restores all bridged values, now that the gap is known to be short.
            first, values = expected[-1]
            held = values[-1] if values else None
            values += [held] * (minute - first - len(values)) + [last[1]]
    found = list(energy.stretches(minutes, rows, tolerance))
    assert [(first, part.ravel().tolist()) for first, part in found] == expected


def test_nothing_read_gives_no_stretch():
    assert not list(energy.stretches(np.zeros(0, int), np.zeros((0, 2))))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(1, 4))
def test_repetitions_are_runs_of_the_row_before(values, least):
    rows = np.array(values, float)[:, None] * np.array([[1.0, 2.0]])
    expected = [False] * len(values)
    for start in range(1, len(values)):
        for end in range(start + least, len(values) + 1):
            if len({*values[start - 1 : end]}) == 1:
                expected[start:end] = [True] * (end - start)
    assert energy.repeated(rows, least).tolist() == expected


def test_recordings_begin_and_end_with_an_hour():
    week = 7 * DAY
    long = minutes_from(DAY + 7, week + 60)  # 53 minutes to the hour.
    short = minutes_from(20 * DAY, 59)
    (found,) = energy.whole_hours([long, short], 60)
    assert found.trial == DAY + 60 and len(found.rows) == week
    assert found.rows[0].tolist() == [60.0, 53.0]
    few = minutes_from(0, week - 1, who="b")
    assert [r.labels["subject"] for r in energy.whole_hours([long, few], 60)] == ["a"]
    # Two parts are long enough only together.
    parts = [minutes_from(0, 3 * DAY), minutes_from(9 * DAY, 4 * DAY)]
    assert len(energy.whole_hours(parts, DAY)) == 2
    assert not energy.whole_hours(parts, 3 * DAY + 1)


def test_months_are_clients():
    april = np.datetime64("2014-04-29T12:00").astype("datetime64[m]").astype(int)
    parts = energy.by_month([minutes_from(april, 40 * DAY, who="home")])
    assert [part.labels["subject"] for part in parts] == [
        *("home, 2014-04", "home, 2014-05", "home, 2014-06")
    ]
    assert [len(part.rows) for part in parts] == [36 * 60, 31 * DAY, 7 * DAY + 720]
    assert parts[1].trial == april + 36 * 60
    joined = np.concatenate([part.rows[:, 1] for part in parts])
    np.testing.assert_array_equal(joined, np.arange(40 * DAY))


def test_the_time_of_day_is_a_point_on_a_circle():
    clock = np.array([[0.0, 7.0], [360.0, 8.0], [1439.0, 9.0]])
    found = energy.with_clock([1])(clock)
    np.testing.assert_allclose(found[:2], [[7, 0, 1], [8, 1, 0]], atol=1e-12)
    assert np.hypot(*(found[2, 1:] - found[0, 1:])) < 2 * np.pi / DAY


@pytest.mark.parametrize("every", [15, 60])
def test_a_window_comes_with_the_mean_of_the_hour_after_it(every):
    preset = energy.hour_ahead("", every, {"power": 1}, unit="W")
    assert preset.reach == 25 * 60 // every and preset.units == ("W", "1", "1")
    (one,) = preset.arrange([minutes_from(DAY, 7 * DAY)])
    rows = preset.derive(one.rows).reshape(-1, every, 3).mean(axis=1)
    ahead = {"power": (0, 60 // every)}
    found = cut_each([unlabelled(one, rows)], preset.length, preset.stride, ahead)
    starts = np.arange(0, 7 * DAY - 25 * 60 + 1, 60)
    assert len(found.windows) == len(starts)
    first = np.mean(np.arange(every))
    np.testing.assert_allclose(found.windows[:, 0, 0], starts + first)
    np.testing.assert_allclose(found.windows[:, -1, 0], starts + DAY - every + first)
    np.testing.assert_allclose(found.labels["power"], starts + DAY + 29.5)


def test_what_follows_is_of_the_same_recording():
    parts = [minutes_from(0, size, who=0) for size in (9, 3, 5, 4)]
    found = cut_each(parts, 3, 2, {"a": (1, 2), "b": (0, 1)})
    expected = [
        (rows[start + 3 : start + 5, 1].mean(), rows[start + 3, 0])
        for rows in (part.rows for part in parts)
        for start in range(0, len(rows) - 4, 2)
    ]
    assert len(found.windows) == len(expected) == 4  # Three of nine rows, one of five.
    np.testing.assert_array_equal(found.labels["a"], [a for a, _ in expected])
    np.testing.assert_array_equal(found.labels["b"], [b for _, b in expected])
    assert found.labels["a"].dtype == np.float32


def test_a_stream_has_no_targets():
    forecast = {"next": Forecast("W", "x", 1)}
    with pytest.raises(
        ValueError, match=r"targets must be empty for a stream, got \['next'\]"
    ):
        Preset(
            about="",
            channels=("x",),
            units=("W",),
            length=2,
            stride=1,
            stream=True,
            targets=forecast,
        )
