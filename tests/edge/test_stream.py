"""A stream returns its model's output for any chunks and faults."""

import itertools
import os
import pathlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon import edge

RATE = 50.0
STATM = pathlib.Path("/proc/self/statm")


def ramp(count, channels=1, first=1000.0):
    """Returns distinct samples, exact in float32."""
    return first + np.arange(count * channels, dtype=np.float64).reshape(-1, channels)


def through(stream, times, samples, sizes=None):
    """Returns all blocks of samples pushed in chunks of these sizes."""
    cuts = np.cumsum(sizes or [])
    blocks = []
    for t, x in zip(np.split(times, cuts), np.split(samples, cuts), strict=True):
        blocks += stream.push(t, x)
    return blocks + stream.close()


def follow_one_another(blocks, near=1e-9):
    for before, after in itertools.pairwise(blocks):
        assert after.start == pytest.approx(before.end, abs=near)
    for block in blocks:
        if block.samples.size and not block.gap:
            length = len(block.samples) / block.rate_hz
            assert block.end - block.start == pytest.approx(length, abs=near)
            assert np.isfinite(block.samples).all()
        assert np.isnan(block.samples).all() or not block.gap


@hypothesis.given(
    count=st.integers(8, 60),
    hop=st.integers(1, 8),
    sizes=st.lists(st.integers(0, 12), max_size=6),
)
def test_the_identity_gives_back_the_input_whatever_the_hop(models, count, hop, sizes):
    samples = ramp(count, 2)
    stream = edge.Stream(models.Model(channels=2), hop=hop)
    blocks = through(stream, np.arange(count) / RATE, samples, sizes)
    follow_one_another(blocks)
    assert not any(block.gap for block in blocks)
    np.testing.assert_allclose(models.joined(blocks), samples, rtol=1e-7)
    assert blocks[0].start == 0.0
    assert stream.counts["samples"] == stream.counts["pushed"] == count


@pytest.mark.parametrize("kind", ["Identity", "Neg"])
def test_a_model_file_is_streamed(models, tmp_path, kind):
    model = edge.load(models.one_op(tmp_path / "a.onnx", kind))
    samples = np.random.default_rng(0).normal(size=(101, 2)).astype(np.float32)
    blocks = through(edge.Stream(model), 7.0 + np.arange(101) / RATE, samples)
    sign = -1 if kind == "Neg" else 1
    np.testing.assert_allclose(models.joined(blocks), sign * samples, rtol=1e-6)
    assert blocks[0].start == 7.0 and blocks[0].rate_hz == RATE


def test_overlapping_windows_are_weighted_by_hand(models):
    """Windows of 4 at 0, 2.

    The middle is a mean of 1 and 2 weighted by squared sines.
    """
    answers = iter([1.0, 2.0])
    model = models.Model(lambda window: np.full_like(window, next(answers)), time=4)
    blocks = through(edge.Stream(model), np.arange(6) / RATE, ramp(6))
    a, b = np.sin(np.pi / 8) ** 2, np.sin(3 * np.pi / 8) ** 2
    middle = [(b * 1 + a * 2) / (a + b), (a * 1 + b * 2) / (a + b)]
    wanted = [1, 1, *middle, 2, 2]
    np.testing.assert_allclose(models.joined(blocks)[:, 0], wanted, rtol=1e-6)


@hypothesis.given(
    seed=st.integers(0, 10**6),
    rate=st.sampled_from([50.0, 20.0, 125.0, 33.3]),
    first=st.lists(st.integers(0, 40), max_size=8),
    second=st.lists(st.integers(0, 40), max_size=8),
)
@hypothesis.settings(max_examples=50)
def test_chunks_do_not_matter(models, seed, rate, first, second):
    """The stream has jitter, gaps, NaN, repeated and late samples."""
    rng = np.random.default_rng(seed)
    times = 1.7e9 + np.cumsum(rng.choice([1.0, 1.2, 0.9, 0.0, -1.5, 9], 150)) / rate
    samples = rng.normal(size=(150, 1))
    samples[rng.random(150) < 0.03] = np.nan
    found = []
    for sizes in (first, second):
        model = models.Model(lambda window: window**2 - window[::-1], rate_hz=50.0)
        stream = edge.Stream(model, rate_hz=rate)
        blocks = through(stream, times, samples, sizes)
        follow_one_another(blocks, near=1e-6)  # Such times have no more digits.
        gaps = [(block.gap, len(block.samples)) for block in blocks if block.gap]
        merged = []
        for gap, rows in gaps:
            if merged and merged[-1][0] == gap:
                merged[-1] = gap, merged[-1][1] + rows
            else:
                merged.append((gap, rows))
        found.append((models.joined(blocks), {gap for gap, _ in gaps}, stream.counts))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    assert found[0][1:] == found[1][1:]


