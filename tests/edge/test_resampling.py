"""Resampling keeps frequencies that both rates allow, without delay."""

import fractions
import math

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon import edge
from jaxanon.edge.resampling import Resampler, step

PAIRS = [
    (200.0, 50.0),
    (50.0, 200.0),
    (100.0, 64.0),
    (33.3, 50.0),
    (math.pi * 20, 50.0),
]


def all_at_once(samples, from_hz, to_hz):
    resampler = Resampler(step(from_hz, to_hz), samples.shape[1])
    return np.concatenate([resampler.push(samples), resampler.end()])


def wave(rate, hz, seconds=6.0):
    times = np.arange(int(seconds * rate)) / rate
    return times, np.sin(2 * np.pi * hz * times + 0.3)[:, None]


@pytest.mark.parametrize(("from_hz", "to_hz"), PAIRS)
def test_a_slow_wave_stays_where_it_was(from_hz, to_hz):
    _, samples = wave(from_hz, 2.0)
    found = all_at_once(samples, from_hz, to_hz)
    # The exact output rate: a fraction.
    times = np.arange(len(found)) * float(step(from_hz, to_hz)) / from_hz
    assert len(found) == int((len(samples) - 1) / step(from_hz, to_hz)) + 1
    inside = (times > 1.5) & (times < 4.5)
    wanted = np.sin(2 * np.pi * 2.0 * times + 0.3)
    np.testing.assert_allclose(found[inside, 0], wanted[inside], atol=2e-4)


def test_what_the_lower_rate_cannot_hold_is_removed():
    for hz, most in ((30.0, 1e-3), (60.0, 1e-3), (95.0, 1e-3)):
        _, samples = wave(200.0, hz)
        found = all_at_once(samples, 200.0, 50.0)
        assert np.abs(found[80:-80]).max() < most
    _, samples = wave(200.0, 15.0)  # It keeps all others.
    assert np.abs(all_at_once(samples, 200.0, 50.0)[80:-80]).max() > 0.99


@pytest.mark.parametrize(("from_hz", "to_hz"), PAIRS)
def test_a_constant_stays_the_same_up_to_the_ends(from_hz, to_hz):
    found = all_at_once(np.full((40, 2), 7.0), from_hz, to_hz)
    np.testing.assert_allclose(found, 7.0, rtol=1e-12)
    assert len(found) > 5


def test_against_the_formula_sample_by_sample():
    """Compares with the explicit sum over a Kaiser-windowed sinc, at 3 / 2."""
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(120, 1))
    found = all_at_once(samples, 30.0, 20.0)
    for index in (0, 1, 20, 21, 79):
        place, cutoff = index * 1.5, 0.9 / 1.5
        near = np.arange(math.floor(place) - 40, math.floor(place) + 42)
        away = (place - near) * cutoff
        inside = np.maximum(1 - (away / 16) ** 2, 0)
        taps = np.sinc(away) * np.i0(9 * np.sqrt(inside)) * (np.abs(away) <= 16)
        held = samples[np.clip(near, 0, 119), 0]
        wanted = (taps * held).sum() / taps.sum()
        assert found[index, 0] == pytest.approx(wanted, abs=1e-9)


@hypothesis.given(
    pair=st.sampled_from(PAIRS), cuts=st.lists(st.integers(0, 300), max_size=6)
)
def test_chunks_do_not_matter(pair, cuts):
    samples = np.random.default_rng(1).normal(size=(300, 2))
    resampler = Resampler(step(*pair), 2)
    parts = np.split(samples, sorted(cuts))
    found = np.concatenate([*map(resampler.push, parts), resampler.end()])
    np.testing.assert_allclose(found, all_at_once(samples, *pair), atol=1e-9)


def test_a_piece_that_begins_later_is_on_the_segment_s_grid():
    resampler = Resampler(fractions.Fraction(3, 2), 1)
    resampler.begin(100)
    found = np.concatenate([resampler.push(np.arange(100.0, 200)[:, None])])
    # The first index from 100 on is 67 * 1.5 = 100.5; only the edges bend.
    np.testing.assert_allclose(found[25:30, 0], (67 + np.arange(25, 30)) * 1.5)


