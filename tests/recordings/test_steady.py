"""Times are corrected as rows arrive, whatever the pieces in which they come."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxanon.recordings import rates
from jaxanon.recordings.steady import Steady

INDEX = np.arange(3000)


def corrected(times, model_hz=50.0, cuts=()):
    """Returns the corrected times, and checks that rows keep their order."""
    steady, samples = Steady(1, model_hz), np.arange(len(times), dtype=float)[:, None]
    parts = [steady.push(times[i], samples[i]) for i in np.split(INDEX_OF(times), cuts)]
    parts.append(steady.close())
    assert np.array_equal(np.concatenate([rows for _, rows in parts]), samples)
    return np.concatenate([each for each, _ in parts])


def INDEX_OF(times):
    return np.arange(len(times))


def packets(rng, size, delay_s, hz=50):
    packet = INDEX // size
    return packet * size / hz + rng.uniform(0, delay_s, packet[-1] + 1)[packet]


@pytest.mark.parametrize(
    ("hz", "digits"),
    [(80, 3), (64, 2), (80, 2), (50, 2), (150, 2), (50, 0), (50, 1), (51.2, 3), (1, 0)],
)
@pytest.mark.parametrize("start", [0.0, 0.0037, 123456.789])
def test_rounding_is_undone(hz, digits, start):
    times = np.round(start + INDEX / hz, digits)
    even = corrected(times, hz)
    np.testing.assert_allclose(np.diff(even) * hz, 1, atol=1e-6)
    assert np.abs(even - times).max() <= 10.0**-digits


@given(seed=st.integers(0, 10**6), size=st.integers(4, 25), delay_s=st.floats(0, 0.03))
def test_packets_are_spread_as_in_an_import(seed, size, delay_s):
    times = packets(np.random.default_rng(seed), size, delay_s)
    even = corrected(times)
    np.testing.assert_allclose(np.diff(even), 0.02, rtol=0.01)
    whole = rates.steady(times, rates.estimate(times))
    assert np.abs(even - whole).max() <= delay_s + 0.002


def test_lost_packets_leave_a_gap_of_their_rows():
    packet = INDEX // 10
    kept = INDEX[np.random.default_rng(0).random(packet[-1] + 1)[packet] > 0.05]
    even = corrected(kept // 10 / 5)
    np.testing.assert_allclose(even - even[0], (kept - kept[0]) / 50, atol=1e-9)


def drawn(kind, rng):
    """Draws the times of a recording."""
    times = {
        "exact": INDEX / 50,
        "jitter": INDEX / 50 + rng.uniform(-0.004, 0.004, len(INDEX)),
        "rounded": np.round(0.0037 + INDEX / 64, 2),
        "packets": packets(rng, int(rng.integers(5, 20)), 0.02),
    }[kind].copy()
    for row in rng.integers(100, 2900, 3):
        times[row:] += rng.choice([0.5, 3.0, 100.0, -30.0])
    swap = rng.integers(50, 2900, 5)
    times[swap], times[swap + 1] = times[swap + 1], times[swap]
    times[rng.integers(0, 3000, 5)] = np.nan
    return times


@pytest.mark.parametrize("kind", ["exact", "jitter", "rounded", "packets"])
@pytest.mark.parametrize("seed", range(4))
def test_the_pieces_do_not_matter(kind, seed):
    rng = np.random.default_rng(seed)
    times = drawn(kind, rng)
    whole = corrected(times, 64.0 if kind == "rounded" else 50.0)
    cuts = np.sort(rng.integers(0, 3001, 50))
    pieces = corrected(times, 64.0 if kind == "rounded" else 50.0, cuts)
    np.testing.assert_array_equal(pieces, whole)
    if kind in ("exact", "jitter"):
        np.testing.assert_array_equal(whole, times)
    else:
        largest = 0.02 if kind == "rounded" else 0.8  # Two packets.
        assert np.nanmax(np.abs(whole - times)) <= largest


@pytest.mark.parametrize("hz", [63.9, 64.1, 63.99])
def test_a_clock_that_drifts_is_followed(hz):
    index = np.arange(60_000)
    even = corrected(np.round(index / hz, 2), 64.0)
    assert np.abs(even - index / hz).max() * hz < 1
    assert np.abs(np.diff(even) * 64 - 1).max() <= 0.0101


def test_missing_rows_keep_their_place():
    kept = np.delete(INDEX, np.arange(100, 2900, 97))
    even = corrected(np.round(kept / 64, 2), 64.0)
    np.testing.assert_allclose(np.diff(even) * 64, np.diff(kept), atol=1e-6)


def test_rows_wait_only_until_their_times_are_known():
    steady = Steady(1, 50.0)
    waiting = [len(steady.push(np.array([n / 50]), np.zeros((1, 1)))[0]) for n in INDEX]
    assert sum(waiting[:250]) == 0 and waiting[250] == 251 and set(waiting[251:]) == {1}
