"""Late, repeated, missing or broken samples give gaps, and no sample twice."""

import itertools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon import edge

RATE = 50.0


def stream_of(models, **settings):
    """Returns a stream of the identity, on windows of 8 samples of one channel."""
    return edge.Stream(models.Model(), rate_hz=RATE, **settings)


def told(blocks):
    """Returns (start, end, rows, gap) of each stretch of blocks with the same gap."""
    found = []
    for gap, stretch in itertools.groupby(blocks, key=lambda block: block.gap):
        first, *_ = stretch = list(stretch)
        start, end = round(first.start, 6), round(stretch[-1].end, 6)
        found.append((start, end, sum(len(b.samples) for b in stretch), gap))
    return found


def run(stream, periods, samples=None):
    """Returns all blocks of samples at these times, in periods; values equal times."""
    periods = np.asarray(periods, np.float64)
    samples = periods[:, None] if samples is None else samples
    return stream.push(periods / RATE, samples) + stream.close()


def values(models, blocks):
    return models.joined(blocks)[:, 0]


def test_late_and_repeated_samples_are_dropped_and_counted(models):
    stream = stream_of(models)
    blocks = run(stream, [0, 1, 2, 2, 4, 3, 3, 5, 1, 6, 7, 8, 9])
    np.testing.assert_allclose(values(models, blocks), np.arange(10), atol=1e-6)
    counts = stream.counts
    assert counts["duplicate"] == 3 and counts["late"] == 1
    assert counts["pushed"] == 13 and counts["samples"] == 10
    assert counts["missing"] == 0  # 3, which was late, is interpolated.


def test_a_few_missing_samples_are_interpolated(models):
    samples = np.array([0.0, 1, 2, 20, 6, 7, 8, 9])[:, None]
    blocks = run(stream_of(models), [0, 1, 2, 5, 6, 7, 8, 9], samples)
    wanted = [0, 1, 2, 8, 14, 20, 6, 7, 8, 9]
    np.testing.assert_allclose(values(models, blocks), wanted, rtol=1e-6)


def test_more_missing_samples_are_a_gap(models):
    stream = stream_of(models)
    blocks = run(stream, [*range(10), *range(13, 25)])
    assert told(blocks) == [
        (0.0, 0.2, 10, ""),
        (0.2, 0.26, 3, "samples are missing"),
        (0.26, 0.5, 12, ""),
    ]
    assert np.isnan(blocks[1].samples).all()
    assert stream.counts["missing"] == 3
    # Interpolation spans at most 3 periods between samples.
    assert len(told(run(stream_of(models), [*range(10), *range(12, 25)]))) == 1
    wider = stream_of(models, max_gap=4)
    assert len(told(run(wider, [*range(10), *range(13, 25)]))) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_missing(models, bad):
    samples = np.arange(30.0)[:, None]
    samples[[4, 14, 15, 16]] = bad
    stream = stream_of(models)
    blocks = run(stream, np.arange(30), samples)
    assert told(blocks) == [
        (0.0, 0.28, 14, ""),
        (0.28, 0.34, 3, "samples are missing"),
        (0.34, 0.6, 13, ""),
    ]
    assert stream.counts["invalid"] == 4
    np.testing.assert_allclose(blocks[0].samples[:, 0], np.arange(14), atol=1e-6)


def test_times_that_are_no_numbers_are_missing_samples(models):
    stream = stream_of(models)
    blocks = run(stream, [0, 1, np.nan, 3, 4, np.inf, 6, 7, 8], np.ones((9, 1)))
    assert told(blocks) == [(0.0, 0.18, 9, "")]
    assert stream.counts["invalid"] == 2


@pytest.mark.parametrize("wild", [1e16, 1.7e18, 1e300, -1e308, 1.7e308])
def test_times_that_nobody_can_tell_apart_are_missing_samples(models, wild):
    stream = stream_of(models)
    periods = np.array([0, 1, wild, 3, 4, wild, -wild, 7, 8, 9])
    blocks = run(stream, periods, np.ones((10, 1)))
    assert told(blocks) == [(0.0, 0.2, 10, "")]
    assert stream.counts["invalid"] == 3


