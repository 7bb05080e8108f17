"""PFDRL and what it is compared with: a street that forecasts, switches and shares."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import federated
from jaxanon.energy import slots
from jaxanon.energy.forecasting import FitState, begin_fit, fit_step, forecaster
from jaxanon.energy.pfdrl_config import METHODS, PFDRLConfig
from jaxanon.energy.q_learning import HYPER as DQN_HYPER
from jaxanon.energy.q_learning import AgentState, dqn
from jaxanon.energy.street import Street
from jaxanon.energy.switching import NUM_ACTIONS, OBSERVED, Series, environment
from jaxanon.kernels.checks import known
from jaxanon.models.q_network import q_network

HYPER = {"alpha": 6, "beta_hours": 12.0, "gamma_hours": 12.0, "fit_rate": 5e-3}


class SystemState(NamedTuple):
    """All that changes from slot to slot, and so all that is checkpointed."""

    slot: jax.Array  # int32[]; slots done
    fits: FitState  # [agents, ...]
    control: AgentState  # [agents, ...]
    fit_mail: Any  # a Mailbox where forecasters are exchanged
    control_mail: Any
    hyper: dict[str, jax.Array]  # float[] each; what a sweep varies


class System(NamedTuple):
    """A method for streets.

    ``init(key, street, **hyper) -> SystemState``; ``update(key, state, street) ->
    (state, info)`` is a slot, given the run's key, which may be jitted, scanned, and
    vmapped over states; ``act(state, street, slot) -> Acted`` is what agents would do
    in slot number ``slot`` with models as they are, ``[agents, slot_min]``: on days
    that they have not seen that is their test; ``shared(state) -> (forecaster,
    control)`` says of each layer of both models whether agents share it, ``bool[]``.
    """

    init: Callable
    update: Callable
    act: Callable
    shared: Callable


def pfdrl(config: PFDRLConfig) -> System:
    """Homes that learn to switch standby off, by one of the five methods.

    In a slot every agent forecasts its device's minutes, acts on them and learns from
    what it did, then learns to forecast from all minutes until now. After
    every ``beta_hours`` forecasters are exchanged and after every ``gamma_hours``
    Q-networks, as the method says. All agents begin with the same networks. Target
    networks are renewed every so many learning steps, and not by an exchange.

    Hyper-parameters are ``init``'s, and a sweep's by ``vmap``: ``alpha`` (6), layers of
    the Q-network that are shared by ``"pfdrl"``; ``beta_hours`` and ``gamma_hours``
    (12), rounded to whole slots; ``fit_rate`` (0.005); those of ``dqn``.

    Args:
      config: ``PFDRLConfig``.

    Returns:
      ``System``. ``info`` has what ``measured`` has, of agents at their best before the
      slot taught them, and ``reward``, each ``float32[agents]``.

    Raises:
      TypeError: from ``init``, for a hyper-parameter that there is not.
      ValueError: from ``init``, for an ``alpha`` of more layers than there are, or for
        hours of less than a slot.

    Example:
      >>> import numpy as np
      >>> from jaxanon import energy
      >>> small = PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden=(8, 8), slot_min=10)
      >>> system = pfdrl(small)
      >>> minutes = np.tile([0.0] * 30 + [2.0] * 60 + [80.0] * 30, 12)
      >>> homes = energy.street(np.stack([minutes, 1.5 * minutes])[:, :, None])
      >>> state = system.init(jax.random.key(0), homes, alpha=2)
      >>> state, info = energy.live(system, jax.random.key(1), state, homes, 6)
      >>> info["minutes"].shape, info["standby_wh"].sum(axis=0).round(2)
      ((6, 2), Array([1. , 1.5], dtype=float32))

    References:
      Chapter 2, algorithms 1 and 2. Layers are averaged, as by McMahan et al., AISTATS
      2017: equation 2.7 adds up gradients that were taken at different weights.
    """
    how = METHODS[config.method]
    net = q_network(OBSERVED[config.observed], NUM_ACTIONS, config.hidden)
    # An episode of a minute more than a slot: none ends inside it.
    env = environment(config.slot_min + 1, config.observed)
    agent = dqn(env, net, config.dqn)
    parts = slots.Parts(config, forecaster(config.forecast), net, agent)
    each = functools.partial(_each, config)

    def shared_forecast(layers):
        return {name: True for name in layers}

    def shared_control(hyper):
        whole = how.control == "server"
        alpha = len(net.layers) if whole else hyper["alpha"]
        return federated.base_layers(net.layers, alpha)

    def init(key, street: Street, **hyper):
        _check_hyper(config, len(net.layers), hyper)
        fit_key, control_key = jax.random.split(key)
        agents = len(street.power)
        layers = parts.model.init(fit_key)
        everyone = lambda leaf: jnp.repeat(leaf[None], agents, axis=0)
        fits = jax.tree.map(everyone, begin_fit(layers))
        of_dqn = {name: hyper.pop(name) for name in DQN_HYPER if name in hyper}
        blank = jnp.zeros(config.slot_min + 1)
        nowhere = Series(
            blank, blank, jax.tree.map(lambda leaf: leaf[0], street.levels)
        )
        control = agent.init(control_key, nowhere, **of_dqn)
        control = jax.tree.map(everyone, control)
        to_array = lambda value: jnp.asarray(value, jnp.float32)
        hyper = {name: to_array(value) for name, value in (HYPER | hyper).items()}
        mail = functools.partial(_mail, config)
        return SystemState(
            slot=jnp.zeros((), jnp.int32),
            fits=fits,
            control=control,
            fit_mail=mail(how.forecast, fits.layers, shared_forecast(layers)),
            control_mail=mail(how.control, control.params, shared_control(hyper)),
            hyper=hyper,
        )

    def shared(state):
        forecaster = dict.fromkeys(state.fits.layers, how.forecast != "nothing")
        control = dict.fromkeys(net.layers, False)
        return forecaster, (
            control if how.control == "nothing" else shared_control(state.hyper)
        )

    def homes_of(street):
        return slots.Home(street.power, street.scale, street.levels, street.present)

    def act(state, street, slot):
        def one(inputs):
            layers, params, home = inputs
            return slots.acted(parts, layers, params, home, slot)

        return each(one)((state.fits.layers, state.control.params, homes_of(street)))

    def update(key, state, street):
        slot, rate = state.slot, state.hyper["fit_rate"]
        slot_key = jax.random.fold_in(key, slot)
        fit_key, act_key, fit_mail_key, control_mail_key = jax.random.split(slot_key, 4)
        numbers, homes = street.number, homes_of(street)

        def one(inputs):
            number, fit, control, home = inputs
            did = slots.acted(parts, fit.layers, control.params, home, slot)
            info = slots.measured(did, home.present)
            own_key = jax.random.fold_in(act_key, number)
            control, reward = slots.learned(
                parts, own_key, fit.layers, control, home, slot
            )
            if how.forecast != "data":
                own_key = jax.random.fold_in(fit_key, number)
                fit = slots.fitted(parts, own_key, fit, home, slot, rate)
            reward = jnp.where(home.present, reward, 0)
            return fit, control, info | {"reward": reward}

        fits, control, info = each(one)((numbers, state.fits, state.control, homes))
        if how.forecast == "data":
            fits = pooled(fit_key, fits, street, slot, rate)
        layers, fit_mail = exchanged(
            fit_mail_key, how.forecast, "beta_hours", state, state.fit_mail,
            fits.layers, shared_forecast(fits.layers), street,
        )  # fmt: skip
        params, control_mail = exchanged(
            control_mail_key, how.control, "gamma_hours", state, state.control_mail,
            control.params, shared_control(state.hyper), street,
        )  # fmt: skip
        state = SystemState(
            slot=slot + 1,
            fits=fits._replace(layers=layers),
            control=control._replace(params=params),
            fit_mail=fit_mail,
            control_mail=control_mail,
            hyper=state.hyper,
        )
        return state, info

    def pooled(key, fits, street, slot, rate):
        """Learning steps that all of a kind take together, on everybody's minutes."""
        numbers, homes = street.number, homes_of(street)

        def gradient(inputs):
            number, fit, home = inputs
            own_key = jax.random.fold_in(key, number)
            return slots.slot_gradient(parts, own_key, fit, home, slot)[1]

        def one(fits, _):
            gradients = each(gradient)((numbers, fits, homes))
            mean = federated.mix(street.everybody, gradients)
            return jax.vmap(fit_step, in_axes=(0, 0, None))(fits, mean, rate), None

        return jax.lax.scan(one, fits, length=config.fit_steps)[0]

    def exchanged(key, sharing, period, state, mail, layers, shared, street):
        if sharing in ("nothing", "data"):
            return layers, mail
        by_server = sharing == "server"
        every = jnp.round(state.hyper[period] * 60 / config.slot_min)
        every = jnp.maximum(every, 1).astype(jnp.int32)
        mixing = street.everybody if by_server else street.neighbours
        speak, settings = federated.exchange_every, {"shared": shared}
        if not by_server:
            settings["messages"] = config.messages
            if config.noise_multiplier:
                speak = federated.exchange_noisily_every
                settings |= _noise(config) | {"numbers": street.number}
        mail, layers = speak(every, key, mail, layers, mixing, state.slot, **settings)
        return layers, mail

    return System(init, update, act, shared)


