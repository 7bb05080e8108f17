"""Shapes and synthetic walks shared by the tests and the benchmark."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """Recordings padded to one size: real samples, channels, and window parameters."""

    lengths: tuple[int, ...]
    time: int
    channels: int
    length: int
    stride: int
    rate_hz: float


CASES = {
    # No samples, too few for a window, one window and more, all; overlapping windows.
    "ragged": BenchmarkCase((0, 7, 20, 61), 61, 2, 16, 5, 50.0),
    # Adjacent windows, and gaps between windows; more than one block of samples.
    "apart": BenchmarkCase((150, 200), 200, 1, 32, 32, 50.0),
    "gaps": BenchmarkCase((40, 33, 10), 40, 3, 5, 9, 20.0),
    # 24 subjects of MotionSense with magnitudes of five minutes; MobiAct's windows.
    "motion_sense": BenchmarkCase(
        (15_000,) * 12 + (12_000,) * 12, 15_000, 2, 128, 10, 50.0
    ),
    "mobi_act": BenchmarkCase((24_000,) * 36, 24_000, 6, 128, 10, 200.0),
}


def recordings(case: BenchmarkCase, seed: int, dtype=np.float64):
    """Returns ``[recordings, time, channels]`` padded with NaN, and the lengths."""
    rng = np.random.default_rng(seed)
    x = 9.81 + np.cumsum(
        rng.normal(size=(len(case.lengths), case.time, case.channels)), 1
    )
    lengths = np.array(case.lengths, np.int32)
    real = np.arange(case.time) < lengths[:, None]
    return np.where(real[..., None], x, np.nan).astype(dtype), lengths


def walk(num_steps, rate_hz, *, pace_s=0.5, swing=3.0, still_s=1.0):
    """Returns ``[time, 3]`` in m/s^2: standing, ``num_steps`` of walking, standing.

    The magnitude is 9.81 and oscillates by ``swing`` once per step while walking.
    """
    time = round((2 * still_s + num_steps * pace_s) * rate_hz)
    seconds = np.arange(time) / rate_hz - still_s
    walks = (seconds >= 0) & (seconds < num_steps * pace_s)
    r = 9.81 + np.where(walks, swing * np.sin(2 * np.pi * seconds / pace_s), 0)
    axis = np.array([2.0, 3.0, 6.0]) / 7  # Unit vector, an arbitrary phone pose.
    return r[:, None] * axis[None]


def wander(seed, num, time, rate_hz):
    """Returns ``[num, time, 3]``, noisy walks with changing pace and swing."""
    rng = np.random.default_rng(seed)
    pace_hz = 1.8 + 0.7 * np.cumsum(rng.normal(size=(num, time)), 1) / np.sqrt(time)
    phase = 2 * np.pi * np.cumsum(pace_hz, 1) / rate_hz
    swing = 4 * rng.random((num, 1)) * (1 + np.sin(phase / 37))
    r = 9.81 + swing * np.sin(phase)
    return r[..., None] / np.sqrt(3) + 0.5 * rng.normal(size=(num, time, 3))
