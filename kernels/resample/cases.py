"""Shapes shared by the tests and the benchmarks."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """One client: ``n`` rows of ``d`` numbers, real rows per class, T and k."""

    n: int
    d: int
    counts: tuple[int, ...]
    samples_per_class: int
    k_neighbors: int


CASES = {
    # A class above T, one below T, one with a single row, an empty one; padding.
    "ragged": BenchmarkCase(40, 6, (20, 9, 1, 0), 12, 3),
    "no_padding": BenchmarkCase(24, 3, (16, 8), 16, 5),
    # One client of MotionSense (mag4) and one of MobiAct at full size.
    "motion_sense": BenchmarkCase(1024, 256, (150, 120, 300, 350), 600, 5),
    "mobi_act": BenchmarkCase(4000, 768, (300, 400, 1300, 2000), 4000, 5),
}


def client(case: BenchmarkCase, seed: int, dtype=np.float32):
    """Returns rows, labels and mask of a synthetic client with scattered padding."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(case.counts)), case.counts)
    labels = np.concatenate([labels, np.zeros(case.n - len(labels))]).astype(np.int32)
    mask = np.arange(case.n) < sum(case.counts)
    x = rng.normal(size=(case.n, case.d)) + 3.0 * labels[:, None]
    x = np.where(mask[:, None], x, 0).astype(dtype)
    shuffle = rng.permutation(case.n)
    return x[shuffle], labels[shuffle], mask[shuffle]
