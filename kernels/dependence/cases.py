"""Shapes shared by the tests and the benchmarks."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """Real rows per class, numbers per row, padding rows and k."""

    counts: tuple[int, ...]
    d: int
    padding: int
    num_neighbors: int


CASES = {
    "one_number": BenchmarkCase((40, 25, 31), 1, 0, 3),
    # A class smaller than k, a class with a single row, and padding.
    "ragged": BenchmarkCase((30, 3, 1, 20), 1, 13, 5),
    "vectors": BenchmarkCase((20, 30), 4, 7, 3),
    # Components of windows and the class of their wearer.
    "windows": BenchmarkCase((2000, 2000), 1, 96, 3),
}


def sample(case: BenchmarkCase, seed: int, dtype=np.float32):
    """Returns rows, labels and mask; padding is NaN at random positions."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(case.counts)), case.counts)
    x = rng.normal(size=(len(labels), case.d)) + 0.8 * labels[:, None]
    x = np.concatenate([x, np.full((case.padding, case.d), np.nan)]).astype(dtype)
    labels = np.concatenate([labels, np.zeros(case.padding, int)])
    mask = np.arange(len(x)) < sum(case.counts)
    shuffle = rng.permutation(len(x))
    return x[shuffle], labels[shuffle], mask[shuffle]
