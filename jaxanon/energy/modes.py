"""Off, standby or on: which of them a device's power tells."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

OFF, STANDBY, ON = range(3)
NAMES = ("off", "standby", "on")
FLOOR_W = 0.2  # What a plug's meter cannot tell from nothing.
MOST_STANDBY_W = 25.0  # More is a device at work, such as a pump.
LEAST_RATIO = 3.0  # Of the levels of on and standby.
LEAST_SHARE = 0.01  # Of all minutes, in standby: less is switching on.
_BINS = 64


class Levels(NamedTuple):
    """What a device takes in its modes, W; when off it takes nothing.

    ``standby`` is 0 where it cannot be told from off.
    """

    standby: Any  # float[...]
    on: Any  # float[...]


def mode_of(power, levels: Levels):
    """The mode whose level is nearest, and the higher of two that are as near.

    Between off and standby the border is half the level of standby. Between standby
    and on it is where the ratio to both is the same, ``√(standby on)``: a coffee
    machine of 1,000 W that keeps 55 W warm is on. The bands of the paper, 0.9 to 1.1
    times a level, lie on their own side of it wherever on is at least 1.25 times
    standby; it leaves open what is between them. Where standby cannot be told from off
    a device that takes ``FLOOR_W`` or more is on: nobody's device is switched off for
    what is not known.

    Args:
      power: ``float[...]``, W; what is negative is off.
      levels: of the device; single numbers, or of the shape of ``power``.

    Returns:
      ``int32[...]`` of ``OFF``, ``STANDBY`` and ``ON``, 0 to 2.

    Example:
      >>> mode_of(jnp.array([0.0, 0.5, 4.0, 10.0, 100.0]), Levels(1.0, 100.0))
      Array([0, 1, 1, 2, 2], dtype=int32)
      >>> mode_of(jnp.array([0.0, 0.5, 4.0]), Levels(0.0, 9.0))
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
    """Levels of standby and on, from what a device took.

    Minutes of ``FLOOR_W`` and more are parted in two where that leaves the least
    variance of the logarithm inside both (Otsu); levels are the medians. That is
    standby and on where on is at least 3 times standby, standby at most 25 W, and at
    least 1 % of all minutes are in standby. Else ``standby`` is 0 and ``on`` the median
    of all those minutes: a router that always takes 9 W is on, a kettle is on or off.

    Args:
      power: ``float[homes, minutes, devices]``, W, from the days one may learn from.

    Returns:
      ``Levels`` of ``float32[homes, devices]``; 0 and 0 where nothing was ever taken.

    Raises:
      ValueError: for another rank, or without a minute.

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
            f"power must be float[homes, minutes, devices] with a minute at least, got "
            f"shape {power.shape}."
        )
    rows = np.moveaxis(power, 1, 2).reshape(-1, power.shape[1])
    found = np.array([_levels(row) for row in rows], np.float32)
    standby, on = found.reshape(len(power), power.shape[2], 2).transpose(2, 0, 1)
    return Levels(standby, on)


def _levels(row):
    """(standby, on) of one device."""
    measured = row[row >= FLOOR_W].astype(np.float64)
    if not len(measured):
        return 0.0, 0.0
    border = np.exp(_otsu(np.log(measured)))
    low, high = measured[measured < border], measured[measured >= border]
    if len(high) and len(low) >= LEAST_SHARE * len(row):
        standby, on = np.median(low), np.median(high)
        if standby <= MOST_STANDBY_W and on >= LEAST_RATIO * standby:
            return standby, on
    return 0.0, np.median(measured)


def _otsu(values):
    """Where numbers are parted best; anywhere if they are all alike."""
    counts, edges = np.histogram(values, _BINS)
    middles = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(counts)[:-1]
    total = np.cumsum(counts * middles)[:-1]
    above = len(values) - below
    rest = np.sum(counts * middles) - total
    apart = total / np.maximum(below, 1) - rest / np.maximum(above, 1)
    between = below * above * apart**2
    # Every border of an empty stretch is as good: the middle one.
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))
    return edges[1 + best[len(best) // 2]]