def test_any_rate_is_near_a_fraction():
    assert step(50.0, 33.3) == fractions.Fraction(500, 333)
    # A microhertz: one sample in more than half an hour at 50 Hz.
    assert float(step(math.pi * 20, 50.0)) == pytest.approx(math.pi * 0.4, rel=1e-9)


@pytest.mark.parametrize("rate", [200.0, 100.0, 20.0, 33.3, math.pi * 20])
def test_a_stream_comes_back_at_its_own_rate_and_in_place(models, rate):
    count = 600
    times = np.arange(count) / rate
    samples = np.sin(2 * np.pi * 1.0 * times)[:, None]
    stream = edge.Stream(models.Model(lambda x: -x, time=16), rate_hz=rate)
    blocks = stream.push(3 + times, samples) + stream.close()
    found = models.joined(blocks)
    assert found.shape == samples.shape  # No sample is lost or repeated.
    assert blocks[0].start == 3.0 and {block.rate_hz for block in blocks} == {rate}
    np.testing.assert_allclose(found[100:-100], -samples[100:-100], atol=2e-3)
    assert np.abs(found).max() < 1.2


@pytest.mark.parametrize("rate", [200.0, 100.0, 20.0, 33.3, math.pi * 20])
@pytest.mark.parametrize("count", [100, 101, 102, 103])
def test_what_fails_is_as_long_as_what_came(models, rate, count):
    """The whole input, or its end.

    The last windows, of 4 samples at the model's rate.
    """
    for fine in (0, 3):
        calls = []

        def fails(window, calls=calls, fine=fine):
            calls.append(None)
            return window if len(calls) <= fine else None

        stream = edge.Stream(models.Model(fails, time=4), rate_hz=rate)
        blocks = stream.push(np.arange(count) / rate, np.ones((count, 1)))
        blocks += stream.close()
        found = models.joined(blocks)
        assert len(found) == count == stream.counts["missing"] + (found == found).sum()
        assert blocks[-1].end == pytest.approx(count / rate)
        assert blocks[-1].gap == "the model returned shape ()"


def test_a_gap_of_the_model_is_one_at_the_stream_s_rate(models):
    """At twice the model's rate, windows of 8, every 8, are 16 samples."""
    calls = []

    def third_fails(window):
        calls.append(None)
        return None if len(calls) == 3 else window

    stream = edge.Stream(models.Model(third_fails), rate_hz=100.0, hop=8)
    blocks = stream.push(np.arange(160) / 100, np.ones((160, 1))) + stream.close()
    missing = np.isnan(models.joined(blocks)[:, 0])
    # 16 to 23 fail; between 15 and 16, and 23 and 24, nothing can be interpolated.
    np.testing.assert_array_equal(np.flatnonzero(missing), np.arange(31, 48))
    np.testing.assert_allclose(models.joined(blocks)[~missing], 1.0, rtol=1e-6)


@pytest.mark.parametrize("rate", [20.0, 33.3, 70.0, 125.0])
def test_what_follows_a_gap_of_the_model_is_in_place(models, rate):
    """Windows of 32, every 32, of a ramp in s; the second of every three fails."""
    calls = []

    def second_fails(window):
        calls.append(None)
        return None if len(calls) % 3 == 2 else window

    model = models.Model(second_fails, time=32)
    stream = edge.Stream(model, rate_hz=rate, hop=32)
    times = np.arange(int(12 * rate)) / rate
    found = models.joined(stream.push(times, times[:, None]) + stream.close())[:, 0]
    assert len(found) == len(times) and 0.2 < np.isnan(found).mean() < 0.5
    # Near a piece's ends the filter repeats its first and last sample.
    near = np.abs(found - times)[~np.isnan(found)]
    assert np.median(near) < 0.2 / rate and near.max() < 2.5 / min(rate, 50)
