"""Households that are made up, for tests and for scale."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.energy.modes import OFF, ON, STANDBY
from jaxanon.energy.saving import DAY
from jaxanon.kernels.checks import typed_key, whole

SPREAD = 0.4  # Of the logarithm of levels, from home to home.
SHIFT_MIN = 90.0  # Of habits, from home to home.
NOISE = 0.02  # Of what is metered.
UNPLUGGED = 1 / (2 * DAY)  # A minute's probability that somebody pulls the plug.


class Appliance(NamedTuple):
    """A kind of device; our own round figures, taken from no survey."""

    name: str
    standby_w: float
    on_w: float
    uses: float  # a day, on average
    minutes: float  # of a use, on average
    peak_hour: float  # of the day, about which uses gather


APPLIANCES = (
    Appliance("television", 1.5, 110.0, 2.0, 120.0, 20.0),
    Appliance("set-top box", 9.0, 60.0, 2.0, 100.0, 20.0),
    Appliance("games console", 2.0, 130.0, 1.0, 90.0, 18.0),
    Appliance("computer", 3.0, 80.0, 2.0, 150.0, 16.0),
    Appliance("coffee machine", 1.2, 700.0, 3.0, 8.0, 8.0),
    Appliance("microwave oven", 2.5, 1100.0, 3.0, 5.0, 12.0),
)


class Households(NamedTuple):
    """What made-up devices take, and in which modes they truly are."""

    power: jax.Array  # float32[homes, minutes, devices], W
    mode: jax.Array  # int32[homes, minutes, devices]
    standby_w: jax.Array  # float32[homes, devices]
    on_w: jax.Array  # float32[homes, devices]
    names: tuple[str, ...]


def households(
    key, num_homes: int, days: int, appliances: Sequence[Appliance] = APPLIANCES
) -> Households:
    """Homes whose devices are switched on, used, and left in standby.

    Every minute of a device is drawn from the one before (a Markov chain). In use it
    stops with probability ``1 / minutes``, and then stands by. Else somebody begins to
    use it, ``uses`` times a day, with a weight of ``exp(2 cos(...))`` of the time of
    day about ``peak_hour``; now and then the plug is pulled until the next use. Every
    home has levels of its own (log-normal, 0.4) and habits that are shifted (normal,
    1.5 hours), and meters read 2 percent of noise.

    Args:
      key: typed PRNG key; a home's is ``fold_in(key, number)``, so that the first homes
        of many are the homes of few.
      num_homes, days: at least 1.
      appliances: what every home has one of each of.

    Returns:
      ``Households``, from midnight on.

    Raises:
      TypeError: for a key that is not typed.
      ValueError: if a number is below 1, or there is no appliance.

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
    """Power, mode and levels of homes; compiled once for all keys of a size."""

    def device(key, number):
        level_key, habit_key, chain_key, noise_key = jax.random.split(key, 4)
        standby, on, uses, minutes, peak = number
        factor = jnp.exp(SPREAD * jax.random.normal(level_key, (2,)))
        shift = SHIFT_MIN * jax.random.normal(habit_key)
        time = jnp.arange(days * DAY)
        turn = 2 * jnp.pi * (time - 60 * peak - shift) / DAY
        weight = jnp.exp(2 * jnp.cos(turn))
        begins = (
            uses / DAY * weight / jnp.exp(2 * jnp.cos(2 * jnp.pi * time / DAY)).mean()
        )
        draws = jax.random.uniform(chain_key, (days * DAY,))
        mode = _chain(begins, 1 / minutes, draws)
        watts = jnp.stack([0.0, standby * factor[0], on * factor[1]])
        noise = 1 + NOISE * jax.random.normal(noise_key, mode.shape)
        return watts[mode] * jnp.maximum(noise, 0), mode, watts[1], watts[2]

    def home(number):
        keys = jax.random.split(jax.random.fold_in(key, number), len(numbers))
        return jax.vmap(device, out_axes=(1, 1, 0, 0))(keys, numbers)

    return jax.vmap(home)(jnp.arange(num_homes))


def _chain(begins, ends, draws):
    """Modes minute by minute, from standby: one draw decides each."""

    def step(mode, inputs):
        begin, draw = inputs
        idle = jnp.where(draw > 1 - UNPLUGGED, OFF, mode)
        from_idle = jnp.where(draw < begin, ON, idle)
        from_on = jnp.where(draw < ends, STANDBY, ON)
        mode = jnp.where(mode == ON, from_on, from_idle).astype(jnp.int32)
        return mode, mode

    return jax.lax.scan(step, jnp.int32(STANDBY), (begins, draws))[1]
