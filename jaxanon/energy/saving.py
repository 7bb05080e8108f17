"""Energy and money saved by switching off standby, and minutes of use disturbed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.energy.modes import OFF, ON, STANDBY

FIXED_CENTS = 11.67  # Average price of a kWh in Texas, from chapter 2.
CHEAPEST_CENTS, DEAREST_CENTS = 0.08, 20.0  # Range of the variable tariffs.
CHEAPEST_HOUR = 4  # Our choice; the chapter gives only the range.
DAY = 1440


class Savings(NamedTuple):
    """Savings per minute; sum over minutes, devices or homes as needed."""

    standby_wh: jax.Array  # float32[...]; standby energy without switching
    saved_wh: jax.Array  # float32[...]; standby energy saved
    in_use: jax.Array  # float32[...]; 1 where the device is on
    switched_off: jax.Array  # float32[...]; 1 where it is on but switched off
    dimmed: jax.Array  # float32[...]; 1 where it is on but put in standby


def savings(load, mode, action) -> Savings:
    """Returns the effect of actions on a load.

    Energy is saved in the minutes when the device is in standby and switched off. The
    paper's ``load - forecast`` is the forecast error instead.

    Args:
      load: ``float[...]``, W, per minute.
      mode, action: ``int[...]`` in [0, 3), of the same shape.

    Returns:
      ``Savings`` of the same shape.

    Raises:
      ValueError: if shapes differ.

    Example:
      Two minutes of standby at 6 W, one switched off; one minute of use switched off.

      >>> saved = savings(
      ...     jnp.array([6.0, 6.0, 60.0]), jnp.array([1, 1, 2]), jnp.array([0, 1, 0]))
      >>> saved.standby_wh.sum().round(3), saved.saved_wh.sum().round(3)
      (Array(0.2, dtype=float32), Array(0.1, dtype=float32))
      >>> saved.switched_off.sum()
      Array(1., dtype=float32)
    """
    load, mode, action = map(jnp.asarray, (load, mode, action))
    if not load.shape == mode.shape == action.shape:
        raise ValueError(
            f"load, mode and action must have the same shape, got {load.shape}, "
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


def safe_divide(part, whole, default=0.0):
    """Divides on the host, with a default where the denominator is 0.

    Args:
      part, whole: ``float[...]``, of the same shape.
      default: result where ``whole`` is 0.

    Returns:
      ``float64[...]``.

    Raises:
      ValueError: if ``whole`` does not broadcast to the shape of ``part``.

    Example:
      >>> safe_divide([1.0, 0.0], [4.0, 0.0])
      array([0.25, 0.  ])
    """
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.full_like(part, default), where=whole > 0)


def saving_per_day(values):
    """Returns sums over whole days.

    Args:
      values: ``[..., days * 1440]``, minutes from midnight.

    Returns:
      ``[..., days]``.

    Raises:
      ValueError: if ``values`` does not consist of whole days.

    Example:
      >>> saving_per_day(jnp.ones((3, 2880))).shape
      (3, 2)
    """
    return jnp.sum(_days(values), axis=-1)


def saving_per_hour(values):
    """Returns sums over all days for each hour of the day.

    Args:
      values: ``[..., days * 1440]``, minutes from midnight.

    Returns:
      ``[..., 24]``.

    Raises:
      ValueError: if ``values`` does not consist of whole days.

    Example:
      >>> saving_per_hour(jnp.ones(2880))[0]
      Array(120., dtype=float32)
    """
    days = _days(values)
    return jnp.sum(days.reshape(*days.shape[:-1], 24, 60), axis=(-3, -1))


def cents(watt_hours, price):
    """Returns the cost of energy.

    Args:
      watt_hours: ``float[...]``.
      price: cents per kWh, a scalar or ``float[...]`` of the same shape.

    Example:
      >>> cents(jnp.array([1000.0, 500.0]), jnp.array([8.0, 20.0]))
      Array([ 8., 10.], dtype=float32)
    """
    return watt_hours / 1000 * price


def variable_price(num_minutes: int):
    """Returns a variable tariff, a daily cosine: lowest at 4:00, highest at 16:00.

    The range is that of the chapter, 0.08 to 20 cents. The shape is our choice, because
    the chapter says only that the price depends on the time.

    Args:
      num_minutes: number of minutes from midnight.

    Returns:
      ``float32[num_minutes]``, cents per kWh.

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
            f"values must have whole days, shape [..., days * {DAY}], got "
            f"{values.shape}; drop the incomplete day."
        )
    return values.reshape(*values.shape[:-1], values.shape[-1] // DAY, DAY)
