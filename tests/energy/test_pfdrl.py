"""The five methods, compared with plain loops and with each other."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import DQNConfig, ForecastConfig, PFDRLConfig, Series, Trace, mdp
from jaxanon.federated import ChannelConfig, Layout
from jaxanon.models.predictors import q_network

pytestmark = pytest.mark.slow

HOMES, SLOT = 3, 20
AGENTS = 2 * HOMES
SMALL = {
    # Squared errors: Adam amplifies rounding in gradients of absolute errors.
    "forecast": ForecastConfig(kind="lr", lookback=10, ahead=20),
    "forecaster_steps": 2,
    "forecaster_batch_size": 4,
    "dqn": DQNConfig(num_envs=2, batch_size=8, capacity=60, target_update_interval=7),
    "hidden_sizes": (6,),
    "slot_min": SLOT,
}
LAYERS = ("dense_1", "dense_2")


@functools.cache
def homes():
    made_up = energy.households(jax.random.key(5), HOMES, 1, energy.APPLIANCES[:2])
    return energy.build_neighborhood(np.asarray(made_up.power[:, 900:1300]))


@functools.cache
def system(**settings):
    return energy.pfdrl(PFDRLConfig(**{**SMALL, **settings}))


def again(tree):
    """Returns a copy, which ``energy.simulate`` may donate."""
    return jax.tree.map(lambda leaf: jnp.array(np.array(leaf)), tree)


@functools.cache
def lived(num_slots, method, hyper=(), **settings):
    """Returns the state after some slots, and info of the last."""
    made = system(method=method, **settings)
    if not num_slots:
        return made.init(jax.random.key(0), homes(), **dict(hyper)), None
    before, _ = lived(num_slots - 1, method, hyper, **settings)
    state, info = energy.simulate(made, jax.random.key(1), again(before), homes(), 1)
    return state, {name: one[0] for name, one in info.items()}


HOURLY = (("beta_hours", 1.0), ("gamma_hours", 1.0), ("alpha", 1))  # Every 3 slots.


def keys_of(slot, agent):
    """Returns an agent's keys for fitting and acting in a slot."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(1), slot), 4)
    return [jax.random.fold_in(key, agent) for key in list(keys)[:2]]


