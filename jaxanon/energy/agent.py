"""One agent's slot: what it forecasts, does, and learns of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.energy.config import PFDRLConfig
from jaxanon.energy.forecasting import (
    Forecaster,
    Trace,
    fit_gradient,
    fit_step,
    persistence,
)
from jaxanon.energy.mdp import Place, Series, observation, optimal_actions
from jaxanon.energy.modes import Levels, mode_of
from jaxanon.energy.q_learning import Agent, AgentState, greedy
from jaxanon.energy.saving import savings
from jaxanon.models.predictors import Predictor


class Parts(NamedTuple):
    """What a method's programs are made of."""

    config: PFDRLConfig
    model: Forecaster
    net: Predictor
    agent: Agent


class Home(NamedTuple):
    """What one agent has of a street."""

    power: jax.Array  # float[minutes], W
    scale: jax.Array  # float[]
    levels: Levels  # float[] each
    present: jax.Array  # bool[]


class Acted(NamedTuple):
    """A slot of a device, minute by minute; ``[..., slot_min]``."""

    load: jax.Array  # float32, W; what it takes if nobody switches it
    forecast: jax.Array  # float32, W
    held: jax.Array  # float32, W; the forecast that nothing changes
    mode: jax.Array  # int32; what it is in
    action: jax.Array  # int32; what the agent chose, at its best


def series_of(parts: Parts, layers, home: Home, slot) -> Series:
    """What an agent has before it in a slot: forecasts, and loads as they turn out.

    The slot's last minute is there again, which that one leads to: when an agent
    learns, the minute after the slot has not happened yet.

    Args:
      parts, home, slot: of ``acted``.
      layers: of the forecaster.

    Returns:
      ``Series``, ``[slot_min + 1]`` each.
    """
    length = parts.config.slot_min + 1
    within = jnp.minimum(jnp.arange(length), length - 2)
    minute = slot * parts.config.slot_min + within
    ends, _ = _asked(parts.config, slot)
    trace = Trace(home.power, home.scale)
    forecast = parts.model.predict(layers, trace, ends).reshape(-1)[within]
    load = home.power[jnp.minimum(minute, len(home.power) - 1)]
    return Series(forecast, load, home.levels)


def acted(parts: Parts, series: Series, params, home: Home, slot) -> Acted:
    """What an agent does in a slot, with models that stay as they are.

    Args:
      parts: ``Parts``.
      series: of ``series_of``, of the same home and slot.
      params: of the Q-network.
      home: ``Home``, of one agent.
      slot: ``int[]``, from 0.

    Returns:
      ``Acted``, ``[slot_min]`` each.
    """
    minutes = jnp.arange(parts.config.slot_min)
    see = lambda minute: observation(series, minute, parts.config.observed)
    action = greedy(parts.net, params, jax.vmap(see)(minutes))
    load = series.load[:-1]
    held = persistence(Trace(home.power, home.scale), *_asked(parts.config, slot))
    return Acted(
        load=load,
        forecast=series.forecast[:-1],
        held=held.reshape(-1)[: len(minutes)],
        mode=mode_of(load, home.levels),
        action=action,
    )


def learned(parts: Parts, key, series: Series, control: AgentState):
    """A slot's steps of the agent, whose environments are stretches of it.

    Args:
      parts, series: of ``acted``.
      key: typed PRNG key, of the run's slot and this agent.
      control: ``AgentState``.

    Returns:
      The agent's state, and its mean reward, ``float[]``.
    """
    config = parts.config
    length = config.slot_min // config.dqn.num_envs
    # A stretch's last minute leads to the next one's first: nothing ends in a slot.
    place = Place(
        minute=length * jnp.arange(config.dqn.num_envs),
        left=jnp.full(config.dqn.num_envs, config.slot_min + 1),
    )
    see = lambda minute: observation(series, minute, config.observed)
    control = control._replace(
        place=jax.tree.map(lambda leaf: leaf.astype(jnp.int32), place),
        observation=jax.vmap(see)(place.minute),
    )

    def one(control, _):
        return parts.agent.update(key, control, series)

    control, info = jax.lax.scan(one, control, length=length)
    return control, jnp.mean(info["reward"])


def fitted(parts: Parts, key, fit, home: Home, slot, rate):
    """A slot's learning steps of a forecaster, of all minutes until its end.

    Args:
      parts, home, slot: of ``acted``.
      key: of ``learned``.
      fit: ``FitState``.
      rate: ``float[]``.

    Returns:
      ``FitState``.
    """

    def one(fit, _):
        _, gradient = slot_gradient(parts, key, fit, home, slot)
        return fit_step(fit, gradient, rate), None

    return jax.lax.scan(one, fit, length=parts.config.forecaster_steps)[0]


def slot_gradient(parts: Parts, key, fit, home: Home, slot):
    """The loss, ``float[]``, and gradient of one learning step of a forecaster.

    Args:
      parts, key, fit, home, slot: of ``fitted``.
    """
    known = 0, (slot + 1) * parts.config.slot_min
    trace, batch_size = (
        Trace(home.power, home.scale),
        parts.config.forecaster_batch_size,
    )
    return fit_gradient(key, parts.model, fit, trace, known, batch_size)


def measured(did: Acted, present) -> dict[str, jax.Array]:
    """Sums over a slot's minutes, 0 of a device that is not there.

    Args:
      did: ``Acted``.
      present: ``bool[...]``.

    Returns:
      The fields of ``Savings``; ``optimal``, minutes in which the action was the best
      there is, and ``minutes``; ``forecast_error`` and ``held_error``, absolute errors
      in W, summed up: their ratio is the MASE.

    Example:
      >>> one = jnp.ones((1, 1))
      >>> did = Acted(60 * one, 57 * one, 50 * one, jnp.array([[1]]), jnp.array([[0]]))
      >>> found = measured(did, jnp.array([True]))
      >>> found["saved_wh"], found["forecast_error"]
      (Array([1.], dtype=float32), Array([3.], dtype=float32))
    """
    each = savings(did.load, did.mode, did.action)._asdict()
    each |= {
        "optimal": did.action == optimal_actions(did.mode),
        "minutes": jnp.ones_like(did.load),
        "forecast_error": jnp.abs(did.forecast - did.load),
        "held_error": jnp.abs(did.held - did.load),
    }
    total = lambda one: jnp.where(present, jnp.sum(one.astype(jnp.float32), -1), 0)
    return {name: total(one) for name, one in each.items()}


def _asked(config, slot):
    """The minutes from which forecasts of a slot begin, and how long they are."""
    ahead = config.forecast.ahead
    number = -(-config.slot_min // ahead)
    return slot * config.slot_min + ahead * jnp.arange(number), ahead
