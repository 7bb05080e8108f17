"""Named sizes, and walkers made up, that the tests and the benchmark share."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """Recordings of one size: real samples of each, channels, and how they are cut."""

    lengths: tuple[int, ...]
    time: int
    channels: int
    length: int
    stride: int
    rate_hz: float


CASES = {
    # None, too few for a window, one window and a bit, all; stride below the length.
    "ragged": BenchmarkCase((0, 7, 20, 61), 61, 2, 16, 5, 50.0),
    # Windows side by side, and gaps between them; more than one block of samples.
    "apart": BenchmarkCase((150, 200), 200, 1, 32, 32, 50.0),
    "gaps": BenchmarkCase((40, 33, 10), 40, 3, 5, 9, 20.0),
    # 24 subjects of MotionSense, magnitudes, five minutes each; MobiAct's windows.
    "motion_sense": BenchmarkCase(
        (15_000,) * 12 + (12_000,) * 12, 15_000, 2, 128, 10, 50.0
    ),
    "mobi_act": BenchmarkCase((24_000,) * 36, 24_000, 6, 128, 10, 200.0),
}


def recordings(case: BenchmarkCase, seed: int, dtype=np.float64):
    """``[recordings, time, channels]``, padding of NaN, and the lengths."""
    rng = np.random.default_rng(seed)
    x = 9.81 + np.cumsum(
        rng.normal(size=(len(case.lengths), case.time, case.channels)), 1
    )
    lengths = np.array(case.lengths, np.int32)
    real = np.arange(case.time) < lengths[:, None]
    return np.where(real[..., None], x, np.nan).astype(dtype), lengths


def walk(num_steps, rate_hz, *, pace_s=0.5, swing=3.0, still_s=1.0):
    """``[time, 3]`` in m/s^2: stands still, takes ``num_steps``, stands still.

    The magnitude is 9.81 and, while walking, swings once per step by ``swing``.
    """
    time = round((2 * still_s + num_steps * pace_s) * rate_hz)
    seconds = np.arange(time) / rate_hz - still_s
    walks = (seconds >= 0) & (seconds < num_steps * pace_s)
    r = 9.81 + np.where(walks, swing * np.sin(2 * np.pi * seconds / pace_s), 0)
    axis = np.array([2.0, 3.0, 6.0]) / 7  # Of norm 1, as the phone may lie.
    return r[:, None] * axis[None]


def wander(seed, num, time, rate_hz):
    """``[num, time, 3]``: walks whose pace and swing change, with noise."""
    rng = np.random.default_rng(seed)
    pace_hz = 1.8 + 0.7 * np.cumsum(rng.normal(size=(num, time)), 1) / np.sqrt(time)
    phase = 2 * np.pi * np.cumsum(pace_hz, 1) / rate_hz
    swing = 4 * rng.random((num, 1)) * (1 + np.sin(phase / 37))
    r = 9.81 + swing * np.sin(phase)
    return r[..., None] / np.sqrt(3) + 0.5 * rng.normal(size=(num, time, 3))
