"""New homes and energy costs, for random layers, kinds and prices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import energy

numbers = st.floats(0, 1e4, width=32)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=1), numbers)
def test_energy_costs_its_price(pairs, price):
    used, each = np.float32(pairs).T
    np.testing.assert_allclose(energy.cents(used, each), used * each / 1e3, rtol=1e-5)
    np.testing.assert_allclose(energy.cents(used, price), used * price / 1e3, rtol=1e-5)


@functools.cache
def shards():
    """Three briefly trained homes and two new ones, by kinds of device."""
    config = energy.PFDRLConfig(
        forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
        **{
            "dqn": energy.DQNConfig(batch_size=4),
            "hidden_sizes": (6, 6),
            "slot_min": 10,
        },
    )
    system = energy.pfdrl(config)
    day = np.tile([0.0] * 10 + [2.0] * 30 + [80.0] * 20, 4)
    watts = np.arange(1, 4)[:, None, None] * day[None, :, None]
    old, new = (
        energy.build_neighborhood(watts),
        energy.build_neighborhood(watts[:2] * 1.3),
    )
    state = system.init(jax.random.key(0), old, alpha=0)
    join = jax.jit(lambda key, state: energy.add_home(system, key, state, old, new))
    return state, join


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 3), st.integers(0, 2**16))
def test_new_homes_have_the_mean_of_shared_layers(alpha, seed):
    state, join = shards()
    rng = np.random.default_rng(seed)
    drawn = lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype)
    control = state.control._replace(params=jax.tree.map(drawn, state.control.params))
    state = state._replace(
        control=control, hyper=state.hyper | {"alpha": jnp.int32(alpha)}
    )
    own = join(jax.random.key(seed), state).control.params
    assert len(own) == 3
    for number, name in enumerate(sorted(own), start=1):
        for leaf, before in zip(
            jax.tree.leaves(own[name]),
            jax.tree.leaves(control.params[name]),
            strict=True,
        ):
            mean = np.broadcast_to(np.mean(before, axis=0), leaf.shape)
            shared = np.allclose(leaf, mean, atol=1e-5)
            assert shared == (number <= alpha)
