"""One time slot of an agent: forecasts, actions and training."""

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
from jaxanon.energy.modes import Levels, classify_mode
from jaxanon.energy.q_learning import Agent, AgentState, greedy
from jaxanon.energy.saving import savings
from jaxanon.models.predictors import Predictor


class Parts(NamedTuple):
    """Components from which a method's programs are built."""

    config: PFDRLConfig
    model: Forecaster
    net: Predictor
    agent: Agent


class Home(NamedTuple):
    """Data of one agent of a neighborhood."""

    power: jax.Array  # float[minutes], W
    scale: jax.Array  # float[]
    levels: Levels  # float[] each
    present: jax.Array  # bool[]


class AgentRecord(NamedTuple):
    """Loads, forecasts and actions of a device by minute; ``[..., slot_min]``."""

    load: jax.Array  # float32, W; power without switching
    forecast: jax.Array  # float32, W
    persistence: jax.Array  # float32, W; forecast: the last value
    mode: jax.Array  # int32; actual mode
    action: jax.Array  # int32; greedy action of the agent


def forecast_slot(parts: Parts, layers, home: Home, slot) -> Series:
    """Returns the forecasts and loads of a slot.

    The last minute of the slot is repeated as its own successor, because the next
    minute has not happened yet when the agent trains.

    Args:
      parts: components of the method.
      layers: layers of the forecaster.
      home: data of one agent.
      slot: index of the slot, ``int[]`` from 0.

    Returns:
      ``Series``, each array ``[slot_min + 1]``.
    """
    length = parts.config.slot_min + 1
    within = jnp.minimum(jnp.arange(length), length - 2)
    minute = slot * parts.config.slot_min + within
    ends, _ = _forecast_starts(parts.config, slot)
    trace = Trace(home.power, home.scale)
    forecast = parts.model.predict(layers, trace, ends).reshape(-1)[within]
    load = home.power[jnp.minimum(minute, len(home.power) - 1)]
    return Series(forecast, load, home.levels)


def act_in_slot(parts: Parts, series: Series, params, home: Home, slot) -> AgentRecord:
    """Returns the actions of an agent in a slot, without training.

    Args:
      parts: components of the method.
      series: ``forecast_slot`` of the same home and slot.
      params: parameters of the Q-network.
      home: data of one agent.
      slot: index of the slot, ``int[]`` from 0.

    Returns:
      ``AgentRecord``, each array ``[slot_min]``.
    """
    minutes = jnp.arange(parts.config.slot_min)
    see = lambda minute: observation(series, minute, parts.config.observed)
    action = greedy(parts.net, params, jax.vmap(see)(minutes))
    load = series.load[:-1]
    last_value = persistence(
        Trace(home.power, home.scale), *_forecast_starts(parts.config, slot)
    )
    return AgentRecord(
        load=load,
        forecast=series.forecast[:-1],
        persistence=last_value.reshape(-1)[: len(minutes)],
        mode=classify_mode(load, home.levels),
        action=action,
    )


def train_agent(parts: Parts, key, series: Series, control: AgentState):
    """Trains the Q-network of an agent on one slot.

    The agent's environments are equal, consecutive parts of the slot.

    Args:
      parts: components of the method.
      key: typed PRNG key for this slot and agent.
      series: ``forecast_slot`` of the slot.
      control: state of the agent.

    Returns:
      The new state of the agent, and its mean reward, ``float[]``.
    """
    config = parts.config
    length = config.slot_min // config.dqn.num_envs
    # Parts are consecutive, so no episode ends within a slot.
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


def train_forecaster(parts: Parts, key, fit, home: Home, slot, rate):
    """Trains a forecaster for one slot, on all minutes up to the end of the slot.

    Args:
      parts: components of the method.
      key: typed PRNG key for this slot and agent.
      fit: state of the forecaster.
      home: data of one agent.
      slot: index of the slot, ``int[]`` from 0.
      rate: learning rate, ``float[]``.

    Returns:
      The new ``FitState``.
    """

    def one(fit, _):
        _, gradient = slot_gradient(parts, key, fit, home, slot)
        return fit_step(fit, gradient, rate), None

    return jax.lax.scan(one, fit, length=parts.config.forecaster_steps)[0]


def slot_gradient(parts: Parts, key, fit, home: Home, slot):
    """Returns the loss, ``float[]``, and gradient of one forecaster step.

    Args:
      parts, key, fit, home, slot: the arguments of ``train_forecaster``.
    """
    known = 0, (slot + 1) * parts.config.slot_min
    trace, batch_size = (
        Trace(home.power, home.scale),
        parts.config.forecaster_batch_size,
    )
    return fit_gradient(key, parts.model, fit, trace, known, batch_size)


def summarize_slot(did: AgentRecord, present) -> dict[str, jax.Array]:
    """Returns sums over the minutes of a slot, 0 for absent devices.

    Args:
      did: ``AgentRecord``.
      present: ``bool[...]``, whether the home has the device.

    Returns:
      The fields of ``Savings``; ``optimal``, the number of minutes with the best
      action; ``minutes``; ``forecast_error`` and ``held_error``, sums of absolute
      errors in W of the forecaster and of persistence. Their ratio is the MASE.

    Example:
      >>> one = jnp.ones((1, 1))
      >>> mode, action = jnp.array([[1]]), jnp.array([[0]])
      >>> did = AgentRecord(60 * one, 57 * one, 50 * one, mode, action)
      >>> sums = summarize_slot(did, jnp.array([True]))
      >>> sums["saved_wh"], sums["forecast_error"]
      (Array([1.], dtype=float32), Array([3.], dtype=float32))
    """
    each = savings(did.load, did.mode, did.action)._asdict()
    each |= {
        "optimal": did.action == optimal_actions(did.mode),
        "minutes": jnp.ones_like(did.load),
        "forecast_error": jnp.abs(did.forecast - did.load),
        "held_error": jnp.abs(did.persistence - did.load),
    }
    total = lambda one: jnp.where(present, jnp.sum(one.astype(jnp.float32), -1), 0)
    return {name: total(one) for name, one in each.items()}


def _forecast_starts(config, slot):
    """Returns the first minutes of a slot's forecasts, and the forecast length."""
    ahead = config.forecast.ahead
    number = -(-config.slot_min // ahead)
    return slot * config.slot_min + ahead * jnp.arange(number), ahead
