"""Markov decision process of switching a device every minute."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.energy.modes import FLOOR_W, OFF, ON, Levels, classify_mode
from jaxanon.kernels.checks import one_of, whole

# Table 2.1: [actual mode, chosen mode]; off, standby, on.
REWARDS = ((10.0, -10.0, -30.0), (30.0, 10.0, -10.0), (-30.0, -10.0, 10.0))

NUM_ACTIONS = 3

OBSERVED = {"power": 2, "modes": 6}  # Length of an observation.

_LOG_SCALE = 10.0  # Divisor of the logarithm: 1 kW gives 0.85, 1 W 0.18.


class Series(NamedTuple):
    """Forecast and load of one device; the parameters of its environment."""

    forecast: jax.Array  # float[minutes], W; forecast
    load: jax.Array  # float[minutes], W; power without switching
    levels: Levels  # float[] each


class Place(NamedTuple):
    """Position in an episode."""

    minute: jax.Array  # int32[], index into the series
    left: jax.Array  # int32[], minutes until the episode ends


class Environment(NamedTuple):
    """Environment with Gymnax's interface: pure functions of keys, states, parameters.

    ``reset(key, params) -> (observation, state)``; ``step(key, state, action, params)
    -> (observation, state, reward, done, info)``. After the last step of an episode,
    observation and state are those of the start of the next episode.
    """

    reset: Callable
    step: Callable
    num_actions: int
    num_observed: int


def observation(series: Series, minute, observed: str = "power"):
    """Returns the observation of a minute: its forecast and its load.

    Args:
      series: ``Series``.
      minute: ``int[]``; clipped to the series.
      observed: ``"power"`` for ``log(1 + W / 0.2) / 10`` of both, which separates 1 W
        from 1 kW; ``"modes"`` for both modes, one-hot.

    Returns:
      ``float32[2]`` or ``float32[6]``.

    Raises:
      ValueError: if ``observed`` is unknown.

    Example:
      >>> series = Series(jnp.array([50.0]), jnp.zeros(1), Levels(1.0, 50.0))
      >>> observation(series, 0, "modes")
      Array([0., 0., 1., 1., 0., 0.], dtype=float32)
    """
    one_of("observed", observed, tuple(OBSERVED))
    minute = jnp.clip(minute, 0, len(series.load) - 1)
    both = jnp.stack([series.forecast[minute], series.load[minute]])
    if observed == "modes":
        return jax.nn.one_hot(classify_mode(both, series.levels), 3).reshape(-1)
    scaled = jnp.log1p(jnp.maximum(both, 0) / FLOOR_W) / _LOG_SCALE
    return scaled.astype(jnp.float32)


def reward(mode, action):
    """Returns the rewards of Table 2.1.

    Keeping the mode gives +10, a change by one mode -10, by two modes -30. Switching
    off standby gives +30.

    Args:
      mode, action: ``int[...]`` in [0, 3), the same shape.

    Returns:
      ``float32[...]``.

    Example:
      >>> reward(jnp.array([1, 2]), jnp.array([0, 0]))
      Array([ 30., -30.], dtype=float32)
    """
    return jnp.asarray(REWARDS, jnp.float32)[mode, action]


def optimal_actions(mode):
    """Returns the optimal actions: "on" stays on, all other modes are switched off.

    Actions do not affect later minutes. The optimal action therefore has the highest
    immediate reward, for any discount.

    Args:
      mode: ``int[...]`` in [0, 3).

    Returns:
      ``int32[...]``.

    Example:
      >>> optimal_actions(jnp.array([0, 1, 2]))
      Array([0, 0, 2], dtype=int32)
    """
    return jnp.where(jnp.asarray(mode) == ON, ON, OFF).astype(jnp.int32)


def optimal_values(mode, discount):
    """Returns the exact value of every action in every minute, Bellman's fixed point.

    Args:
      mode: ``int[minutes]``, one whole episode in order.
      discount: ``float[]``.

    Returns:
      ``float32[minutes, 3]``; the value after the last minute is 0.

    Example:
      >>> optimal_values(jnp.array([2, 1]), 0.5)
      Array([[-15.,   5.,  25.],
             [ 30.,  10., -10.]], dtype=float32)
    """

    def backwards(after, rewards):
        values = rewards + discount * after
        return jnp.max(values), values

    each = jnp.asarray(REWARDS, jnp.float32)[mode]
    return jax.lax.scan(backwards, jnp.float32(0), each, reverse=True)[1]


def environment(minutes: int, observed: str = "power") -> Environment:
    """Builds an environment with episodes from random parts of a device's series.

    As in chapter 2, the state is the forecast and the actual load. Actions do not
    affect later states. For several devices or homes, ``vmap`` over the parameters, a
    ``Series`` with leading axes.

    Args:
      minutes: length of an episode, a Python int from 1 to the length of the series.
      observed: kind of observation, ``"power"`` or ``"modes"``.

    Returns:
      ``Environment``; ``info`` of a step has the actual ``"mode"``, ``int32[]``.

    Raises:
      ValueError: if ``minutes`` or ``observed`` is out of range; from ``reset`` and
        ``step``, if the series is shorter than an episode.

    Example:
      >>> env = environment(1, "modes")
      >>> series = Series(jnp.zeros(1), jnp.ones(1), Levels(1.0, 50.0))
      >>> _, state = env.reset(jax.random.key(0), series)
      >>> _, _, gained, done, _ = env.step(jax.random.key(1), state, 0, series)
      >>> gained, done
      (Array(30., dtype=float32), Array(True, dtype=bool))

    References:
      Lange, gymnax: a JAX-based reinforcement learning environment library, 2022, for
      the signatures; chapter 2, section 2.2.3, for the process.
    """
    length = whole("minutes", minutes, least=1)
    one_of("observed", observed, tuple(OBSERVED))

    def begin(key, series):
        spare = len(series.load) - length
        if spare < 0:
            raise ValueError(
                f"series must have at least {length} minutes, the length of an "
                f"episode, got {len(series.load)}; extend it or shorten the episodes."
            )
        start = jax.random.randint(key, (), 0, spare + 1)
        return Place(start, jnp.int32(length))

    def reset(key, params):
        state = begin(key, params)
        return observation(params, state.minute, observed), state

    def step(key, state, action, params):
        mode = classify_mode(params.load[state.minute], params.levels)
        gained = reward(mode, action)
        following = Place(state.minute + 1, state.left - 1)
        done = following.left <= 0
        restart = begin(key, params)
        after = jax.tree.map(lambda a, b: jnp.where(done, a, b), restart, following)
        seen = observation(params, after.minute, observed)
        return seen, after, gained, done, {"mode": mode}

    return Environment(reset, step, NUM_ACTIONS, OBSERVED[observed])
