"""Windows, filters, steps and statistics, compared with SciPy and NumPy."""

import collections
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon.datasets import windows as host
from jaxanon.kernels import signals
from jaxanon.kernels.signals import blocks, cases, reference

RATE_HZ = 50.0


def rows(report, smoke):
    """Times each kernel on synthetic data of MotionSense's size."""
    case = cases.CASES["ragged" if smoke else "motion_sense"]
    x, lengths = cases.recordings(case, 0, np.float32)
    x = np.nan_to_num(x)
    shapes = f"{len(lengths)} recordings of {case.time} x {case.channels}"
    _windowing(report, case, x, lengths, shapes)
    if not timing.installed("scipy", "SciPy"):
        return
    from scipy import signal, stats

    _filters(report, signal, x, lengths, shapes)
    _steps(report, signal, *((4, 400) if smoke else (24, 15_000)))
    _steps(report, signal, *((20, 128) if smoke else (5_000, 128)))
    _statistics(report, stats, 10 if smoke else 5_000)


def _ours(report, name, fn, args, shapes, num_bytes, operations):
    """Times the compiled kernel; returns ``(timed, its work)``."""
    took = timing.timed(jax.jit(fn), *args, repeats=3)
    more = {"compile_s": took.compile_s}
    return took, report.took(name, took, shapes, operations, num_bytes, **more)


def _over(report, name, work, rival, shapes, repeats=2):
    """Adds our speedup over a rival; returns the rival's result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = rival()
        seconds.append(time.perf_counter() - start)
    report.over(name, min(seconds), work, shapes)
    return result


def _windowing(report, case, x, lengths, shapes):
    cut = functools.partial(signals.cut_windows, length=case.length, stride=case.stride)
    made = jax.eval_shape(cut, x, lengths).windows
    num_bytes = x.nbytes + made.size * made.dtype.itemsize
    args = jnp.asarray(x), jnp.asarray(lengths)
    # Memory traffic only, no arithmetic.
    took, work = _ours(report, "cut windows", cut, args, shapes, num_bytes, 0)

    def loop():
        real = [row[:size] for row, size in zip(x, lengths, strict=True)]
        return [host.cut(row, case.length, case.stride) for row in real]

    each = _over(report, "cut windows over NumPy's loop", work, loop, shapes)
    out, mask = map(np.asarray, took.result)
    np.testing.assert_array_equal(out[mask], np.concatenate(each))


def _filters(report, signal, x, lengths, shapes):
    sections = signals.butterworth(5, 3.667, RATE_HZ)
    # Per sample: a row of the block's matrix, and the states' input and output.
    per_sample = 2 * (blocks.BLOCK + 4 * len(sections))
    device = jnp.asarray(x)
    forward = lambda x: signals.sosfilt(sections, x)[0]
    name, cost = "Butterworth forward", (2 * x.nbytes, per_sample * x.size)
    took, work = _ours(report, name, forward, (device,), shapes, *cost)
    loop = lambda: [signal.sosfilt(sections, row, axis=0) for row in x]
    each = _over(report, "forward over SciPy's loop", work, loop, shapes)
    np.testing.assert_allclose(took.result, each, rtol=1e-4, atol=1e-3)
    once = lambda: signal.sosfilt(sections, x, axis=-2)
    _over(report, "forward over SciPy, one call", work, once, shapes)
    part = x[0, :1000, 0].tolist()
    state = [(0.0, 0.0)] * len(sections)
    start = time.perf_counter()
    reference.sosfilt(sections, part, state)
    seconds = (time.perf_counter() - start) / len(part) * x.size
    report.over("forward over the reference", seconds, work, shapes)

    both = functools.partial(signals.sosfiltfilt, sections)
    args = device, jnp.asarray(lengths)
    # Read and written in each direction.
    name, operations = "Butterworth both ways, ragged", 2 * per_sample * x.size
    took, work = _ours(report, name, both, args, shapes, 4 * x.nbytes, operations)
    real = [(i, size) for i, size in enumerate(lengths) if size > 18]
    loop = lambda: [signal.sosfiltfilt(sections, x[i, :n], axis=0) for i, n in real]
    each = _over(report, "both ways over SciPy's loop", work, loop, shapes)
    for (i, size), row in zip(real, each, strict=True):
        np.testing.assert_allclose(took.result[i, :size], row, rtol=1e-4, atol=1e-3)


def _steps(report, signal, num, length):
    x = cases.wander(0, num, length, RATE_HZ).astype(np.float32)
    shapes = f"{num} recordings of {length} x 3"
    count = lambda x: signals.count_steps_jerk_pace(x, RATE_HZ)
    # Per sample: norm 6, three sections of 9, extrema 4, decisions on a few 3.
    args, operations = (jnp.asarray(x),), 40 * num * length
    took, work = _ours(
        report, "steps, jerk and pace", count, args, shapes, x.nbytes, operations
    )
    loop = lambda: [_adaptiv(signal, row) for row in x]
    theirs = _over(report, "steps over SciPy's loop", work, loop, shapes, repeats=1)
    # A decision may depend on the last bit of float32.
    assert np.mean(np.asarray(took.result) != theirs) < 0.02 + 1 / num
    assert abs(np.sum(took.result) / np.sum(theirs) - 1) < 1e-3


def _adaptiv(signal, acceleration):
    """Counts steps with SciPy's filter and extrema and a loop over candidates."""
    r = np.linalg.norm(acceleration.astype(np.float64), axis=-1)
    sections = signal.butter(5, 3.667, fs=RATE_HZ, output="sos")
    smooth, _ = signal.sosfilt(sections, r, zi=signal.sosfilt_zi(sections) * r[0])
    maxima, minima = (find(smooth)[0] for find in (signal.argrelmax, signal.argrelmin))
    minima = minima[minima > maxima[0]] if len(maxima) else minima[:0]
    jerks = collections.deque([2.5] * 20, maxlen=20)
    paces = collections.deque([0.4] * 20, maxlen=20)
    count, before = 0, None
    for top, low in zip(maxima, minima, strict=False):
        jerk, pace = smooth[top] - smooth[low], 0.4
        if before is not None:
            pace = max(top - before[0], low - before[1]) / RATE_HZ
        before = top, low
        usual = sum(paces) / 20
        if jerk >= min(sum(jerks) / 40, 5) and usual / 2 <= pace <= usual * 2:
            count += 1
            jerks.append(jerk)
            paces.append(pace)
    return count


