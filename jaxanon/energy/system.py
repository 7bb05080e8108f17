"""PFDRL: training of the agents of a neighborhood."""

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
from jaxanon.energy.neighborhood import Neighborhood
from jaxanon.energy.q_learning import HYPER as DQN_HYPER
from jaxanon.energy.q_learning import AgentState, dqn
from jaxanon.federated.engine.layout import Layout
from jaxanon.models.predictors import q_network


def map_agents(layout: Layout | None, fn):
    """Maps a function over agents.

    Args:
      layout: layout of agents; None: sequential on a CPU, otherwise vectorized.
      fn: function of one agent's tree of arrays.

    Returns:
      ``fn`` for trees of arrays ``[agents, ...]``.

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
    """State of a neighborhood's training, which is checkpointed."""

    slot: jax.Array  # int32[]; completed slots
    fits: FitState  # [agents, ...]
    control: AgentState  # [agents, ...]
    fit_mail: Any  # message buffer, if forecasters are exchanged
    control_mail: Any
    hyper: dict[str, jax.Array]  # float[] each; may vary in a sweep


class PFDRLSystem(NamedTuple):
    """Functions of a method for neighborhoods.

    - ``init(key, neighborhood, **hyper) -> SystemState``.
    - ``update(key, state, neighborhood) -> (state, info)`` runs one slot. It takes the
      key of the run and supports ``jit``, ``scan``, and ``vmap`` over states.
    - ``update_local(key, state, neighborhood, count)`` runs ``count`` slots, with
      broadcasts only after the last; ``info`` is ``[count, agents]``.
    - ``max_local_slots(state, num_slots)`` returns the largest ``count``.
    - ``act(state, neighborhood, slot) -> AgentRecord`` returns the actions in one slot
      without training, ``[agents, slot_min]``. Use it to test on held-out days.
    - ``shared(state) -> (forecaster, control)`` returns for each layer of both models
      whether agents share it, ``bool[]``.
    """

    init: Callable
    update: Callable
    update_local: Callable
    max_local_slots: Callable
    act: Callable
    shared: Callable