def test_jitter_is_interpolated_onto_the_grid(models):
    rng = np.random.default_rng(0)
    periods = np.arange(200) + rng.uniform(-0.3, 0.3, 200) * (np.arange(200) > 0)
    blocks = run(stream_of(models), periods)
    count = int(periods[-1]) + 1
    np.testing.assert_allclose(values(models, blocks), np.arange(count), atol=1e-4)


def test_the_rate_that_is_seen_is_that_between_gaps(models):
    stream = stream_of(models)
    assert np.isnan(stream.seen_rate_hz)
    for first in 0, 5000:  # Twice the declared rate, sometimes with a gap.
        stream.push(first / RATE + np.arange(40) / 100, np.ones((40, 1)))
        assert stream.seen_rate_hz == pytest.approx(100.0)
    stream.close()


@pytest.mark.parametrize("origin", [0.0, 1.7e9, -3.0])
def test_samples_on_the_grid_pass_exactly(models, origin):
    """Also if the clock counts from 1970, where float64 resolves only 0.2 µs."""
    samples = np.random.default_rng(0).normal(size=(5000, 1)).astype(np.float32)
    stream = edge.Stream(models.Model(time=64, rate_hz=200.0), hop=64)
    blocks = stream.push(origin + np.arange(5000) / 200, samples) + stream.close()
    tail = 5000 // 64 * 64  # The last window overlaps the previous one.
    np.testing.assert_array_equal(models.joined(blocks)[:tail], samples[:tail])
    np.testing.assert_allclose(models.joined(blocks), samples, rtol=1e-6)


def test_a_clock_that_jumps_ahead_leaves_a_gap_without_a_day_of_rows(models):
    blocks = run(stream_of(models), [*range(10), *(86_400 * 50 + np.arange(10))])
    assert told(blocks) == [
        (0.0, 0.2, 10, ""),
        (0.2, 86400.0, 0, "samples are missing"),
        (86400.0, 86400.2, 10, ""),
    ]
    short = run(
        stream_of(models, longest_gap_s=0.1), [*range(10), *(20 + np.arange(10))]
    )
    assert told(short)[1] == (0.2, 0.4, 0, "samples are missing")


def test_a_clock_that_is_set_back_begins_anew(models):
    stream = stream_of(models)
    blocks = run(stream, [*(5000 + np.arange(20)), *range(60)])
    assert told(blocks) == [
        (100.0, 100.4, 20, ""),
        (100.4, 0.0, 0, "the clock was set back"),
        (0.0, 1.2, 60, ""),
    ]
    np.testing.assert_allclose(values(models, blocks[2:]), np.arange(60), atol=1e-5)
    assert stream.counts["late"] == 0


def test_a_batch_is_known_again_after_a_clock_that_was_set_back(models):
    stream = stream_of(models)
    first, second = 5000 + np.arange(400), np.arange(100)
    blocks = run(stream, [*first, *second, *second[-80:], *range(100, 120)])
    assert stream.counts["duplicate"] == 80 and stream.counts["late"] == 0
    assert [start for start, *_ in told(blocks)] == [100.0, 108.0, 0.0]


@pytest.mark.parametrize("size", [30, 200, 499])
def test_a_batch_that_is_sent_again_is_not_a_clock_that_was_set_back(models, size):
    """For up to ten seconds of samples, even over more than a second."""
    stream = stream_of(models)
    batch = range(500 - size, 500)
    blocks = run(stream, [*range(500), *batch, *range(500, 520)])
    np.testing.assert_allclose(values(models, blocks), np.arange(520), atol=1e-4)
    assert stream.counts["late"] == 0 and stream.counts["duplicate"] == size


def test_late_samples_for_less_than_a_second_are_no_clock_that_was_set_back(models):
    stream = stream_of(models)
    samples = np.arange(129.0)[:, None]
    blocks = run(stream, [*range(60), *range(10, 59), *range(60, 80)], samples)
    assert told(blocks) == [(0.0, 1.6, 80, "")]
    assert stream.counts["late"] == 49 and stream.counts["duplicate"] == 0