@functools.partial(
    jax.jit, static_argnames=("system", "num_slots"), donate_argnames="state"
)
def live(system: System, key, state: SystemState, street: Street, num_slots: int):
    """Goes through so many slots in one compiled program.

    Calling it again with the state that it returned goes on exactly as one longer call
    would have. The given state is donated: its buffers are gone afterwards.

    Args:
      system: of ``pfdrl``; static.
      key: the run's, the same at every call.
      state: of ``system.init`` or an earlier call.
      street: ``Street``. Beyond its last minute its last load goes on.
      num_slots: a Python int; static.

    Returns:
      The new state, and ``info`` with a leading axis of slots.

    Example:
      See ``pfdrl``.
    """
    one = lambda state, _: system.update(key, state, street)
    return jax.lax.scan(one, state, length=num_slots)


def _each(config, fn):
    """``fn`` of every agent, side by side or in turn."""
    layout = config.layout
    chunk = layout.chunk if layout else 1 if jax.default_backend() == "cpu" else None
    if chunk is None:
        return jax.vmap(fn)
    batch_size = None if chunk == 1 else chunk
    return lambda inputs: jax.lax.map(fn, inputs, batch_size=batch_size)


def _mail(config, sharing, layers, shared):
    if sharing in ("nothing", "data"):
        return ()
    if sharing == "server":
        return federated.no_mail(layers, shared)
    begin = federated.no_noisy_mail if config.noise_multiplier else federated.no_mail
    return begin(layers, shared, config.messages)


def _noise(config):
    names = "clip_norm", "noise_multiplier"
    return {name: getattr(config, name) for name in names}


def _check_hyper(config, num_layers, hyper):
    names = sorted(HYPER | DQN_HYPER)
    unknown = sorted(set(hyper) - set(names))
    if unknown:
        raise TypeError(f"init takes the hyper-parameters {names}, got {unknown}.")
    of_account = METHODS[config.method].control == "base"
    alpha = known(hyper.get("alpha", HYPER["alpha"] if of_account else 0))
    if alpha is not None and alpha not in range(num_layers + 1):
        raise ValueError(
            f"alpha must be whole and lie in [0, {num_layers}], the network's layers, "
            f"got {alpha}{'' if 'alpha' in hyper else ', its default'}; choose one."
        )
    for name in ("beta_hours", "gamma_hours"):
        hours = known(hyper.get(name, HYPER[name]))
        if hours is not None and not config.slot_min <= hours * 60 < math.inf:
            raise ValueError(
                f"{name} must be at least a slot, {config.slot_min} minutes, got "
                f"{hours} hours; choose a smaller slot_min."
            )
