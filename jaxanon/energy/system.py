"""Agents side by side, or in turn, where networks of one stay in a CPU's cache."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import federated
from jaxanon.energy import agent as energy_agent
from jaxanon.energy import config as energy_config
from jaxanon.energy.config import HYPER, METHODS, PFDRLConfig, check_hyper
from jaxanon.energy.forecasting import FitState, begin_fit, fit_step, forecaster
from jaxanon.energy.mdp import NUM_ACTIONS, OBSERVED, Series, environment
from jaxanon.energy.neighbourhood import Neighborhood
from jaxanon.energy.q_learning import HYPER as DQN_HYPER
from jaxanon.energy.q_learning import AgentState, dqn
from jaxanon.federated.engine.layout import Layout
from jaxanon.models.predictors import q_network


def map_agents(layout: Layout | None, fn):
    """A function of every agent.

    Args:
      layout: None is in turn on a CPU, and else side by side.
      fn: one agent's tree of arrays to another.

    Returns:
      ``fn`` of trees of arrays ``[agents, ...]``.

    Example:
      >>> import jax.numpy as jnp
      >>> map_agents(None, lambda x: 2 * x)(jnp.array([1.0, 3.0]))
      Array([2., 6.], dtype=float32)
    """
    in_turn = layout is None and jax.default_backend() == "cpu"
    chunk = 1 if in_turn else layout.chunk_size if layout else None
    if chunk is None:
        return jax.vmap(fn)
    batch_size = None if chunk == 1 else chunk
    return lambda inputs: jax.lax.map(fn, inputs, batch_size=batch_size)


class SystemState(NamedTuple):
    """All that changes from slot to slot, and so all that is checkpointed."""

    slot: jax.Array  # int32[]; slots done
    fits: FitState  # [agents, ...]
    control: AgentState  # [agents, ...]
    fit_mail: Any  # a Mailbox where forecasters are exchanged
    control_mail: Any
    hyper: dict[str, jax.Array]  # float[] each; what a sweep varies


class PFDRLSystem(NamedTuple):
    """A method for streets.

    ``init(key, street, **hyper) -> SystemState``; ``update(key, state, street) ->
    (state, info)`` is a slot, given the run's key, which may be jitted, scanned, and
    vmapped over states; ``many(key, state, street, count)`` is ``count`` slots of which
    only the last may be followed by a broadcast, ``info`` being ``[count, agents]``;
    ``silent(state, num_slots)`` says how many those can be; ``act(state, street, slot)
    -> Acted`` is what agents would do in slot number ``slot`` with models as they are,
    ``[agents, slot_min]``: on days that they have not seen that is their test;
    ``shared(state) -> (forecaster, control)`` says of each layer of both models whether
    agents share it, ``bool[]``.
    """

    init: Callable
    update: Callable
    many: Callable
    silent: Callable
    act: Callable
    shared: Callable


@functools.cache  # Of one config is one system, whose programs are compiled once.
def pfdrl(config: PFDRLConfig) -> PFDRLSystem:
    """Homes that learn to switch standby off, by one of the five methods.

    In a slot every agent forecasts its device's minutes, acts on them and learns from
    what it did, then learns to forecast from all minutes until now. After
    every ``beta_hours`` forecasters are exchanged and after every ``gamma_hours``
    Q-networks, as the method says. All agents begin with the same networks. Target
    networks are renewed every so many learning steps, and not by an exchange.

    Hyper-parameters are ``init``'s, and a sweep's by ``vmap``: ``alpha`` (6), layers of
    the Q-network that are shared by ``"pfdrl"``; ``beta_hours`` and ``gamma_hours``
    (12), rounded to whole slots; ``forecaster_learning_rate`` (0.01); those of ``dqn``.

    Args:
      config: ``PFDRLConfig``.

    Returns:
      ``PFDRLSystem``. ``info`` has what ``measured`` has, of agents at their best
      before the slot taught them, and ``reward``, each ``float32[agents]``.

    Raises:
      TypeError: from ``init``, for a hyper-parameter that there is not.
      ValueError: from ``init``, for an ``alpha`` of more layers than there are, or for
        hours of less than a slot.

    Example:
      >>> import numpy as np
      >>> from jaxanon import energy
      >>> small = PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden_sizes=(8, 8), slot_min=10)
      >>> system = pfdrl(small)
      >>> minutes = np.tile([0.0] * 30 + [2.0] * 60 + [80.0] * 30, 12)
      >>> homes = energy.build_neighborhood(
      ...     np.stack([minutes, 1.5 * minutes])[:, :, None]
      ... )
      >>> state = system.init(jax.random.key(0), homes, alpha=2)
      >>> state, info = energy.simulate(system, jax.random.key(1), state, homes, 6)
      >>> info["minutes"].shape, info["standby_wh"].sum(axis=0).round(2)
      ((6, 2), Array([1. , 1.5], dtype=float32))

    References:
      Chapter 2, algorithms 1 and 2. Layers are averaged, as by McMahan et al., AISTATS
      2017: equation 2.7 adds up gradients that were taken at different weights.
    """
    how = METHODS[config.method]
    net = q_network(OBSERVED[config.observed], NUM_ACTIONS, config.hidden_sizes)
    # An episode of a minute more than a slot: none ends inside it.
    env = environment(config.slot_min + 1, config.observed)
    agent = dqn(env, net, config.dqn)
    parts = energy_agent.Parts(config, forecaster(config.forecast), net, agent)
    each = functools.partial(map_agents, config.layout)
    names = "clip_norm", "noise_multiplier"
    noise = {name: getattr(config, name) for name in names}

    def shared_forecast(layers):
        return {name: True for name in layers}

    def shared_control(hyper):
        whole = how.control == "server"
        alpha = len(net.layers) if whole else hyper["alpha"]
        return federated.base_layers(net.layers, alpha)

    def init(key, street: Neighborhood, **hyper):
        check_hyper(config, len(net.layers), hyper)
        fit_key, control_key = jax.random.split(key)
        num_agents = len(street.power)
        layers = parts.model.init(fit_key)
        of_dqn = {name: hyper.pop(name) for name in DQN_HYPER if name in hyper}
        blank = jnp.zeros(config.slot_min + 1)
        nowhere = Series(
            blank, blank, jax.tree.map(lambda leaf: leaf[0], street.levels)
        )
        control = agent.init(control_key, nowhere, **of_dqn)
        fits, control = _everyone((begin_fit(layers), control), num_agents)
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
        return energy_agent.Home(
            street.power, street.scale, street.levels, street.present
        )

    def act(state, street, slot):
        def one(inputs):
            layers, params, home = inputs
            series = energy_agent.series_of(parts, layers, home, slot)
            return energy_agent.acted(parts, series, params, home, slot)

        return each(one)((state.fits.layers, state.control.params, homes_of(street)))

    def slot_keys(key, slot):
        return jax.random.split(jax.random.fold_in(key, slot), 4)

    def alone(key, first, count, rate):
        """An agent's slots in which it hears of nobody."""

        def one(own, slot, number, home):
            fit, control = own
            fit_key, act_key = slot_keys(key, slot)[:2]
            series = energy_agent.series_of(parts, fit.layers, home, slot)
            did = energy_agent.acted(parts, series, control.params, home, slot)
            info = energy_agent.measured(did, home.present)
            own_key = jax.random.fold_in(act_key, number)
            control, reward = energy_agent.learned(parts, own_key, series, control)
            if how.forecast != "data":
                own_key = jax.random.fold_in(fit_key, number)
                fit = energy_agent.fitted(parts, own_key, fit, home, slot, rate)
            reward = jnp.where(home.present, reward, 0)
            return (fit, control), info | {"reward": reward}

        def many(inputs):
            number, own, home = inputs
            step = lambda own, slot: one(own, slot, number, home)
            return jax.lax.scan(step, own, first + jnp.arange(count))

        return many

    def many(key, state, street, count):
        if how.forecast == "data" and count > 1:
            raise ValueError(
                f"count must be 1 where every step is of everybody's minutes, got "
                f"{count}; ask silent."
            )
        rate, last = state.hyper["forecaster_learning_rate"], state.slot + count - 1
        inputs = street.number, (state.fits, state.control), homes_of(street)
        (fits, control), info = each(alone(key, state.slot, count, rate))(inputs)
        fit_key, _, fit_mail_key, control_mail_key = slot_keys(key, last)
        if how.forecast == "data":
            fits = pooled(fit_key, fits, street, last, rate)
        layers, fit_mail = exchanged(
            fit_mail_key, "forecast", state, state.fit_mail,
            fits.layers, shared_forecast(fits.layers), street, last,
        )  # fmt: skip
        params, control_mail = exchanged(
            control_mail_key, "control", state, state.control_mail,
            control.params, shared_control(state.hyper), street, last,
        )  # fmt: skip
        state = SystemState(
            slot=last + 1,
            fits=fits._replace(layers=layers),
            control=control._replace(params=params),
            fit_mail=fit_mail,
            control_mail=control_mail,
            hyper=state.hyper,
        )
        return state, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), info)

    def update(key, state, street):
        state, info = many(key, state, street, 1)
        return state, jax.tree.map(lambda x: x[0], info)

    def pooled(key, fits, street, slot, rate):
        """Learning steps that all of a kind take together, on everybody's minutes."""
        numbers, homes = street.number, homes_of(street)

        def gradient(inputs):
            number, fit, home = inputs
            own_key = jax.random.fold_in(key, number)
            return energy_agent.slot_gradient(parts, own_key, fit, home, slot)[1]

        def one(fits, _):
            gradients = each(gradient)((numbers, fits, homes))
            mean = federated.mix(street.everybody, gradients)
            return jax.vmap(fit_step, in_axes=(0, 0, None))(fits, mean, rate), None

        return jax.lax.scan(one, fits, length=config.forecaster_steps)[0]

    def exchanged(key, model, state, mail, layers, shared, street, slot):
        sharing = getattr(how, model)
        if sharing in ("nothing", "data"):
            return layers, mail
        by_server = sharing == "server"
        every = energy_config.period(config, state.hyper[energy_config.PERIODS[model]])
        mixing = street.everybody if by_server else street.neighbours
        speak, settings = federated.exchange_every, {"shared": shared}
        if not by_server:
            settings |= {"messages": config.messages, "numbers": street.number}
            if config.noise_multiplier:
                speak, settings = federated.exchange_noisily_every, settings | noise
        mail, layers = speak(every, key, mail, layers, mixing, slot, **settings)
        return layers, mail

    silent = functools.partial(energy_config.silent, config)
    return PFDRLSystem(init, update, many, silent, act, shared)