def _statistics(report, stats, num):
    x = np.random.default_rng(0).normal(size=(num, 128, 6)).astype(np.float32)
    shapes = f"{num} windows of 128 x 6"
    args = (jnp.asarray(x),)
    # Per number: four moments 8, min and max 2, square 2, sign 3; sorting, seven more.
    name, whole = "window statistics", signals.window_statistics
    took, work = _ours(report, name, whole, args, shapes, x.nbytes, 22 * x.size)
    without = lambda x: signals.window_statistics(x)._replace(
        median=None, interquartile_range=None
    )
    name += ", unsorted"
    _ours(report, name, without, args, shapes, x.nbytes, 15 * x.size)

    def rival():
        low, middle, high = np.percentile(x, [25, 50, 75], axis=-2)
        square = np.sum(x * x, axis=-2)
        return signals.WindowStatistics(
            *(x.mean(-2), x.std(-2), x.var(-2), x.min(-2), x.max(-2)),
            *(middle, high - low),
            *(stats.skew(x, axis=-2), stats.kurtosis(x, axis=-2)),
            *(square, np.sqrt(square / x.shape[-2])),
            np.sum(np.diff(x < 0, axis=-2), axis=-2),
        )

    theirs = _over(report, "statistics over NumPy and SciPy", work, rival, shapes)
    for ours, expected in zip(took.result, theirs, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)
