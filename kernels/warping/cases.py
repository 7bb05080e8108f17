"""Shapes shared by the tests and the benchmarks."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """``pairs`` of series with ``channels``; ``ragged`` ones are padded with NaN."""

    pairs: int
    time_x: int
    time_y: int
    channels: int
    ragged: bool = False


CASES = {
    # More pairs than lanes with a remainder, both orders of length, one channel, one
    # sample.
    "wide": BenchmarkCase(7, 9, 17, 3),
    "tall": BenchmarkCase(7, 17, 9, 3),
    "one_channel": BenchmarkCase(3, 12, 12, 1),
    "one_sample": BenchmarkCase(3, 1, 4, 2),
    "ragged": BenchmarkCase(11, 14, 10, 2, ragged=True),
    # Windows of accelerometer and gyroscope.
    "windows": BenchmarkCase(10_000, 128, 128, 6),
}


def series(case: BenchmarkCase, seed: int, dtype=np.float32):
    """Returns random ``x``, ``y`` and their lengths, without ties between paths."""
    rng = np.random.default_rng(seed)

    def side(time):
        values = rng.normal(size=(case.pairs, time, case.channels))
        lengths = np.full(case.pairs, time)
        if case.ragged:
            lengths = rng.integers(1, time + 1, case.pairs)
            values[np.arange(time)[None] >= lengths[:, None]] = np.nan
        return values.astype(dtype), lengths

    (x, x_lengths), (y, y_lengths) = side(case.time_x), side(case.time_y)
    return x, y, x_lengths, y_lengths
