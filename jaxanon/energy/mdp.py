"""Switching a device, minute by minute, as a Markov decision process."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.energy.modes import FLOOR_W, OFF, ON, Levels, mode_of
from jaxanon.kernels.checks import one_of, whole

# Table 2.1: [mode it is in, mode chosen], off, standby and on.
REWARDS = ((10.0, -10.0, -30.0), (30.0, 10.0, -10.0), (-30.0, -10.0, 10.0))

NUM_ACTIONS = 3

OBSERVED = {"power": 2, "modes": 6}  # Numbers of an observation.

_LOG_SCALE = 10.0  # 1 kW is 0.85, standby of 1 W 0.18.


class Series(NamedTuple):
    """What one device goes through; the parameters of its environment."""

    forecast: jax.Array  # float[minutes], W; what was predicted
    load: jax.Array  # float[minutes], W; what it takes if nobody switches it
    levels: Levels  # float[] each


class Place(NamedTuple):
    """Where an episode is."""

    minute: jax.Array  # int32[], of the series
    left: jax.Array  # int32[], minutes until the episode ends


class Environment(NamedTuple):
    """An environment as Gymnax has them: pure functions of keys, states, parameters.

    ``reset(key, params) -> (observation, state)``; ``step(key, state, action, params)
    -> (observation, state, reward, done, info)``, where after an episode's last step
    the observation and the state are those of the next one's beginning.
    """

    reset: Callable
    step: Callable
    num_actions: int
    num_observed: int


def observation(series: Series, minute, observed: str = "power"):
    """What an agent sees of a minute: what was predicted for it, and what it takes.

    Args:
      series: ``Series``.
      minute: ``int[]``; held inside the series.
      observed: ``"power"`` is ``log(1 + W / 0.2) / 10`` of both, so that 1 W and 1 kW
        stay apart; ``"modes"`` the two modes, one-hot.

    Returns:
      ``float32[2]`` or ``float32[6]``.

    Raises:
      ValueError: for another ``observed``.

    Example:
      >>> series = Series(jnp.array([50.0]), jnp.zeros(1), Levels(1.0, 50.0))
      >>> observation(series, 0, "modes")
      Array([0., 0., 1., 1., 0., 0.], dtype=float32)
    """
    one_of("observed", observed, tuple(OBSERVED))
    minute = jnp.clip(minute, 0, len(series.load) - 1)
    both = jnp.stack([series.forecast[minute], series.load[minute]])
    if observed == "modes":
        return jax.nn.one_hot(mode_of(both, series.levels), 3).reshape(-1)
    scaled = jnp.log1p(jnp.maximum(both, 0) / FLOOR_W) / _LOG_SCALE
    return scaled.astype(jnp.float32)


def reward(mode, action):
    """Table 2.1: +10 for leaving it as it is, -30 and -10 for two modes and one off.

    But +30 for standby that is switched off.

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
    """The best that can be done: what is on stays on, all else is off.

    No action changes what comes, so the best one is that of the highest reward now,
    whatever the discount.

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
    """Bellman's fixed point: what every action of every minute is worth, exactly.

    Args:
      mode: ``int[minutes]``, of a whole episode in order.
      discount: ``float[]``.

    Returns:
      ``float32[minutes, 3]``; after the last minute nothing comes.

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
    """Episodes of so many minutes that begin anywhere in a device's series.

    The state is what chapter 2 says: forecast and real load. Which mode an agent
    chooses changes nothing that comes after. Several devices or homes are ``vmap`` over
    the parameters, a ``Series`` with leading axes.

    Args:
      minutes: of an episode; a Python int >= 1, at most those of the series.
      observed: of ``observation``.

    Returns:
      ``Environment``; ``info`` of a step has the real ``"mode"``, ``int32[]``.

    Raises:
      ValueError: for fewer than one minute, or another ``observed``; from ``reset`` and
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
                f"an episode has {length} minutes, and the series {len(series.load)}; "
                "give a longer series or make the environment for fewer minutes."
            )
        start = jax.random.randint(key, (), 0, spare + 1)
        return Place(start, jnp.int32(length))

    def reset(key, params):
        state = begin(key, params)
        return observation(params, state.minute, observed), state

    def step(key, state, action, params):
        mode = mode_of(params.load[state.minute], params.levels)
        gained = reward(mode, action)
        going_on = Place(state.minute + 1, state.left - 1)
        done = going_on.left <= 0
        anew = begin(key, params)
        after = jax.tree.map(lambda a, b: jnp.where(done, a, b), anew, going_on)
        seen = observation(params, after.minute, observed)
        return seen, after, gained, done, {"mode": mode}

    return Environment(reset, step, NUM_ACTIONS, OBSERVED[observed])
