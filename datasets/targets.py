"""Attributes that are numbers: what a learner predicts where there are no classes."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A number that goes with every window, ``float32[N]`` among its labels.

    ``mean`` and ``std`` (population) are those of the training windows, in ``unit``.
    A target that goes on where its window ends says how: it is the mean of ``channel``
    over the ``samples`` after the window, in the channel's unit. Any other has the
    channel ``""``, and nothing in the window to hold its value against.

    Raises:
      ValueError: for a mean or std that is not finite, a std of 0, fewer than one
        sample.

    Example:
      >>> Target(unit="W", mean=300.0, std=50.0, channel="power", samples=4).samples
      4
    """

    unit: str
    mean: float
    std: float
    channel: str = ""
    samples: int = 1

    def __post_init__(self):
        if not (math.isfinite(self.mean) and 0 < self.std < math.inf):
            raise ValueError(
                f"a target has mean {self.mean} and std {self.std} over the training "
                "windows; one that is constant cannot be learned, leave it out."
            )
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples!r}.")


def moments(values: np.ndarray) -> tuple[float, float]:
    """Mean and population standard deviation of ``float[N]``, as ``Target`` has them.

    Example:
      >>> moments(np.array([1.0, 3.0]))
      (2.0, 1.0)
    """
    values = values.astype(np.float64)
    return float(values.mean()), float(values.std())
