"""Modes of devices (off, standby, on), inferred from their power."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

OFF, STANDBY, ON = range(3)
NAMES = ("off", "standby", "on")
FLOOR_W = 0.2  # Below the resolution of a plug meter.
MAX_STANDBY_W = 25.0  # Above it a device is in use, such as a pump.
MIN_ON_RATIO = 3.0  # Least ratio of the levels of on and standby.
MIN_STANDBY_FRACTION = 0.01  # Fewer minutes are transients of switching on.
_BINS = 64


class Levels(NamedTuple):
    """Power of a device in its modes, W; 0 when off.

    ``standby`` is 0 if it cannot be distinguished from off.
    """

    standby: Any  # float[...]
    on: Any  # float[...]


def classify_mode(power, levels: Levels):
    """Returns the mode with the nearest level; ties give the higher mode.

    The threshold between off and standby is half the standby level. The threshold
    between standby and on is their geometric mean, ``√(standby on)``: a coffee machine
    of 1,000 W that draws 55 W to stay warm is on. The bands of the paper are 0.9 to 1.1
    times a level, and the paper does not classify power between them. They do not cross
    these thresholds if on is at least 1.25 times standby. If standby cannot be
    distinguished from off, a device that draws at least ``FLOOR_W`` is on, so it is
    never switched off by mistake.

    Args:
      power: ``float[...]``, W; negative values are off.
      levels: levels of the device; scalars, or arrays of the shape of ``power``.

    Returns:
      ``int32[...]`` of ``OFF``, ``STANDBY`` and ``ON``, 0 to 2.

    Example:
      >>> classify_mode(jnp.array([0.0, 0.5, 4.0, 10.0, 100.0]), Levels(1.0, 100.0))
      Array([0, 1, 1, 2, 2], dtype=int32)
      >>> classify_mode(jnp.array([0.0, 0.5, 4.0]), Levels(0.0, 9.0))
      Array([0, 2, 2], dtype=int32)

    References:
      Chapter 2, section 2.2.3, state space.
    """
    power, standby = jnp.asarray(power), jnp.asarray(levels.standby)
    known = standby > 0
    low = jnp.where(known, standby / 2, FLOOR_W)
    high = jnp.where(known, jnp.sqrt(standby * levels.on), FLOOR_W)
    return (power >= low).astype(jnp.int32) + (power >= high).astype(jnp.int32)


def find_levels(power) -> Levels:
    """Estimates the levels of standby and on from power.

    A threshold splits the minutes of at least ``FLOOR_W`` into two groups with the
    least within-group variance of the logarithm (Otsu). The levels are the medians of
    the groups. They count as standby and on under three conditions. On is at least 3
    times standby, standby is at most 25 W, and at least 1 % of all minutes are in
    standby. Otherwise ``standby`` is 0 and ``on`` is the median of all these minutes: a
    router that always draws 9 W is on.

    Args:
      power: power of the training days, ``float[homes, minutes, devices]``, W.

    Returns:
      ``Levels`` of ``float32[homes, devices]``; both 0 for a device that never draws
        power.

    Raises:
      ValueError: if power is not of rank 3, or has no minute.

    Example:
      >>> minutes = np.repeat([0.0, 2.0, 200.0], [10, 20, 5])
      >>> find_levels(minutes[None, :, None])
      Levels(standby=array([[2.]], dtype=float32), on=array([[200.]], dtype=float32))

    References:
      Otsu, A threshold selection method from gray-level histograms, 1979.
    """
    power = np.asarray(power)
    if power.ndim != 3 or not power.shape[1]:
        raise ValueError(
            f"power must be float[homes, minutes, devices] with at least one minute, "
            f"got shape {power.shape}."
        )
    rows = np.moveaxis(power, 1, 2).reshape(-1, power.shape[1])
    levels = np.array([_levels(row) for row in rows], np.float32)
    standby, on = levels.reshape(len(power), power.shape[2], 2).transpose(2, 0, 1)
    return Levels(standby, on)


def _levels(row):
    """Returns (standby, on) of one device."""
    measured = row[row >= FLOOR_W].astype(np.float64)
    if not len(measured):
        return 0.0, 0.0
    threshold = np.exp(_otsu(np.log(measured)))
    low, high = measured[measured < threshold], measured[measured >= threshold]
    if len(high) and len(low) >= MIN_STANDBY_FRACTION * len(row):
        standby, on = np.median(low), np.median(high)
        if standby <= MAX_STANDBY_W and on >= MIN_ON_RATIO * standby:
            return standby, on
    return 0.0, np.median(measured)


def _otsu(values):
    """Returns the best threshold; arbitrary if all values are equal."""
    counts, edges = np.histogram(values, _BINS)
    midpoints = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(counts)[:-1]
    total = np.cumsum(counts * midpoints)[:-1]
    above = len(values) - below
    rest = np.sum(counts * midpoints) - total
    difference = total / np.maximum(below, 1) - rest / np.maximum(above, 1)
    between = below * above * difference**2
    # Take the middle of equally good thresholds.
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))
    return edges[1 + best[len(best) // 2]]
