"""Trees of rows shared by the tests and the benchmarks."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """``num_rows`` rows of leaves with these shapes, grouped by these labels."""

    num_rows: int
    shapes: dict[str, tuple[int, ...]]
    groups: dict[str, str]
    clip_norms: dict[str, float]


CASES = {
    # One leaf, one bound.
    "flat": BenchmarkCase(5, {"x": (7,)}, {"x": "all"}, {"all": 1.5}),
    # Groups across the tree, with a scalar leaf and one of three axes.
    "groups": BenchmarkCase(
        9,
        {"a": (4, 3), "b": (), "c": (2, 3, 2), "d": (3,)},
        {"a": "kernel", "b": "bias", "c": "kernel", "d": "bias"},
        {"bias": 0.5, "kernel": 3.0},
    ),
    "one_row": BenchmarkCase(
        1, {"x": (2,), "y": (3,)}, {"x": "x", "y": "y"}, {"x": 1, "y": 2}
    ),
    # Clients of a round, each with a million parameters.
    "cohort": BenchmarkCase(1024, {"x": (1 << 20,)}, {"x": "all"}, {"all": 1.0}),
    "cohort_cpu": BenchmarkCase(64, {"x": (1 << 20,)}, {"x": "all"}, {"all": 1.0}),
    # Per-layer gradients of a small network for one batch.
    "batch": BenchmarkCase(
        256,
        {"first": (96, 64), "second": (64, 10), "bias": (10,)},
        {"first": "first", "second": "second", "bias": "second"},
        {"first": 1.0, "second": 0.5},
    ),
}


def rows(case: BenchmarkCase, seed: int, dtype=np.float32):
    """Returns rows with norms from a tenth of to ten times the bounds."""
    rng = np.random.default_rng(seed)
    tree = {}
    for name, shape in case.shapes.items():
        bound = case.clip_norms[case.groups[name]]
        sizes = np.geomspace(0.1, 10.0, case.num_rows)
        sizes = rng.permutation(sizes).reshape(-1, *[1] * len(shape))
        entries = rng.normal(size=(case.num_rows, *shape)) / np.sqrt(np.prod(shape))
        tree[name] = (bound * sizes * entries).astype(dtype)
    return tree