def simulate(
    system: PFDRLSystem, key, state: SystemState, street: Neighborhood, num_slots: int
):
    """Goes through so many slots in one compiled program.

    Calling it again with the state that it returned goes on exactly as one longer call
    would have. The given state is donated: its buffers are gone afterwards.

    Args:
      system: of ``pfdrl``.
      key: the run's, the same at every call.
      state: of ``system.init`` or an earlier call.
      street: ``Neighborhood``. Beyond its last minute its last load goes on.
      num_slots: a Python int.

    Returns:
      The new state, and ``info`` with a leading axis of slots.

    Example:
      See ``pfdrl``.
    """
    count = system.silent(state, num_slots)
    return _live(system, key, state, street, num_slots, count)


@functools.partial(
    jax.jit, static_argnames=("system", "num_slots", "count"), donate_argnames="state"
)
def _live(system, key, state, street, num_slots, count):
    some = lambda state, _: system.many(key, state, street, count)
    state, info = jax.lax.scan(some, state, length=num_slots // count)
    return state, jax.tree.map(lambda x: x.reshape(num_slots, *x.shape[2:]), info)


@functools.partial(
    jax.jit,
    static_argnames=("system", "slots_a_day", "days", "test_days", "side_by_side"),
)
def lives(
    system: PFDRLSystem,
    seeds,
    hyper: dict,
    street: Neighborhood,
    *,
    slots_a_day: int,
    days: int,
    test_days: int,
    side_by_side: bool = False,
):
    """Lets a street learn for some days and tests it on others, once for each member.

    A member is the run that ``jaxanon.train`` makes of its seed and
    hyper-parameters, up to rounding; only sums leave the program.

    Args:
      system: of ``pfdrl``; static.
      seeds: ``int[members]``.
      hyper: of ``system.init``, name -> ``float[members]``; they are not checked here.
      street: ``Neighborhood``.
      slots_a_day: 1440 over ``slot_min``.
      days, test_days: to learn from, and after those.
      side_by_side: whether by ``vmap``, which takes the memory of all; else in turn.

    Returns:
      Two dicts of ``float32[members, days]`` and ``float32[members, test_days]``, sums
      over all agents of what ``measured`` has: on days to learn from by agents at their
      best before each slot taught them. And ``bool[members]``, whether all networks are
      finite in the end: agents whose values are NaN switch everything off, and save all
      that there is.

    Example:
      >>> from jaxanon import energy
      >>> small = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden_sizes=(8,), slot_min=10)
      >>> watts = jnp.tile(jnp.array([2.0] * 9 + [80.0]), 6)[None, :, None]
      >>> homes, hyper = (
      ...     energy.build_neighborhood(watts),
      ...     {"alpha": jnp.array([0.0, 1.0])},
      ... )
      >>> learned, tested, finite = lives(
      ...     energy.pfdrl(small), jnp.arange(2), hyper, homes,
      ...     slots_a_day=2, days=2, test_days=1)
      >>> learned["saved_wh"].shape, tested["minutes"].tolist(), finite.tolist()
      ((2, 2), [[20.0], [20.0]], [True, True])
    """
    total = lambda info: {name: jnp.sum(x) for name, x in info.items()}

    def one(member):
        seed, hyper = member
        init_key, run_key = jax.random.split(jax.random.key(seed))  # As ``train`` does.

        def slot(state, _):
            state, info = system.update(run_key, state, street)
            return state, total(info)

        def day(state, _):
            state, sums = jax.lax.scan(slot, state, length=slots_a_day)
            return state, total(sums)

        def test(number):
            return total(
                energy_agent.measured(system.act(state, street, number), street.present)
            )

        def test_day(number):
            return total(jax.lax.map(test, number * slots_a_day + each))

        state = system.init(init_key, street, **hyper)
        state, learned = jax.lax.scan(day, state, length=days)
        each = jnp.arange(slots_a_day)
        tested = jax.lax.map(test_day, days + jnp.arange(test_days))
        return learned, tested, finite(state)

    members = seeds, hyper
    return jax.vmap(one)(members) if side_by_side else jax.lax.map(one, members)


def finite(state) -> jax.Array:
    """Whether all numbers of a street's networks are, ``bool[]``.

    Args:
      state: ``SystemState``.
    """
    networks = jax.tree.leaves((state.fits.layers, state.control.params))
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in networks]).all()


@functools.partial(jax.jit, static_argnames="num_agents")  # Not leaf by leaf.
def _everyone(tree, num_agents):
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], num_agents, axis=0), tree)


def _mail(config, sharing, layers, shared):
    if sharing in ("nothing", "data"):
        return ()
    if sharing == "server":
        return federated.empty_message_buffer(layers, shared)
    begin = (
        federated.empty_noisy_message_buffer
        if config.noise_multiplier
        else federated.empty_message_buffer
    )
    return begin(layers, shared, config.messages)
