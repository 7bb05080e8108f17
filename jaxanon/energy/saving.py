"""What switching saved, what that is worth, and whom it disturbed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.energy.modes import OFF, ON, STANDBY

FIXED_CENTS = 11.67  # A kWh in Texas on average, as chapter 2 has it.
CHEAPEST_CENTS, DEAREST_CENTS = 0.08, 20.0  # Of its variable plans.
CHEAPEST_HOUR = 4  # Ours: the chapter gives the range and no hours.
DAY = 1440


class Savings(NamedTuple):
    """Of every minute; sum over minutes, devices or homes as you like."""

    standby_wh: jax.Array  # float32[...]; taken in standby if nobody switches
    saved_wh: jax.Array  # float32[...]; of it, what being switched off saves
    in_use: jax.Array  # float32[...]; 1 where the device is on
    switched_off: jax.Array  # float32[...]; 1 where it is on and was switched off
    dimmed: jax.Array  # float32[...]; 1 where it is on and was put to standby


def savings(load, mode, action) -> Savings:
    """Counts what actions do to a load.

    Saved is what is taken in minutes when the device is in standby and was switched
    off. The paper's own ``load - forecast`` is the forecast's error, and no saving.

    Args:
      load: ``float[...]``, W, of minutes.
      mode, action: ``int[...]`` in [0, 3), of the same shape.

    Returns:
      ``Savings``, of the same shape.

    Raises:
      ValueError: if shapes differ.

    Example:
      Two minutes of standby of 6 W, one of them off; and a device switched off in use.

      >>> found = savings(
      ...     jnp.array([6.0, 6.0, 60.0]), jnp.array([1, 1, 2]), jnp.array([0, 1, 0]))
      >>> found.standby_wh.sum().round(3), found.saved_wh.sum().round(3)
      (Array(0.2, dtype=float32), Array(0.1, dtype=float32))
      >>> found.switched_off.sum()
      Array(1., dtype=float32)
    """
    load, mode, action = map(jnp.asarray, (load, mode, action))
    if not load.shape == mode.shape == action.shape:
        raise ValueError(
            f"load, mode and action must have one shape, got {load.shape}, "
            f"{mode.shape} and {action.shape}."
        )
    standby = jnp.where(mode == STANDBY, load / 60, 0).astype(jnp.float32)
    in_use = mode == ON
    count = lambda flags: flags.astype(jnp.float32)
    return Savings(
        standby_wh=standby,
        saved_wh=jnp.where(action == OFF, standby, 0),
        in_use=count(in_use),
        switched_off=count(in_use & (action == OFF)),
        dimmed=count(in_use & (action == STANDBY)),
    )


def share_of(part, whole, none=0.0):
    """Shares, on the host.

    Args:
      part, whole: ``float[...]``, of the same shape.
      none: what it is where there is nothing to be a share of.

    Returns:
      ``float64[...]``.

    Raises:
      ValueError: for shapes that differ and cannot be broadcast to that of ``part``.

    Example:
      >>> share_of([1.0, 0.0], [4.0, 0.0])
      array([0.25, 0.  ])
    """
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.full_like(part, none), where=whole > 0)


def saving_per_day(values):
    """Sums over whole days.

    Args:
      values: ``[..., days * 1440]``, minutes from midnight.

    Returns:
      ``[..., days]``.

    Raises:
      ValueError: if these are not whole days.

    Example:
      >>> saving_per_day(jnp.ones((3, 2880))).shape
      (3, 2)
    """
    return jnp.sum(_days(values), axis=-1)


def saving_per_hour(values):
    """Sums over all days by the hour of the day.

    Args:
      values: ``[..., days * 1440]``, minutes from midnight.

    Returns:
      ``[..., 24]``.

    Raises:
      ValueError: if these are not whole days.

    Example:
      >>> saving_per_hour(jnp.ones(2880))[0]
      Array(120., dtype=float32)
    """
    days = _days(values)
    return jnp.sum(days.reshape(*days.shape[:-1], 24, 60), axis=(-3, -1))


def cents(watt_hours, price):
    """What energy costs.

    Args:
      watt_hours: ``float[...]``.
      price: cents a kWh: one number, or ``float[...]`` of the same shape.

    Example:
      >>> cents(jnp.array([1000.0, 500.0]), jnp.array([8.0, 20.0]))
      Array([ 8., 10.], dtype=float32)
    """
    return watt_hours / 1000 * price


def variable_price(num_minutes: int):
    """A variable plan: a cosine of the day, cheapest at 4:00, dearest at 16:00.

    The range is the chapter's, 0.08 to 20 cents; the shape is ours, for it says only
    that the price depends on the time.

    Args:
      num_minutes: from midnight on.

    Returns:
      ``float32[num_minutes]``, cents a kWh.

    Example:
      >>> price = variable_price(1440)
      >>> price[4 * 60].round(2), price[16 * 60].round(2)
      (Array(0.08, dtype=float32), Array(20., dtype=float32))
    """
    since = (jnp.arange(num_minutes) - 60 * CHEAPEST_HOUR) / DAY
    rise = (1 - jnp.cos(2 * jnp.pi * since)) / 2
    return CHEAPEST_CENTS + (DEAREST_CENTS - CHEAPEST_CENTS) * rise


def _days(values):
    values = jnp.asarray(values)
    if values.ndim < 1 or not values.shape[-1] or values.shape[-1] % DAY:
        raise ValueError(
            f"values must be of whole days, [..., days * {DAY}], got shape "
            f"{values.shape}; leave out the rest."
        )
    return values.reshape(*values.shape[:-1], values.shape[-1] // DAY, DAY)
