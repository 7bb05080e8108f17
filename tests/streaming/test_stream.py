"""The batched stream equals the device runtime, and serves the times of rows."""

import types

import numpy as np
import pytest

from jaxanon.edge import Signature, Stream
from jaxanon.edge.overlap_add import Overlap
from jaxanon.streaming.overlap_add import NOT_FINITE, Segment
from jaxanon.streaming.stream import SafeStream, Settings


def anonymize(windows):
    """Mixes samples within each window; fails for some windows."""
    safe = np.cumsum(windows, 1) * 0.1 - windows
    safe[windows[:, 0, 0] > 2.2] = np.nan
    return safe.astype(np.float32)


def one(window):
    return anonymize(window[None])[0]


def rows_of(pieces):
    gap = lambda piece: np.full((piece.count, 2), np.nan)
    parts = [gap(p) if p.samples is None else p.samples for p in pieces]
    return np.concatenate([np.zeros((0, 2)), *parts])


@pytest.mark.parametrize("seed", range(30))
def test_overlap_add_in_batches_equals_that_of_single_windows(seed):
    rng = np.random.default_rng(seed)
    time = int(rng.integers(1, 9))
    hop, count = int(rng.integers(1, time + 1)), int(rng.integers(0, 40))
    parts = np.split(
        rng.normal(size=(count, 2)), np.sort(rng.integers(0, count + 1, 2))
    )

    def rewrite(index, window):
        safe = one(window)
        return (safe, "") if np.isfinite(safe).all() else (None, NOT_FINITE)

    overlap, segment = Overlap(time, 2, hop, rewrite), Segment(time, 2, hop)
    single, batched = [], []
    for number, part in enumerate(parts):
        single += overlap.push(part)
        batched += segment.add(anonymize(segment.windows(part, ended=number == 2)))
    single += overlap.end()
    np.testing.assert_array_equal(rows_of(single), rows_of(batched))


def recording(rng):
    """Draws rows with jitter, gaps, swapped rows, clocks set back and missing cells."""
    count, rate = int(rng.integers(0, 90)), float(rng.choice([50.0, 50.0, 100.0, 40.0]))
    times = np.arange(count) / rate
    times += rng.choice([0, 1e-3], count) * rng.random(count)
    if count > 20:
        third = count // 3
        if rng.random() < 0.5:
            times[count // 2 :] += rng.choice([0.05, 0.5, 20])
        if rng.random() < 0.3:
            times[[third, third + 1]] = times[[third + 1, third]]
        if rng.random() < 0.3:
            times[2 * third :] -= rng.choice([0.2, 5])
    samples = rng.normal(size=(count, 2))
    samples[rng.random(count) < 0.03] = np.nan
    return rate, times, samples, np.sort(rng.integers(0, count + 1, 2))


@pytest.mark.parametrize("seed", range(30))
def test_the_grid_is_that_of_the_device_and_rows_lie_on_it(seed):
    rng = np.random.default_rng(seed)
    rate, times, samples, cuts = recording(rng)
    time = int(rng.integers(2, 9))
    hop = int(rng.integers(1, time + 1))
    signature = Signature(time, ("x", "y"), ("g", "g"), 50.0)
    device = Stream(
        types.SimpleNamespace(signature=signature, anonymize=one), rate, hop
    )
    settings = Settings(time, 2, 50.0, rate, hop, 3)
    grid, exact = SafeStream(settings, anonymize, True), SafeStream(settings, anonymize)
    wanted, found, rows = [], [], []
    for part in np.split(np.arange(len(times)), cuts):
        wanted += device.push(times[part], samples[part])
        found += grid.push(times[part], samples[part])
        rows.append(exact.push(times[part], samples[part]))
    wanted, found = wanted + device.close(), found + grid.close()
    rows.append(exact.close())
    flat = lambda blocks: [
        (b.start, b.end, b.gap, *b.samples.ravel().tolist())
        for b in blocks
        if not b.gap
    ]
    assert [b.gap for b in wanted] == [b.gap for b in found]
    np.testing.assert_equal(flat(wanted), flat(found))
    values = np.concatenate([each.samples for each in rows])
    gaps = np.concatenate([each.gaps for each in rows])
    assert len(values) == len(times) == exact.counts["rows"]
    np.testing.assert_array_equal(np.isnan(values).any(axis=1), gaps != "")
    # A value lies between those of the two points of the grid around its time.
    for block in wanted:
        if block.gap or (np.diff(times) <= 0).any():
            continue
        last = block.start + (len(block.samples) - 1) / rate
        inside = (times >= block.start) & (times <= last)
        place = (times[inside] - block.start) * rate
        for channel in range(2):
            near = np.interp(
                place, np.arange(len(block.samples)), block.samples[:, channel]
            )
            np.testing.assert_allclose(values[inside, channel], near, atol=1e-3)


def test_rows_of_a_gap_say_why():
    settings = Settings(4, 1, 50.0, 50.0, 2, 3)
    stream = SafeStream(settings, lambda windows: -windows)
    times = np.concatenate([np.arange(8), 100 + np.arange(3), 200 + np.arange(4)]) / 50
    times[2] = np.nan
    first = stream.push(times, np.ones((15, 1)))
    rows = [first, stream.close()]
    gaps = np.concatenate([each.gaps for each in rows]).tolist()
    short = "the segment is shorter than a window"
    assert gaps == ["", "", "the row has no time", *[""] * 5, *[short] * 3, *[""] * 4]
    assert stream.counts["released"] == 11 and stream.reasons[short] == 3


def test_memory_does_not_grow_with_the_recording():
    settings = Settings(8, 1, 50.0, 50.0, 4, 3)
    stream = SafeStream(settings, lambda windows: -windows)
    for part in range(20):
        times = (1000 * part + np.arange(1000)) / 50
        assert len(stream.push(times, np.ones((1000, 1))).samples) > 900
        assert len(stream._times) < 100 and len(stream._spans[-1].safe) < 1200
    assert len(stream.close().samples) and stream.counts["released"] == 20_000
