"""Releases shared by the tests and the benchmark."""

from typing import NamedTuple


class BenchmarkCase(NamedTuple):
    """An array of one person, its public range, and the budget."""

    shape: tuple[int, ...]
    low: float
    high: float
    epsilon: float


CASES = {
    "number": BenchmarkCase((1,), 0.0, 1.0, 1.0),
    "features": BenchmarkCase(
        (7,), 0.0, 1.0, 5.0
    ),  # DEEProtect's features after the last layer.
    "window": BenchmarkCase((30, 2), -2.0, 3.0, 0.5),
    "update": BenchmarkCase((1_000_000,), -1.0, 1.0, 8.0),  # Timed only; float32 noise.
    "cohort": BenchmarkCase(
        (1024, 768), -1.0, 1.0, 100.0
    ),  # 1024 people with one window each.
}
SCORES = {
    "spread": (0.0, 1.0, 2.5, -1.0),
    "tied": (1.0, 1.0, 0.0),
    "two": (0.0, 0.7),
}
