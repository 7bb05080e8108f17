"""The acceleration among a window's channels, as a pedometer wants it."""

import re
from collections.abc import Sequence

import numpy as np

UNITS = {"g": 9.80665, "m/s^2": 1.0}  # In m/s².
LESS_GRAVITY = ("userAcceleration", "body_acc")  # What a person adds, alone.


def acceleration(windows, channels: Sequence[str], units: Sequence[str]):
    """The acceleration with gravity, in m/s², or None if there is none.

    Every channel in g or m/s^2 counts as an axis. Where gravity has channels of its own
    (``gravity.x``), they are added to those that end alike (``userAcceleration.x``).
    Where it has none, ``userAcceleration.x`` and ``body_acc_x`` are left out: gravity
    was taken from them, and how they lay to it is not to be had from them.

    Args:
      windows: ``float[N, time, channels]`` in physical units.
      channels: their names.
      units: their units.

    Returns:
      ``float32[N, time, axes]``, or None.

    Raises:
      ValueError: if windows have another number of channels than there are names, or
        names than units.

    Example:
      >>> windows = np.array([[[0.5, 0.25, 90.0]]])
      >>> names = ("gravity.x", "userAcceleration.x", "rotationRate.x")
      >>> acceleration(windows, names, ("g", "g", "rad/s")).round(3)
      array([[[7.355]]], dtype=float32)
    """
    windows = np.asarray(windows)
    if windows.shape[-1:] != (len(channels),):
        raise ValueError(
            f"windows must have {len(channels)} channels, one for each name, got shape "
            f"{windows.shape}."
        )
    axes: dict[str, list[int]] = {}
    apart = any(name.startswith("gravity.") for name in channels)
    for index, (name, unit) in enumerate(zip(channels, units, strict=True)):
        if unit in UNITS and (apart or _sensor(name) not in LESS_GRAVITY):
            axis = name.partition(".")[2] if apart else name
            axes.setdefault(axis, []).append(index)
    if not axes:
        return None
    factors = np.array([UNITS.get(unit, 0.0) for unit in units])
    scaled = windows * factors.astype(np.float32)
    together = [scaled[..., own].sum(-1) for own in axes.values()]
    return np.stack(together, -1).astype(np.float32)


def _sensor(name: str) -> str:
    """A channel's name less its axis."""
    return re.sub(r"[._][xyz]$", "", name)
