"""Shapes shared by the tests and the benchmarks."""

from typing import NamedTuple

import numpy as np


class BenchmarkCase(NamedTuple):
    """Updates of ``clients``, with absent clients and missing layers."""

    clients: int
    shapes: dict[str, tuple[int, ...]]  # shapes of one client's layers
    absent: int


CASES = {
    "small": BenchmarkCase(7, {"dense": (3, 2), "bias": (2,)}, 2),
    "one": BenchmarkCase(1, {"dense": (2, 2), "bias": (1,)}, 0),
    "even": BenchmarkCase(6, {"dense": (4,), "bias": ()}, 0),
    # A thousand clients of a small classifier.
    "thousand": BenchmarkCase(1024, {"dense": (256, 64), "bias": (64,)}, 100),
}


def updates(case: BenchmarkCase, seed: int, dtype=np.float32):
    """Returns stacked updates, weights, presence mask, and masks of sent layers."""
    rng = np.random.default_rng(seed)
    draw = lambda shape: rng.normal(size=(case.clients, *shape)).astype(dtype)
    stacked = {name: draw(shape) for name, shape in case.shapes.items()}
    weights = rng.uniform(0.5, 2.0, case.clients).astype(dtype)
    mask = rng.permutation(case.clients) >= case.absent
    sent = {name: rng.uniform(size=case.clients) < 0.6 for name in case.shapes}
    return stacked, weights, mask, sent
