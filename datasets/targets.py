"""Numeric attributes, which learners predict by regression."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A numeric attribute of each window, ``float32[N]`` in the labels.

    ``mean`` and ``std`` (population) are statistics of the training windows, in
    ``unit``. A forecast target is the mean of ``channel`` over the ``samples`` after
    the window, in the channel's unit. Other targets have the channel ``""``.

    Raises:
      ValueError: if mean or std is not finite, std is 0, or samples is below 1.

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
                "a target must have a finite mean and std > 0 over the training "
                f"windows, got mean {self.mean} and std {self.std}; drop constant "
                "targets."
            )
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples!r}.")


def moments(values: np.ndarray) -> tuple[float, float]:
    """Returns mean and population standard deviation of ``float[N]``.

    Example:
      >>> moments(np.array([1.0, 3.0]))
      (2.0, 1.0)
    """
    values = values.astype(np.float64)
    return float(values.mean()), float(values.std())
