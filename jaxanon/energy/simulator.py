"""Simulated households, for tests and large experiments."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.energy.modes import OFF, ON, STANDBY
from jaxanon.energy.saving import DAY
from jaxanon.kernels.checks import typed_key, whole

LEVEL_STD = 0.4  # Std of log power levels across homes.
HABIT_STD_MIN = 90.0  # Std of the shift of habits across homes.
METER_NOISE = 0.02  # Relative std of the meter noise.
UNPLUG_PROBABILITY = 1 / (2 * DAY)  # Per minute.


class Appliance(NamedTuple):
    """Kind of device; the values are our own rough estimates."""

    name: str
    standby_w: float
    on_w: float
    uses: float  # mean number per day
    minutes: float  # mean duration of a use
    peak_hour: float  # hour of the day with most uses


APPLIANCES = (
    Appliance("television", 1.5, 110.0, 2.0, 120.0, 20.0),
    Appliance("set-top box", 9.0, 60.0, 2.0, 100.0, 20.0),
    Appliance("games console", 2.0, 130.0, 1.0, 90.0, 18.0),
    Appliance("computer", 3.0, 80.0, 2.0, 150.0, 16.0),
    Appliance("coffee machine", 1.2, 700.0, 3.0, 8.0, 8.0),
    Appliance("microwave oven", 2.5, 1100.0, 3.0, 5.0, 12.0),
)


class Households(NamedTuple):
    """Power and actual modes of simulated devices."""

    power: jax.Array  # float32[homes, minutes, devices], W
    mode: jax.Array  # int32[homes, minutes, devices]
    standby_w: jax.Array  # float32[homes, devices]
    on_w: jax.Array  # float32[homes, devices]
    names: tuple[str, ...]


def households(
    key, num_homes: int, days: int, appliances: Sequence[Appliance] = APPLIANCES
) -> Households:
    """Simulates homes whose devices are switched on, used, and left in standby.

    Modes follow a Markov chain by minute. A device in use goes to standby with
    probability ``1 / minutes``. Otherwise its use starts ``uses`` times a day on
    average, with a weight of ``exp(2 cos(...))`` of the time of day around
    ``peak_hour``. Rarely it is unplugged until its next use. Homes differ in their
    levels (log-normal, 0.4) and in their habits (normal shift, 1.5 hours). Meters have
    2 percent noise.

    Args:
      key: typed PRNG key; home ``i`` uses ``fold_in(key, i)``, so its data do not
        depend on the number of homes.
      num_homes, days: at least 1.
      appliances: devices of every home.

    Returns:
      ``Households``, from midnight on.

    Raises:
      TypeError: if the key is not typed.
      ValueError: if a number is below 1, or ``appliances`` is empty.

    Example:
      >>> made_up = households(jax.random.key(0), 2, 1)
      >>> made_up.power.shape, made_up.names[0]
      ((2, 1440, 6), 'television')
    """
    typed_key(key)
    whole("num_homes", num_homes, least=1)
    whole("days", days, least=1)
    if not appliances:
        raise ValueError("appliances must not be empty; APPLIANCES has six.")
    numbers = jnp.array([one[1:] for one in appliances], jnp.float32)

    power, mode, standby, on = _simulated(key, numbers, num_homes, days)
    return Households(power, mode, standby, on, tuple(one.name for one in appliances))


@functools.partial(jax.jit, static_argnames=("num_homes", "days"))
def _simulated(key, numbers, num_homes, days):
    """Returns power, modes and levels of homes; compiled once per size."""

    def device(key, number):
        level_key, habit_key, chain_key, noise_key = jax.random.split(key, 4)
        standby, on, uses, minutes, peak = number
        factor = jnp.exp(LEVEL_STD * jax.random.normal(level_key, (2,)))
        shift = HABIT_STD_MIN * jax.random.normal(habit_key)
        time = jnp.arange(days * DAY)
        turn = 2 * jnp.pi * (time - 60 * peak - shift) / DAY
        weight = jnp.exp(2 * jnp.cos(turn))
        begins = (
            uses / DAY * weight / jnp.exp(2 * jnp.cos(2 * jnp.pi * time / DAY)).mean()
        )
        draws = jax.random.uniform(chain_key, (days * DAY,))
        mode = _chain(begins, 1 / minutes, draws)
        watts = jnp.stack([0.0, standby * factor[0], on * factor[1]])
        noise = 1 + METER_NOISE * jax.random.normal(noise_key, mode.shape)
        return watts[mode] * jnp.maximum(noise, 0), mode, watts[1], watts[2]

    def home(number):
        keys = jax.random.split(jax.random.fold_in(key, number), len(numbers))
        return jax.vmap(device, out_axes=(1, 1, 0, 0))(keys, numbers)

    return jax.vmap(home)(jnp.arange(num_homes))


def _chain(begins, ends, draws):
    """Returns the modes by minute, starting in standby, with one draw per minute."""

    def step(mode, inputs):
        begin, draw = inputs
        idle = jnp.where(draw > 1 - UNPLUG_PROBABILITY, OFF, mode)
        from_idle = jnp.where(draw < begin, ON, idle)
        from_on = jnp.where(draw < ends, STANDBY, ON)
        mode = jnp.where(mode == ON, from_on, from_idle).astype(jnp.int32)
        return mode, mode

    return jax.lax.scan(step, jnp.int32(STANDBY), (begins, draws))[1]
