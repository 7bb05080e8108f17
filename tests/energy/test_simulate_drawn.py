"""Resumed, sharded and batched simulations of a few slots give the same result."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import energy
from jaxanon.energy import STANDBY, ForecastConfig

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32 - 1)
few = functools.partial(settings, deadline=None)


SLOT, MINUTES = 10, 60


@functools.cache
def system():
    """A config with slots of ten minutes, five input minutes, and one small layer."""
    forecast = ForecastConfig(kind="lr", lookback=5, ahead=SLOT)
    dqn = energy.DQNConfig(batch_size=4, capacity=20, num_envs=2)
    return energy.pfdrl(
        energy.PFDRLConfig(
            forecast=forecast,
            dqn=dqn,
            hidden_sizes=(4,),
            slot_min=SLOT,
            forecaster_batch_size=3,
        )
    )


def homes(seed, kinds=None, present=None):
    """Two homes of three devices that are off, in standby or on, minute by minute."""
    rng = np.random.default_rng(seed)
    levels = (
        rng.uniform(1, 4, size=(2, 1, 3)) * np.array([0, 1, 60])[:, None, None, None]
    )
    mode = rng.integers(3, size=(2, MINUTES, 3))
    power = np.take_along_axis(levels, mode[None], axis=0)[0]
    if present is not None:
        power = np.where(np.reshape(present, (2, 1, 3)), power, np.nan)
    return energy.build_neighborhood(
        power, None if kinds is None else np.reshape(kinds, (2, 3))
    )


HYPER = st.fixed_dictionaries({
    "alpha": st.integers(0, 2), "exploration_epsilon": st.sampled_from([0.0, 0.3, 1.0]),
    "forecaster_learning_rate": st.sampled_from([0.01, 0.1]),
    "discount": st.sampled_from([0.0, 0.9]),
})  # fmt: skip
TWO_SLOTS = {"beta_hours": 2 * SLOT / 60, "gamma_hours": 2 * SLOT / 60}


def close(found, expected, **tolerance):
    for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


@few(max_examples=4)
@given(SEEDS, HYPER, st.permutations([0, 0, 1, 1, 2, 2]))
def test_resumed_and_sharded_runs_equal_one_run(seed, hyper, kinds):
    neighborhood = homes(seed, kinds)
    key = lambda: jax.random.key(seed)
    begin = lambda neighborhood: system().init(
        key(), neighborhood, **hyper, **TWO_SLOTS
    )
    run = lambda state, neighborhood, n: energy.simulate(
        system(), key(), state, neighborhood, n
    )
    whole, info = run(begin(neighborhood), neighborhood, 4)
    half, first = run(begin(neighborhood), neighborhood, 2)
    half, second = run(half, neighborhood, 2)
    close(half, whole, rtol=1e-5, atol=1e-6)
    for name, one in info.items():
        assert one.shape == (4, 6)
        np.testing.assert_allclose(
            np.concatenate([first[name], second[name]]), one, rtol=1e-4, atol=1e-4
        )
    load = np.asarray(neighborhood.power)[:, : 4 * SLOT].reshape(6, 4, SLOT)
    levels = jax.tree.map(lambda x: x[:, None, None], neighborhood.levels)
    standby = (
        np.where(energy.classify_mode(load, levels) == STANDBY, load, 0).sum(2) / 60
    )
    np.testing.assert_allclose(info["standby_wh"], standby.T, rtol=1e-4)
    assert (info["minutes"] == SLOT).all()
    assert (info["saved_wh"] <= info["standby_wh"] + 1e-5).all()
    places, parts = energy.shard_neighborhood(neighborhood, 3)
    states, infos = energy.simulate_sharded(
        system(), key(), [*map(begin, parts)], parts, 4
    )
    for own, part in zip(places, infos, strict=True):
        close(part, {name: one[:, own] for name, one in info.items()}, atol=1e-3)
    ages = energy.collect_state(whole, states, places)
    close(ages.fits.layers, whole.fits.layers, atol=1e-3)
    close(ages.control.params, whole.control.params, atol=1e-3)


@few(max_examples=4)
@given(
    SEEDS, HYPER, st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6), st.integers(1, 4),
)  # fmt: skip
def test_a_state_that_is_dealt_out_is_collected_again(
    seed, hyper, kinds, present, number
):
    neighborhood = homes(seed, kinds, present)
    state = system().init(jax.random.key(seed), neighborhood, **hyper)
    rng = np.random.default_rng(seed)
    shuffled = lambda leaf: jnp.asarray(rng.permuted(np.asarray(leaf)), leaf.dtype)
    fits, control = jax.tree.map(shuffled, (state.fits, state.control))
    state = state._replace(fits=fits, control=control)
    places, parts = energy.shard_neighborhood(neighborhood, number)
    assert sorted(np.concatenate(places)) == list(range(6))
    states = energy.deal_state(system(), state, places, parts)
    assert len(states) == len(parts) == min(number, len(set(kinds)))
    for own, one, part in zip(places, states, parts, strict=True):
        assert len(part.power) == len(own)
        for leaf, whole in zip(
            *map(jax.tree.leaves, ((one.fits, one.control), (fits, control))),
            strict=True,
        ):
            np.testing.assert_array_equal(leaf, whole[own])
    fits, control = jax.tree.map(jnp.zeros_like, (fits, control))
    blank = state._replace(fits=fits, control=control)
    again = energy.collect_state(blank, states, places)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    jax.tree.map(np.testing.assert_array_equal, again, state)


@few(max_examples=3)
@given(SEEDS, st.permutations([0, 1, 2]))
def test_members_equal_single_runs(seed, order):
    neighborhood, order = homes(seed % 100), np.array(order)
    seeds = np.array([seed % 1000, seed % 1000, 7])
    hyper = {
        "alpha": np.float32([0, 0, 2]),
        "exploration_epsilon": np.float32([0.5, 0.5, 0.1]),
    }
    live = lambda seeds, hyper, **more: energy.simulate_batch(
        system(), seeds, hyper, neighborhood, slots_a_day=2, days=2, test_days=1, **more
    )
    learned, tested, finite = live(seeds, hyper)
    assert finite.all() and finite.shape == (3,)
    load = np.asarray(neighborhood.power)
    levels = jax.tree.map(lambda x: x[:, None], neighborhood.levels)
    standby = np.where(energy.classify_mode(load, levels) == STANDBY, load, 0) / 60
    daily = standby.reshape(6, 3, 2 * SLOT).sum((0, 2))
    for found, own in ((learned, daily[:2]), (tested, daily[2:])):
        assert found["minutes"].tolist() == [[6.0 * 2 * SLOT] * len(own)] * 3
        np.testing.assert_allclose(found["standby_wh"], [own] * 3, rtol=1e-4)
        assert (found["saved_wh"] <= found["standby_wh"] * (1 + 1e-5)).all()
        for one in found.values():
            np.testing.assert_allclose(
                one[0], one[1], rtol=1e-5
            )  # The same simulation twice.
    others = live(seeds[order], {name: x[order] for name, x in hyper.items()})
    close(others[:2], jax.tree.map(lambda x: x[order], (learned, tested)), rtol=1e-4)
    state = system().init(
        jax.random.split(jax.random.key(int(seeds[2])))[0],
        neighborhood,
        alpha=2,
        exploration_epsilon=0.1,
    )
    run_key = jax.random.split(jax.random.key(int(seeds[2])))[1]
    _, info = energy.simulate(system(), run_key, state, neighborhood, 4)
    for name, one in info.items():
        own = np.float64(one).reshape(2, -1).sum(1)
        np.testing.assert_allclose(learned[name][2], own, rtol=1e-3, atol=1e-2)