def test_samples_leave_within_the_latency(models):
    for rate in (50.0, 20.0, 125.0):
        stream = edge.Stream(models.Model(rate_hz=50.0), rate_hz=rate)
        left = 0.0
        for index in range(400):
            time = index / rate
            for block in stream.push([time], [[1.0]]):
                left = block.end
            # Samples still inside are younger than the latency.
            assert time - left <= stream.latency_s
        assert left > 0
        stream.close()


def test_a_stream_keeps_no_more_than_it_needs(models):
    import gc
    import tracemalloc

    stream = edge.Stream(models.Model(time=64), rate_hz=100.0)
    used = []
    tracemalloc.start()
    for part in range(12):
        times = (part * 20_000 + np.arange(20_000)) / 100
        stream.push(times, np.sin(times)[:, None])
        del times
        gc.collect()
        used.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    stream.close()
    assert max(used[2:]) - used[1] < 20_000  # Bytes, of the 1.6 MB since then.


@pytest.mark.skipif(not STATM.exists(), reason="only Linux tells what is resident")
def test_a_model_file_takes_no_more_memory_with_every_window(models, tmp_path):
    told = models.described()
    told["input"]["time"] = 4096
    model = edge.load(models.one_op(tmp_path / "a.onnx", told=told))
    stream = edge.Stream(model, hop=4096)
    resident = []
    for part in range(600):
        times = (part * 4096 + np.arange(4096)) / RATE
        stream.push(times, np.ones((4096, 2)))
        resident.append(int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    stream.close()
    # 20 MB went in and 20 MB came out since.
    assert max(resident[300:]) - max(resident[:300]) < 4e6


def test_what_inspects_sees_raw_and_safe_and_breaks_nothing(models):
    seen = []

    def inspect(window):
        seen.append(window)
        window.safe[:] = window.raw
        raise RuntimeError

    stream = edge.Stream(models.Model(lambda x: -x), inspect=inspect)
    blocks = through(stream, 5 + np.arange(16) / RATE, ramp(16))
    assert (models.joined(blocks) < 0).all()
    assert [window.start for window in seen] == pytest.approx([5, 5.08, 5.16])
    assert stream.counts["inspect"] == 3


def test_a_model_that_writes_into_its_window_changes_nothing_else(models):
    seen = []

    def overwrite(window):
        window[:] = -1
        return window

    stream = edge.Stream(models.Model(overwrite), inspect=seen.append)
    samples = ramp(12)
    kept = samples.copy()
    blocks = through(stream, np.arange(12) / RATE, samples)
    assert (models.joined(blocks) == -1).all()
    np.testing.assert_array_equal(samples, kept)
    np.testing.assert_array_equal(seen[0].raw, samples[:8])
    np.testing.assert_array_equal(seen[1].raw, samples[4:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hop": 0}, "hop must be an integer in [1, 8]"),
        ({"hop": 9}, "hop must be an integer in [1, 8]"),
        ({"hop": 2.0}, "hop must be an integer in [1, 8]"),
        ({"rate_hz": 0}, "rate_hz must be > 0"),
        ({"rate_hz": float("nan")}, "rate_hz must be > 0"),
        ({"max_gap": 0.5}, "max_gap must be finite and >= 1"),
        ({"longest_gap_s": -1}, "longest_gap_s must be finite and >= 0"),
        ({"deadline_s": 0}, "deadline_s must be > 0 and finite"),
        ({"deadline_s": float("inf")}, "it protects the stream from a hanging model"),
        ({"channels": ["c0", "c2"]}, "choose those columns"),
        ({"channels": ["c1", "c0"]}, "or pass reorder=True"),
        ({"units": ["g", "m/s2"]}, "channel 'c1' must be in 'g', got 'm/s2'"),
        ({"units": ["g"]}, "units must be 2, one for each channel"),
        ({"budget": edge.UNBOUNDED}, "leave the budget out"),
    ],
)
def test_settings_are_checked_at_the_door(models, settings, message):
    with pytest.raises(ValueError) as raised:
        edge.Stream(models.Model(channels=2), **settings)
    assert message in str(raised.value)


def test_channels_are_put_in_order_where_that_is_said(models):
    stream = edge.Stream(
        models.Model(channels=2), channels=["c1", "c0"], units=["g", None], reorder=True
    )
    samples = ramp(8, 2)
    blocks = through(stream, np.arange(8) / RATE, samples)
    np.testing.assert_array_equal(models.joined(blocks), samples[:, ::-1])


def test_samples_of_another_shape_are_refused_and_nothing_is_taken(models):
    stream = edge.Stream(models.Model(channels=2))
    for times, samples in ([0.0], [[1.0]]), ([0.0, 1.0], [[1, 2]]), ([[0]], [[1, 2]]):
        with pytest.raises(ValueError, match="times and samples must be"):
            stream.push(times, samples)
    assert stream.counts["pushed"] == 0
    assert stream.close() == stream.close() == []
    with pytest.raises(ValueError, match="the stream is closed; open a new one"):
        stream.push([0.0], [[1.0, 2.0]])
