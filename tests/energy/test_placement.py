"""Sharded simulation equals simulation in one program."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import DQNConfig, ForecastConfig, PFDRLConfig
from jaxanon.federated import ChannelConfig

SMALL = PFDRLConfig(
    forecast=ForecastConfig(kind="lr", lookback=10, ahead=20),
    forecaster_steps=1,
    forecaster_batch_size=4,
    dqn=DQNConfig(num_envs=2, batch_size=8, capacity=60),
    hidden_sizes=(6,),
    slot_min=20,
)


def test_kinds_are_dealt_out_whole_and_evenly():
    kinds = np.array([[0, 1, 2], [0, 1, 3], [0, 4, 3]])
    rng = np.random.default_rng(0)
    whole = energy.build_neighborhood(rng.uniform(0, 9, (3, 40, 3)), kinds)
    places, shards = energy.shard_neighborhood(whole, 2)
    # 0 has three agents, 1 and 3 two each, 2 and 4 one: 0 and 4 or 2, 1 and 3.
    assert sorted(map(len, places)) == [4, 5]
    assert sorted(np.concatenate(places)) == list(range(9))
    for own, part in zip(places, shards, strict=True):
        np.testing.assert_array_equal(part.agent_id, own)
        np.testing.assert_array_equal(part.power, whole.power[own])
        np.testing.assert_array_equal(part.levels.on, whole.levels.on[own])
        # All neighbors are in the same shard.
        np.testing.assert_allclose(part.neighbor_weights.sum(axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(part.server_weights.sum(axis=1), 1, rtol=1e-6)
    first, second = (set(np.asarray(part.kind).tolist()) for part in shards)
    assert not first & second
    assert len(energy.shard_neighborhood(whole, 9)[1]) == 5


def test_fewer_than_one_shard_is_refused():
    with pytest.raises(ValueError, match="num_shards must be >= 1, got 0"):
        energy.shard_neighborhood(energy.build_neighborhood(np.ones((1, 60, 1))), 0)


UNSURE = ChannelConfig(drop_probability=0.3, delay_probability=0.3, max_age=2)


@pytest.mark.parametrize("settings", [{"messages": UNSURE}, {"method": "cloud"}])
def test_apart_is_as_in_one_program(settings):
    made_up = energy.households(jax.random.key(5), 3, 1, energy.APPLIANCES[:2])
    neighborhood = energy.build_neighborhood(made_up.power[:, 600:1000])
    made = energy.pfdrl(PFDRLConfig(**vars(SMALL) | settings))
    hyper = {"alpha": 1, "beta_hours": 1 / 3, "gamma_hours": 1 / 3}  # Every slot.
    begun = made.init(jax.random.key(0), neighborhood, **hyper)
    places, shards = energy.shard_neighborhood(neighborhood, 2)
    states = energy.deal_state(made, begun, places, shards)
    for own, dealt in zip(shards, states, strict=True):
        chex.assert_trees_all_equal(dealt, made.init(jax.random.key(0), own, **hyper))
    key, before = jax.random.key(1), jax.tree.map(np.array, begun)
    state, info = energy.simulate(made, key, begun, neighborhood, 6)
    states, infos = energy.simulate_sharded(made, key, states, shards, 3)
    states, later = energy.simulate_sharded(made, key, states, shards, 3)
    for own, part, first, last in zip(places, states, infos, later, strict=True):
        found = np.concatenate([first["reward"], last["reward"]])
        np.testing.assert_allclose(found, np.array(info["reward"])[:, own], rtol=1e-5)
        for name, layer in part.control.params.items():
            whole = np.array(state.control.params[name]["kernel"])[own]
            np.testing.assert_allclose(layer["kernel"], whole, rtol=1e-4, atol=1e-6)
    found = energy.collect_state(before, states, places)
    for name in ("control", "fits", "slot", "hyper"):
        both = getattr(found, name), getattr(state, name)
        chex.assert_trees_all_close(*both, rtol=1e-4, atol=1e-6)
    if settings.get("messages"):
        assert found.fit_mail.round == 6
        for name in ("fit_mail", "control_mail"):
            sent = getattr(found, name).sent, getattr(state, name).sent
            chex.assert_trees_all_close(*sent, rtol=1e-4, atol=1e-6)
        heard = np.asarray(neighborhood.neighbor_weights) > 0
        of = lambda state: np.where(heard, state.fit_mail.age, -1)
        np.testing.assert_array_equal(of(found), of(state))
        assert {-1, 0, 1, 3} <= set(of(state).ravel().tolist())  # 3: expired.


def test_shards_draw_the_noise_of_the_whole():
    """Without training all broadcasts are noise, which differs between kinds."""
    made_up = energy.households(jax.random.key(5), 2, 1, energy.APPLIANCES[:2])
    neighborhood = energy.build_neighborhood(made_up.power[:, 600:1000])
    made = energy.pfdrl(PFDRLConfig(**vars(SMALL) | {"noise_multiplier": 1.0}))
    hyper = {"alpha": 1, "beta_hours": 1.0, "gamma_hours": 1.0}
    start = lambda own: made.init(
        jax.random.key(0), own, **hyper, forecaster_learning_rate=0.0, learning_rate=0.0
    )
    key, begun = jax.random.key(1), start(neighborhood)
    before = np.array(begun.fit_mail.public["dense_1"]["kernel"])
    places, shards = energy.shard_neighborhood(neighborhood, 2)
    dealt = energy.deal_state(made, begun, places, shards)
    again = energy.collect_state(jax.tree.map(jnp.zeros_like, begun), dealt, places)
    public = lambda state: (state.fit_mail.public, state.control_mail.public)
    chex.assert_trees_all_equal(public(again), public(begun))
    state, _ = energy.simulate(made, key, begun, neighborhood, 3)
    states = [start(own) for own in shards]
    states, _ = energy.simulate_sharded(made, key, states, shards, 3)
    noise = np.zeros((4, before[0].size))
    for own, part in zip(places, states, strict=True):
        for mail in ("fit_mail", "control_mail"):
            told = getattr(part, mail).public["dense_1"]["kernel"]
            whole = np.array(getattr(state, mail).public["dense_1"]["kernel"])[own]
            np.testing.assert_allclose(told, whole, rtol=1e-5, atol=1e-6)
        told = part.fit_mail.public["dense_1"]["kernel"] - before[own]
        noise[own] = np.asarray(told).reshape(len(own), -1)
    alike = np.abs(np.corrcoef(noise) - np.eye(4)).max()
    assert alike < 5 / np.sqrt(noise.shape[1])
