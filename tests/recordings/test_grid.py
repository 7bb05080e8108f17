"""Whole recordings and streams have the same grid points."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxanon.recordings import grid


def streamed(times, samples, rate_hz, max_gap, size):
    """Returns the segments of a ``Grid``, and its counts."""
    state, parts = grid.Grid(rate_hz, samples.shape[1], max_gap), []
    for begin in range(0, len(times), size):
        for event in state.push(
            times[begin : begin + size], samples[begin : begin + size]
        ):
            if isinstance(event, grid.Begin):
                parts.append([event.start, np.zeros((0, samples.shape[1]))])
            elif isinstance(event, grid.Samples):
                parts[-1][1] = np.concatenate([parts[-1][1], event.samples])
    state.close()
    return parts, state.counts


def whole(times, samples, rate_hz, max_gap):
    """Returns the same from the whole recording."""
    kept = grid.forward(times, samples, rate_hz)
    rows = np.arange(len(times)) if kept.rows is None else np.flatnonzero(kept.rows)
    resets = np.searchsorted(rows, kept.resets)
    times, samples = times[rows], samples[rows]
    starts = grid.segments(times, rate_hz, max_gap, resets)
    where = grid.positions(times, rate_hz, starts)
    points = grid.interpolate(where, samples, starts)
    bounds = np.searchsorted(points.rows, np.append(starts, len(times)))
    parts = [
        [times[start], points.samples[begin:end]]
        for start, begin, end in zip(starts, bounds[:-1], bounds[1:], strict=True)
    ]
    return parts, kept.counts


@given(
    seed=st.integers(0, 10**6),
    rate_hz=st.sampled_from([8.0, 10.0, 12.5]),
    digits=st.sampled_from([1, 2, 9]),
    size=st.integers(1, 80),
    faults=st.lists(
        st.sampled_from(["drop", "swap", "repeat", "again", "gap", "reset", "jitter"]),
        max_size=4,
    ),
)
def test_a_whole_recording_has_the_points_of_a_stream(
    seed, rate_hz, digits, size, faults
):
    rng = np.random.default_rng(seed)
    times = np.arange(70) / rate_hz
    for fault in faults:
        at = int(rng.integers(1, len(times) - 1))
        if fault == "drop":
            times = times[rng.random(len(times)) < 0.8]
        elif fault == "swap":
            times[[at, at - 1]] = times[[at - 1, at]]
        elif fault == "repeat":
            times[at] = times[at - 1]
        elif fault == "gap":
            times[at:] += rng.uniform(0, 1)
        elif fault == "reset":
            times[at:] -= rng.uniform(0, 4)
        elif fault == "jitter":
            times += rng.uniform(-0.4, 0.4, len(times)) / rate_hz
    times = np.round(times, digits)
    samples = rng.normal(size=(len(times), 2))
    if "again" in faults:
        at = int(rng.integers(1, len(times) - 1))
        times, samples = (np.insert(x, at, x[at], axis=0) for x in (times, samples))
    expected, counts = streamed(times, samples, rate_hz, 3, size)
    found, found_counts = whole(times, samples, rate_hz, 3)
    assert [start for start, _ in found] == [start for start, _ in expected]
    for (_, points), (_, others) in zip(found, expected, strict=True):
        np.testing.assert_allclose(points, others, atol=1e-9)
    assert +found_counts == +counts


@pytest.mark.parametrize("shared", [False, True])
def test_increasing_times_are_kept_without_a_copy(shared):
    kept = grid.forward(np.arange(5.0), np.zeros((5, 1)), 1.0, shared)
    assert kept.rows is None and not len(kept.resets) and not kept.counts


def test_rows_of_a_packet_share_a_time():
    times = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
    kept = grid.forward(times, np.arange(5.0)[:, None], 2.0, shared=True)
    assert kept.rows.tolist() == [True] * 4 + [False] and kept.counts["late"] == 1
