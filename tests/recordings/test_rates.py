"""Rates follow from all rows, however times were rounded, lost or delivered."""

from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxanon.recordings import rates

INDEX = np.arange(4000)


def rate_of(seconds):
    return rates.nominal(rates.estimate(seconds).rate_hz)


@pytest.mark.parametrize(
    ("hz", "digits"),
    [
        *((80, 3), (64, 2), (80, 2), (50, 2), (128, 2), (150, 2), (50, 0), (50, 1)),
        *((51.2, 3), (33.3, 3), (62.5, 3), (1, 0), (0.1, 0), (25, 6), (1000, 3)),
    ],
)
@pytest.mark.parametrize("start", [0.0, 0.0037, 123456.789])
def test_rounded_times_have_the_rate_of_their_rows(hz, digits, start):
    seconds = np.round(start + INDEX / hz, digits)
    rate = rates.estimate(seconds)
    assert rates.nominal(rate.rate_hz) == hz
    even = rates.steady(seconds, rate)
    np.testing.assert_allclose(np.diff(even) * hz, 1, atol=1e-6)
    assert np.abs(even - seconds).max() <= 2 * 10.0**-digits


@given(
    seed=st.integers(0, 10**6),
    hz=st.sampled_from([20, 25, 50, 64, 80, 100]),
    lost=st.floats(0, 0.5),
    digits=st.sampled_from([3, 4, 9]),
)
def test_missing_samples_do_not_lower_the_rate(seed, hz, lost, digits):
    kept = INDEX[np.random.default_rng(seed).random(len(INDEX)) >= lost]
    assert rate_of(np.round(kept / hz, digits)) == hz


@given(seed=st.integers(0, 10**6), amount=st.floats(0.01, 0.45))
def test_jitter_does_not_change_the_rate(seed, amount):
    noise = np.random.default_rng(seed).uniform(-amount, amount, len(INDEX))
    seconds = (INDEX + noise) / 50
    assert rates.estimate(seconds).rate_hz == pytest.approx(50, rel=2e-3)


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(4, 25),
    within_s=st.sampled_from([0.0, 0.0005, 0.001]),
    delay_s=st.floats(0, 0.03),
)
def test_packets_have_the_rate_of_their_rows(seed, size, within_s, delay_s):
    rng = np.random.default_rng(seed)
    packet = INDEX // size
    arrival = packet * size / 50 + rng.uniform(0, delay_s, packet[-1] + 1)[packet]
    seconds = arrival + INDEX % size * within_s
    rate = rates.estimate(seconds)
    assert rate.kind == "packets" and rate.rate_hz == pytest.approx(50, rel=5e-3)
    even = rates.steady(seconds, rate)
    np.testing.assert_allclose(np.diff(even), 0.02, rtol=0.01)


@pytest.mark.parametrize("hz", [50, 64])
def test_repeated_and_swapped_times_do_not_change_the_rate(hz):
    seconds = np.round(INDEX / hz, 2)
    repeated = seconds.copy()
    repeated[99::100] = seconds[98::100]
    assert rates.estimate(repeated).rate_hz == pytest.approx(hz, rel=1e-3)
    swapped = seconds.copy()
    first = np.arange(10, 3900, 37)
    swapped[first], swapped[first + 1] = seconds[first + 1], seconds[first]
    assert rates.estimate(swapped).rate_hz == pytest.approx(hz, rel=1e-3)


def test_pauses_and_resets_are_left_out():
    short = np.concatenate([100 + 5 * k + np.arange(50) / 50 for k in range(10)])
    assert rate_of(short) == 50
    assert rate_of(np.concatenate([INDEX / 50, INDEX / 50])) == 50
    assert rate_of(np.concatenate([INDEX / 50, 1e6 + INDEX / 50])) == 50


def test_an_expected_rate_decides_where_the_steps_cannot():
    kept = INDEX[np.random.default_rng(0).random(len(INDEX)) > 0.5]
    seconds = np.round(kept / 50, 2)
    assert rate_of(seconds) == 50
    mean = (len(kept) - 1) / (seconds[-1] - seconds[0])
    assert rates.estimate(seconds, mean).rate_hz == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("seconds", [[], [1.0], [2.0, 2.0], [np.nan, 1.0]])
def test_a_rate_needs_two_times(seconds):
    assert np.isnan(rates.estimate(np.array(seconds, float)).rate_hz)


def test_a_long_recording_is_examined_in_blocks():
    seconds = np.arange(rates.BLOCK * (rates.MAX_BLOCKS + 1)) / 80
    seconds[::10_001] = np.nan
    assert rate_of(np.round(seconds, 3)) == 80


def test_lost_packets_leave_a_gap_of_their_rows():
    packet = INDEX // 10
    kept = INDEX[np.random.default_rng(0).random(packet[-1] + 1)[packet] > 0.05]
    seconds = kept // 10 / 5
    rate = rates.estimate(seconds)
    assert rates.nominal(rate.rate_hz) == 50
    even = rates.steady(seconds, rate)
    np.testing.assert_allclose(even - even[0], (kept - kept[0]) / 50, atol=1e-9)


@given(st.integers(0, 200), st.integers(0, 2**31))
def test_steps_where_equals_a_whole_difference(count, seed):
    seconds = np.random.default_rng(seed).normal(size=count)
    with mock.patch.object(rates, "STEPS", 7):  # Steps across blocks count, too.
        found = rates.steps_where(seconds, lambda steps: steps > 0.5)
    np.testing.assert_array_equal(found, np.flatnonzero(np.diff(seconds) > 0.5) + 1)


@pytest.mark.parametrize("count", [1000, 10**6])
def test_whole_nanoseconds_since_1970_keep_their_rate(count):
    ticks = 1_770_000_000 * 10**9 + np.arange(count) * 78_125  # 12.8 kHz
    assert rates.estimate(ticks).rate_hz * 1e9 == pytest.approx(12_800, rel=1e-9)