@functools.cache  # Compiles the programs of a config once.
def pfdrl(config: PFDRLConfig) -> PFDRLSystem:
    """Builds one of the five methods that train agents to switch off standby.

    In each slot every agent forecasts the minutes of its device and acts on them. It
    then trains its Q-network on the slot and its forecaster on all minutes so far.
    Agents exchange forecasters every ``beta_hours`` and Q-networks every
    ``gamma_hours``, as defined by the method. All agents start with the same networks.
    Target networks are updated after a number of training steps, independently of
    exchanges.

    ``init`` takes the hyper-parameters, which a sweep varies by ``vmap``: ``alpha``
    (6), the number of Q-network layers that ``"pfdrl"`` shares; ``beta_hours`` and
    ``gamma_hours`` (12), rounded to whole slots; ``forecaster_learning_rate`` (0.01);
    and those of ``dqn``.

    Args:
      config: ``PFDRLConfig``.

    Returns:
      ``PFDRLSystem``. ``info`` has the values of ``summarize_slot`` for greedy actions
      before training on the slot, and ``reward``, each ``float32[agents]``.

    Raises:
      TypeError: from ``init``, for unknown hyper-parameters.
      ValueError: from ``init``, if ``alpha`` exceeds the number of layers, or hours are
        less than one slot.

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
    method = METHODS[config.method]
    net = q_network(OBSERVED[config.observed], NUM_ACTIONS, config.hidden_sizes)
    # One minute longer than a slot, so no episode ends within it.
    env = environment(config.slot_min + 1, config.observed)
    agent = dqn(env, net, config.dqn)
    parts = energy_agent.Parts(config, forecaster(config.forecast), net, agent)
    each = functools.partial(map_agents, config.layout)
    names = "clip_norm", "noise_multiplier"
    noise = {name: getattr(config, name) for name in names}

    def shared_forecast(layers):
        return {name: True for name in layers}

    def shared_control(hyper):
        whole = method.control == "server"
        alpha = len(net.layers) if whole else hyper["alpha"]
        return federated.base_layers(net.layers, alpha)

    def init(key, neighborhood: Neighborhood, **hyper):
        check_hyper(config, len(net.layers), hyper)
        fit_key, control_key = jax.random.split(key)
        num_agents = len(neighborhood.power)
        layers = parts.model.init(fit_key)
        of_dqn = {name: hyper.pop(name) for name in DQN_HYPER if name in hyper}
        blank = jnp.zeros(config.slot_min + 1)
        empty = Series(
            blank, blank, jax.tree.map(lambda leaf: leaf[0], neighborhood.levels)
        )
        control = agent.init(control_key, empty, **of_dqn)
        fits, control = _repeat_for_agents((begin_fit(layers), control), num_agents)
        to_array = lambda value: jnp.asarray(value, jnp.float32)
        hyper = {name: to_array(value) for name, value in (HYPER | hyper).items()}
        mail = functools.partial(_mail, config)
        return SystemState(
            slot=jnp.zeros((), jnp.int32),
            fits=fits,
            control=control,
            fit_mail=mail(method.forecast, fits.layers, shared_forecast(layers)),
            control_mail=mail(method.control, control.params, shared_control(hyper)),
            hyper=hyper,
        )

    def shared(state):
        forecaster = dict.fromkeys(state.fits.layers, method.forecast != "nothing")
        control = dict.fromkeys(net.layers, False)
        return forecaster, (
            control if method.control == "nothing" else shared_control(state.hyper)
        )

    def homes_of(neighborhood):
        return energy_agent.Home(
            neighborhood.power,
            neighborhood.scale,
            neighborhood.levels,
            neighborhood.present,
        )

    def act(state, neighborhood, slot):
        def one(inputs):
            layers, params, home = inputs
            series = energy_agent.forecast_slot(parts, layers, home, slot)
            return energy_agent.act_in_slot(parts, series, params, home, slot)

        return each(one)(
            (state.fits.layers, state.control.params, homes_of(neighborhood))
        )

    def slot_keys(key, slot):
        return jax.random.split(jax.random.fold_in(key, slot), 4)

    def local_slots(key, first, count, rate):
        """Returns a function that runs an agent's slots without communication."""

        def run_slot(carry, slot, number, home):
            fit, control = carry
            fit_key, act_key = slot_keys(key, slot)[:2]
            series = energy_agent.forecast_slot(parts, fit.layers, home, slot)
            did = energy_agent.act_in_slot(parts, series, control.params, home, slot)
            info = energy_agent.summarize_slot(did, home.present)
            agent_key = jax.random.fold_in(act_key, number)
            control, reward = energy_agent.train_agent(
                parts, agent_key, series, control
            )
            if method.forecast != "data":
                agent_key = jax.random.fold_in(fit_key, number)
                fit = energy_agent.train_forecaster(
                    parts, agent_key, fit, home, slot, rate
                )
            reward = jnp.where(home.present, reward, 0)
            return (fit, control), info | {"reward": reward}

        def run_agent(inputs):
            number, carry, home = inputs
            step = lambda carry, slot: run_slot(carry, slot, number, home)
            return jax.lax.scan(step, carry, first + jnp.arange(count))

        return run_agent

    def update_local(key, state, neighborhood, count):
        if method.forecast == "data" and count > 1:
            raise ValueError(
                f"count must be 1 if each step uses all agents' data, got {count}; "
                "call max_local_slots."
            )
        rate, last = state.hyper["forecaster_learning_rate"], state.slot + count - 1
        inputs = (
            neighborhood.agent_id,
            (state.fits, state.control),
            homes_of(neighborhood),
        )
        (fits, control), info = each(local_slots(key, state.slot, count, rate))(inputs)
        fit_key, _, fit_mail_key, control_mail_key = slot_keys(key, last)
        if method.forecast == "data":
            fits = train_pooled(fit_key, fits, neighborhood, last, rate)
        layers, fit_mail = exchange(
            fit_mail_key, "forecast", state, state.fit_mail,
            fits.layers, shared_forecast(fits.layers), neighborhood, last,
        )  # fmt: skip
        params, control_mail = exchange(
            control_mail_key, "control", state, state.control_mail,
            control.params, shared_control(state.hyper), neighborhood, last,
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

    def update(key, state, neighborhood):
        state, info = update_local(key, state, neighborhood, 1)
        return state, jax.tree.map(lambda x: x[0], info)

    def train_pooled(key, fits, neighborhood, slot, rate):
        """Performs training steps with the mean gradient of each kind."""
        numbers, homes = neighborhood.agent_id, homes_of(neighborhood)

        def gradient(inputs):
            number, fit, home = inputs
            agent_key = jax.random.fold_in(key, number)
            return energy_agent.slot_gradient(parts, agent_key, fit, home, slot)[1]

        def one(fits, _):
            gradients = each(gradient)((numbers, fits, homes))
            mean = federated.mix(neighborhood.server_weights, gradients)
            return jax.vmap(fit_step, in_axes=(0, 0, None))(fits, mean, rate), None

        return jax.lax.scan(one, fits, length=config.forecaster_steps)[0]

    def exchange(key, model, state, mail, layers, shared, neighborhood, slot):
        sharing = getattr(method, model)
        if sharing in ("nothing", "data"):
            return layers, mail
        by_server = sharing == "server"
        every = energy_config.period(config, state.hyper[energy_config.PERIODS[model]])
        mixing = (
            neighborhood.server_weights if by_server else neighborhood.neighbor_weights
        )
        exchange_fn, settings = federated.exchange_every, {"shared": shared}
        if not by_server:
            settings |= {"messages": config.messages, "numbers": neighborhood.agent_id}
            if config.noise_multiplier:
                exchange_fn, settings = (
                    federated.exchange_noisily_every,
                    settings | noise,
                )
        mail, layers = exchange_fn(every, key, mail, layers, mixing, slot, **settings)
        return layers, mail

    max_local_slots = functools.partial(energy_config.max_local_slots, config)
    return PFDRLSystem(init, update, update_local, max_local_slots, act, shared)


def simulate(
    system: PFDRLSystem,
    key,
    state: SystemState,
    neighborhood: Neighborhood,
    num_slots: int,
):
    """Runs a number of slots in one compiled program.

    Calls can be chained: two calls give exactly the result of one longer call.
    ``state`` is donated, so its buffers are invalid afterwards.

    Args:
      system: result of ``pfdrl``.
      key: typed PRNG key of the run, the same for every call.
      state: result of ``system.init`` or an earlier call.
      neighborhood: ``Neighborhood``. After its last minute the last load repeats.
      num_slots: number of slots, a Python int.

    Returns:
      The new state, and ``info`` with a leading axis of slots.

    Example:
      See ``pfdrl``.
    """
    count = system.max_local_slots(state, num_slots)
    return _simulate(system, key, state, neighborhood, num_slots, count)


@functools.partial(
    jax.jit, static_argnames=("system", "num_slots", "count"), donate_argnames="state"
)
def _simulate(system, key, state, neighborhood, num_slots, count):
    some = lambda state, _: system.update_local(key, state, neighborhood, count)
    state, info = jax.lax.scan(some, state, length=num_slots // count)
    return state, jax.tree.map(lambda x: x.reshape(num_slots, *x.shape[2:]), info)


@functools.partial(
    jax.jit,
    static_argnames=("system", "slots_a_day", "days", "test_days", "vectorize"),
)
def simulate_batch(
    system: PFDRLSystem,
    seeds,
    hyper: dict,
    neighborhood: Neighborhood,
    *,
    slots_a_day: int,
    days: int,
    test_days: int,
    vectorize: bool = False,
):
    """Trains and tests a neighborhood for each member of a batch.

    A member equals the run of ``jaxanon.train`` with its seed and hyper-parameters, up
    to rounding. Only sums leave the program.

    Args:
      system: result of ``pfdrl``; static.
      seeds: ``int[members]``.
      hyper: hyper-parameters of ``system.init``, name -> ``float[members]``; not
        validated.
      neighborhood: ``Neighborhood``.
      slots_a_day: 1440 divided by ``slot_min``.
      days, test_days: number of training days, and of test days after them.
      vectorize: whether to use ``vmap``, which needs memory for all members; otherwise
        members run sequentially.

    Returns:
      Two dicts of ``float32[members, days]`` and ``float32[members, test_days]``, the
      values of ``summarize_slot`` summed over agents. Training days use greedy actions
      before training on each slot. The third result, ``bool[members]``, is whether all
      networks are finite: agents with NaN values switch off everything and seem to save
      the maximum.

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
      >>> learned, tested, finite = simulate_batch(
      ...     energy.pfdrl(small), jnp.arange(2), hyper, homes,
      ...     slots_a_day=2, days=2, test_days=1)
      >>> learned["saved_wh"].shape, tested["minutes"].tolist(), finite.tolist()
      ((2, 2), [[20.0], [20.0]], [True, True])
    """
    total = lambda info: {name: jnp.sum(x) for name, x in info.items()}

    def one(member):
        seed, hyper = member
        init_key, run_key = jax.random.split(jax.random.key(seed))  # As in ``train``.

        def slot(state, _):
            state, info = system.update(run_key, state, neighborhood)
            return state, total(info)

        def day(state, _):
            state, sums = jax.lax.scan(slot, state, length=slots_a_day)
            return state, total(sums)

        def test(number):
            return total(
                energy_agent.summarize_slot(
                    system.act(state, neighborhood, number), neighborhood.present
                )
            )

        def test_day(number):
            return total(jax.lax.map(test, number * slots_a_day + each))

        state = system.init(init_key, neighborhood, **hyper)
        state, learned = jax.lax.scan(day, state, length=days)
        each = jnp.arange(slots_a_day)
        tested = jax.lax.map(test_day, days + jnp.arange(test_days))
        return learned, tested, finite(state)

    members = seeds, hyper
    return jax.vmap(one)(members) if vectorize else jax.lax.map(one, members)


def finite(state) -> jax.Array:
    """Returns whether all parameters of the networks are finite, ``bool[]``.

    Args:
      state: ``SystemState``.
    """
    networks = jax.tree.leaves((state.fits.layers, state.control.params))
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in networks]).all()


@functools.partial(jax.jit, static_argnames="num_agents")  # One program for all leaves.
def _repeat_for_agents(tree, num_agents):
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