def test_an_agent_alone_agrees_with_a_plain_loop():
    """Two slots of agent 3: acting minute by minute, then fitting."""
    neighborhood, config = homes(), PFDRLConfig(**SMALL, method="local")
    made, number = system(method="local"), 3
    state = made.init(jax.random.key(0), neighborhood)
    pick = functools.partial(jax.tree.map, lambda leaf: leaf[number])
    fit, control, levels = (
        pick(state.fits),
        pick(state.control),
        pick(neighborhood.levels),
    )
    model = energy.forecaster(config.forecast)
    env = energy.environment(SLOT + 1)
    agent = energy.dqn(env, q_network(2, 3, config.hidden_sizes), config.dqn)
    update, predict = jax.jit(agent.update), jax.jit(model.predict)
    trace = Trace(neighborhood.power[number], neighborhood.scale[number])

    @jax.jit
    def fitted(key, fit, end):
        _, gradient = energy.fit_gradient(key, model, fit, trace, (0, end), 4)
        return energy.fit_step(fit, gradient, 1e-2)

    for slot in range(2):
        fit_key, act_key = keys_of(slot, number)
        start = slot * SLOT
        forecast = np.asarray(predict(fit.layers, trace, np.array([start]))[0])
        # The last minute repeats, because the next one has not happened yet.
        load = np.asarray(trace.power)[start : start + SLOT]
        load = np.append(load, load[-1])
        series = Series(np.append(forecast, forecast[-1]), load, levels)
        control = control._replace(
            place=mdp.Place(jnp.array([0, 10]), jnp.array([21, 21])),
            observation=jnp.stack([energy.observation(series, m) for m in (0, 10)]),
        )
        for _ in range(SLOT // 2):
            control, _ = update(act_key, control, series)
        for _ in range(2):
            fit = fitted(fit_key, fit, start + SLOT)
    found, _ = lived(2, "local")
    chex.assert_trees_all_close(pick(found.fits), fit, rtol=1e-4, atol=1e-6)
    chex.assert_trees_all_close(
        pick(found.control.params), control.params, rtol=1e-3, atol=1e-5
    )
    stored = lambda control: control.replay.kept.observation
    np.testing.assert_allclose(stored(pick(found.control)), stored(control), rtol=1e-4)


def test_what_is_measured_agrees_with_what_agents_do():
    made, neighborhood = system(method="local"), homes()
    state, _ = lived(2, "local")
    did = jax.jit(made.act)(state, neighborhood, 2)
    _, info = lived(3, "local")
    minutes = slice(2 * SLOT, 3 * SLOT)
    np.testing.assert_array_equal(did.load, neighborhood.power[:, minutes])
    last = neighborhood.power[:, 2 * SLOT - 1 : 2 * SLOT]
    np.testing.assert_array_equal(did.persistence, jnp.repeat(last, SLOT, axis=1))
    for agent in range(AGENTS):
        saved = optimal = 0.0
        for watts, mode, action in zip(
            did.load[agent], did.mode[agent], did.action[agent], strict=True
        ):
            saved += float(watts) / 60 * bool(mode == 1 and action == 0)
            optimal += int(action) == (2 if mode == 2 else 0)
        assert float(info["saved_wh"][agent]) == pytest.approx(saved, rel=1e-4)
        assert info["optimal"][agent] == optimal
    error = np.abs(did.forecast - did.load).sum(axis=1)
    np.testing.assert_allclose(info["forecast_error"], error, rtol=1e-4)


def alike(tree):
    """Returns whether the devices of each kind have equal values."""
    same = lambda leaf: all(
        np.allclose(leaf[kind::2], leaf[kind : kind + 1], atol=1e-6)
        for kind in range(2)
    )
    return all(same(np.asarray(leaf)) for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize(
    ("method", "forecasts", "control"),
    [
        ("local", False, (False, False)),
        ("cloud", True, (False, False)),
        ("fl", True, (False, False)),
        ("frl", True, (True, True)),
        ("pfdrl", True, (True, False)),
    ],
)
def test_who_shares_what_as_figure_2_3_lists_it(method, forecasts, control):
    state, _ = lived(3, method, HOURLY)
    assert alike(state.fits.layers) == forecasts
    found = tuple(alike(state.control.params[name]) for name in LAYERS)
    assert found == control
    # Kinds do not exchange models.
    kernel = state.fits.layers["dense_1"]["kernel"]
    assert not np.allclose(kernel[0], kernel[1], atol=1e-6)
    before, _ = lived(2, method, HOURLY)
    assert alike(before.fits.layers) == (method == "cloud")
    assert not alike(before.control.params["dense_1"])


def test_what_is_shared_is_the_mean_of_what_each_learned():
    alone, _ = lived(3, "local", HOURLY)
    together, _ = lived(3, "pfdrl", HOURLY)
    for kind in range(2):
        for name, shared in zip(LAYERS, (True, False), strict=True):
            pick = lambda x, k=kind: np.asarray(x)[k::2]
            own = jax.tree.map(pick, alone.control.params[name])
            mean = jax.tree.map(
                lambda x: 0 * x + np.mean(x, axis=0, keepdims=True), own
            )
            found = jax.tree.map(pick, together.control.params[name])
            chex.assert_trees_all_close(found, mean if shared else own, atol=1e-6)


def test_cloud_steps_along_the_mean_of_all_gradients():
    neighborhood, made = homes(), system(method="cloud")
    state = made.init(jax.random.key(0), neighborhood)
    model = energy.forecaster(SMALL["forecast"])
    fit = jax.tree.map(lambda leaf: leaf[0], state.fits)
    slope = jax.jit(
        lambda key, fit, trace, end: energy.fit_gradient(
            key, model, fit, trace, (0, end), 4
        )[1]
    )
    step = jax.jit(energy.fit_step)
    for slot in (0, 0, 1, 1):
        gradients = []
        for agent in (0, 2, 4):  # The first kind.
            key, _ = keys_of(slot, agent)
            trace = Trace(neighborhood.power[agent], neighborhood.scale[agent])
            gradients.append(slope(key, fit, trace, (slot + 1) * SLOT))
        mean = jax.tree.map(lambda *leaves: sum(leaves) / 3, *gradients)
        fit = step(fit, mean, 1e-2)
    assert all(map(jnp.any, map(lambda tree: tree["dense_1"]["bias"], gradients)))
    found, _ = lived(2, "cloud")
    one = jax.tree.map(lambda leaf: leaf[4], found.fits)
    chex.assert_trees_all_close(one, fit, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("alpha", "method"), [(0, "fl"), (2, "frl")])
def test_the_ends_of_alpha_are_other_methods(alpha, method):
    hyper = (("beta_hours", 1.0), ("gamma_hours", 1.0), ("alpha", alpha))
    one, _ = lived(3, "pfdrl", hyper)
    other, _ = lived(3, method, HOURLY)
    chex.assert_trees_all_close(one.control.params, other.control.params, atol=1e-6)
    chex.assert_trees_all_close(one.fits, other.fits, atol=1e-6)


def test_where_all_messages_are_lost_it_is_learning_alone():
    lost, _ = lived(3, "pfdrl", HOURLY, messages=ChannelConfig(drop_probability=1.0))
    alone, _ = lived(3, "local", HOURLY)
    chex.assert_trees_all_close(lost.control.params, alone.control.params, atol=1e-6)
    chex.assert_trees_all_close(lost.fits, alone.fits, atol=1e-6)


def test_agents_go_through_slots_by_themselves_until_somebody_is_heard():
    """Several slots in one program equal single slots."""
    slots, made = [lived(n, "pfdrl", HOURLY) for n in range(7)], system(method="pfdrl")
    state = slots[0][0]
    assert made.max_local_slots(state, 3) == 3 and made.max_local_slots(state, 4) == 1
    assert (
        made.max_local_slots(slots[2][0], 3) == 1
    )  # The next exchange follows one slot.
    assert jax.jit(lambda state: made.max_local_slots(state, 3))(state) == 1
    # Two programs of three slots, each followed by an exchange; above, single slots.
    assert made.max_local_slots(state, 6) == 3
    state, info = energy.simulate(made, jax.random.key(1), again(state), homes(), 6)
    for slot in range(6):
        expected = slots[slot + 1][1]
        for name in ("forecast_error", "reward", "optimal"):
            np.testing.assert_allclose(info[name][slot], expected[name], rtol=1e-4)
    chex.assert_trees_all_close(
        state.control.params, slots[6][0].control.params, rtol=1e-3, atol=1e-5
    )
    alone = system(method="cloud")
    assert (
        alone.max_local_slots(lived(0, "cloud", HOURLY)[0], 3) == 1
    )  # Each step uses all agents' data.


def test_alpha_and_periods_are_a_sweep_of_agents_side_by_side():
    """Layouts do not change results."""
    made, neighborhood = system(method="pfdrl", layout=Layout(chunk_size=None)), homes()

    def run(alpha, gamma):
        state = made.init(
            jax.random.key(0),
            neighborhood,
            alpha=alpha,
            beta_hours=1.0,
            gamma_hours=gamma,
        )
        one = lambda state, _: made.update(jax.random.key(1), state, neighborhood)
        state, info = jax.lax.scan(one, state, length=3)
        return state.control.params, info["forecast_error"]

    swept, error = jax.jit(jax.vmap(run))(jnp.array([1, 0]), jnp.array([1.0, 2.0]))
    one, told = lived(3, "pfdrl", HOURLY)
    first, second = (
        jax.tree.map(lambda x, n=n: np.asarray(x)[n], swept) for n in (0, 1)
    )
    chex.assert_trees_all_close(first, one.control.params, rtol=1e-3, atol=1e-4)
    chex.assert_trees_all_close(error[0, -1], told["forecast_error"], rtol=1e-3)
    assert not alike(second["dense_1"])