def test_stragglers_one_by_one_are_no_clock_that_was_set_back(models):
    """Every other sample is two hundred periods late, for longer than a second."""
    stream = stream_of(models)
    late = np.arange(120) + 0.5
    periods = [*range(200), *np.stack([np.arange(200, 320), late], 1).ravel()]
    blocks = run(stream, periods)
    assert told(blocks) == [(0.0, 6.4, 320, "")]
    assert stream.counts["late"] == 120


def test_one_wild_time_costs_one_segment(models):
    stream = stream_of(models)
    blocks = run(stream, [*range(20), 10**9, *range(20, 90)])
    assert [gap for *_, gap in told(blocks)] == [
        *("", "samples are missing", "the segment is shorter than a window"),
        *("the clock was set back", ""),
    ]
    assert told(blocks)[-1][:3] == (0.4, 1.8, 70)


def test_a_segment_shorter_than_a_window_is_a_gap(models):
    blocks = run(stream_of(models), range(7))
    assert told(blocks) == [(0.0, 0.14, 7, "the segment is shorter than a window")]
    assert run(stream_of(models), []) == []


FAULTS = st.lists(
    st.one_of(
        st.just(("go", 30)),
        st.tuples(st.just("go"), st.integers(1, 70)),
        st.tuples(st.just("skip"), st.integers(1, 12)),
        st.tuples(st.just("jump"), st.floats(-100.0, 100.0)),
        st.tuples(st.just("repeat"), st.integers(1, 60)),
        st.tuples(st.just("broken"), st.integers(1, 5)),
        st.tuples(st.just("jitter"), st.integers(1, 30)),
        st.tuples(st.just("model"), st.integers(0, 5)),
    ),
    max_size=12,
)


def mishaps(models):
    """Returns a model that fails in one of six ways, or returns numbers in [-1, 1]."""
    state = {"mishap": 0}

    def anonymize(window):
        mishap, state["mishap"] = state["mishap"], 0
        if mishap == 1:
            raise RuntimeError(f"raw: {window}")
        if mishap == 2:
            return window[:-1]
        if mishap == 3:
            return np.where(np.arange(len(window))[:, None] == 3, np.nan, window)
        if mishap == 4:
            return None
        if mishap == 5:
            window[:] = np.inf
            return "raw"
        return np.cos(window)

    return state, anonymize


@hypothesis.given(
    faults=FAULTS, hop=st.integers(1, 8), rate=st.sampled_from([50.0, 30.0, 100.0])
)
@hypothesis.settings(max_examples=120)
def test_nothing_raw_leaves_whatever_happens(models, faults, hop, rate):
    """Raw samples and their means exceed 1000; safe ones are at most 1.

    Only the resampling filter may exceed 1, by its overshoot, by less than a quarter.
    """
    state, anonymize = mishaps(models)
    stream = edge.Stream(models.Model(anonymize), rate_hz=rate, hop=hop)
    rng = np.random.default_rng(0)
    now, raw, blocks = 0.0, 1000.0, []
    for what, size in faults:
        if what == "skip":
            now += size / rate
        elif what == "jump":
            now += size
        elif what == "model":
            state["mishap"] = size
        elif what == "repeat":
            blocks += stream.push(
                now - np.arange(size)[::-1] / rate, np.full((size, 1), raw)
            )
        else:
            times = now + np.arange(1, size + 1) / rate
            samples = raw + np.arange(size, dtype=float)[:, None]
            if what == "broken":
                samples[:] = np.nan
            if what == "jitter":
                times = np.sort(times + rng.uniform(-0.4, 0.4, size) / rate)
            now, raw = times[-1], raw + size
            blocks += stream.push(times, samples)
    blocks += stream.close()
    for before, after in itertools.pairwise(blocks):
        assert after.start == pytest.approx(before.end, abs=1e-9)
    for block in blocks:
        assert block.samples.dtype == np.float32
        if block.gap:
            assert np.isnan(block.samples).all()
        else:
            assert np.abs(block.samples).max() <= (1.0 if rate == 50 else 1.25)
        assert "raw" not in block.gap and "1000" not in block.gap
    counts = stream.counts
    assert sum(len(b.samples) for b in blocks if not b.gap) == counts["samples"]
