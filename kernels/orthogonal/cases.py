"""Sizes of projections and secret directions for tests and the benchmark."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """``rows`` of ``inputs`` numbers with singular values from 1 to 1/condition."""

    rows: int
    inputs: int
    condition: float
    batch: tuple[int, ...] = ()


CASES = {
    "deeprotect": BenchmarkCase(7, 30, 10.0),  # 30 samples of a window to 7 features.
    "square": BenchmarkCase(4, 4, 3.0),
    "one_row": BenchmarkCase(1, 5, 1.0),
    "stacked": BenchmarkCase(3, 6, 20.0, (2,)),
    "ill_conditioned": BenchmarkCase(32, 64, 1e4),
    "wide": BenchmarkCase(256, 1024, 10.0),  # Timed only.
    "layers": BenchmarkCase(
        16, 128, 10.0, (64,)
    ),  # Timed only: one layer for each of 64 clients.
}


def matrix(case: BenchmarkCase, seed=0, dtype=np.float32):
    """Returns matrices with logarithmically spaced singular values."""
    rng = np.random.default_rng(seed)
    shape = (*case.batch, case.rows, case.inputs)
    left, _, right = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    values = np.geomspace(1, 1 / case.condition, case.rows)
    return ((left * values) @ right).astype(dtype)


# Secret directions: (number of directions, numbers in a window).
SPANS = {"pair": (2, 9), "triple": (3, 8), "quadruple": (4, 7)}
