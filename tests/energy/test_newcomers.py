"""New homes: initialization from a trained neighborhood, and days until they save."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import DQNConfig, ForecastConfig, PFDRLConfig

SMALL = {
    "forecast": ForecastConfig(kind="bp", lookback=10, ahead=20, hidden_sizes=(4,)),
    "forecaster_steps": 1,
    "forecaster_batch_size": 4,
    "dqn": DQNConfig(num_envs=2, batch_size=8, capacity=60),
    "hidden_sizes": (6,),
    "slot_min": 20,
}
LAYERS = ("dense_1", "dense_2")
HOURLY = {"beta_hours": 1.0, "gamma_hours": 1.0, "alpha": 1, "exploration_epsilon": 0.2}


def watts(home, device):
    return np.tile([0.0] * 5 + [1.0 + home] * 10 + [50.0 * (1 + device)] * 5, 10)


def homes(numbers):
    power = np.stack([[watts(home, device) for device in range(2)] for home in numbers])
    return energy.build_neighborhood(np.moveaxis(power, 1, 2))


@functools.cache
def old():
    """Three homes, the third without its second device."""
    power = np.stack(
        [[watts(home, device) for device in range(2)] for home in range(3)]
    )
    power[2, 1] = np.nan
    return energy.build_neighborhood(np.moveaxis(power, 1, 2))


@functools.cache
def learned(method):
    """A system, and a state whose agents all differ: agent i has i + 1 everywhere."""
    system = energy.pfdrl(PFDRLConfig(**SMALL, method=method))
    state = system.init(jax.random.key(0), old(), **HOURLY)
    number = jnp.arange(1.0, 7)
    fill = lambda leaf: jnp.broadcast_to(
        number.reshape(-1, *[1] * (leaf.ndim - 1)), leaf.shape
    )
    return system, state._replace(
        fits=state.fits._replace(layers=jax.tree.map(fill, state.fits.layers)),
        control=state.control._replace(params=jax.tree.map(fill, state.control.params)),
    )


@pytest.mark.parametrize(
    ("method", "forecasts", "control"),
    [
        ("local", False, (False, False)),
        ("cloud", True, (False, False)),
        ("frl", True, (True, True)),
        ("pfdrl", True, (True, False)),
    ],
)
def test_newcomers_take_the_mean_of_their_kind_and_what_is_shared(
    method, forecasts, control
):
    system, state = learned(method)
    new = homes([4])
    found = energy.add_home(system, jax.random.key(1), state, old(), new)
    fresh = system.init(jax.random.key(1), new, **HOURLY)
    # Kinds are agents 1, 3, 5 and 2, 4; the sixth is absent.
    mean = jnp.array([3.0, 3.0])
    filled = lambda leaf: mean.reshape(-1, *[1] * (leaf.ndim - 1)) + 0 * leaf
    like = lambda given, leaves: jax.tree.map(filled, leaves) if given else leaves
    chex.assert_trees_all_close(found.fits.layers, like(forecasts, fresh.fits.layers))
    for name, shared in zip(LAYERS, control, strict=True):
        expected = like(shared, fresh.control.params[name])
        chex.assert_trees_all_close(found.control.params[name], expected)
    chex.assert_trees_all_equal(found.control.target, found.control.params)
    chex.assert_trees_all_equal(found.hyper, state.hyper)
    assert float(found.control.hyper["exploration_epsilon"][1]) == pytest.approx(0.2)
    assert int(found.slot) == 0 and not found.control.replay.count.any()
    chex.assert_trees_all_equal_shapes_and_dtypes(found, fresh)


def test_a_kind_that_the_neighborhood_lacks_begins_with_nothing():
    system, state = learned("pfdrl")
    new = homes([4])._replace(kind=jnp.array([1, 7], jnp.int32))
    found = energy.add_home(system, jax.random.key(1), state, old(), new)
    fresh = system.init(jax.random.key(1), new, **HOURLY)
    kernel = lambda state: state.control.params["dense_1"]["kernel"]
    assert (kernel(found)[0] == 3).all()
    np.testing.assert_array_equal(kernel(found)[1], kernel(fresh)[1])


@pytest.mark.slow
def test_new_homes_and_the_neighborhood_continue():
    system, state = learned("pfdrl")
    new = homes([4, 5])
    own = energy.add_home(system, jax.random.key(1), state, old(), new)
    own, info = energy.simulate(system, jax.random.key(2), own, new, 3)
    assert info["saved_wh"].shape == (3, 4) and int(own.slot) == 3
    kernel = lambda name: own.control.params[name]["kernel"]
    # After an hour they exchange models.
    np.testing.assert_allclose(kernel("dense_1")[0], kernel("dense_1")[2], atol=1e-6)
    assert not np.allclose(kernel("dense_2")[0], kernel("dense_2")[2], atol=1e-6)
    # Only the buffers of the new homes were donated.
    assert float(state.hyper["alpha"]) == 1
    assert (state.control.params["dense_1"]["kernel"][5] == 6).all()


def test_days_until_a_share_of_the_final_saving():
    """Two slots a day; the second home has no standby on its first day."""
    standby = np.array([[5, 0], [5, 0], [4, 2], [6, 2], [5, 1], [5, 3], [9, 9]])
    saved = np.array([[0, 0], [4, 0], [4, 2], [5, 1], [5, 1], [5, 3], [0, 0]])
    found = energy.days_to_reach(saved, standby, 2, fraction=0.9, last=1)
    # Fractions 0.4, 0.9, 1 and none, 0.75, 1; slot 7 is an incomplete day.
    assert found.days.tolist() == [2, 3] and found.final.tolist() == [1, 1]
    assert energy.days_to_reach(saved, standby, 2, fraction=0.7).days.tolist() == [2, 2]


def test_what_saves_nothing_in_the_end_reaches_nothing():
    x = np.ones((6, 2))
    for saved in (0 * x, np.repeat([1.0, 0.0], 3)[:, None] * x):
        found = energy.days_to_reach(saved, x, 1)
        assert found.days.tolist() == [0, 0] and found.final.tolist() == [0, 0]
    none = energy.days_to_reach(0 * x, 0 * x, 2)
    assert none.days.tolist() == [0, 0] and none.final.tolist() == [0, 0]


def test_a_saving_has_to_stay():
    saved = np.array([9, 9, 2, 9, 9, 9.0])[:, None]
    assert energy.days_to_reach(saved, 10 + 0 * saved, 1).days.tolist() == [4]
    # A day without standby is ignored.
    standby = np.array([10, 10, 0, 0, 10, 10.0])[:, None]
    saved = np.array([0, 9, 0, 0, 9, 9.0])[:, None]
    assert energy.days_to_reach(saved, standby, 1).days.tolist() == [2]
    saved[1] = 0
    assert energy.days_to_reach(saved, standby, 1).days.tolist() == [5]


def test_who_switches_all_off_has_reached_nothing():
    """A home that saves everything from day 1 and is in use half of the time."""
    saved = np.ones((5, 1))
    optimal = np.array([50, 50, 94, 95.1, 100.0])[:, None]
    times = {"optimal": optimal, "minutes": 100 * saved, "last": 1}
    assert energy.days_to_reach(saved, saved, 1).days.tolist() == [1]
    assert energy.days_to_reach(saved, saved, 1, **times).days.tolist() == [4]
    with pytest.raises(TypeError, match="optimal and minutes must be given together"):
        energy.days_to_reach(saved, saved, 1, optimal=optimal)


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((6,), {}, r"must be float\[slots, homes\], got shapes \(6,\)"),
        ((6, 1), {"last": 0}, r"last must be in \[1, 3\]"),
        ((6, 1), {"fraction": 0}, r"fraction must be in \(0, 1\], got 0"),
        ((6, 1), {"last": 4}, r"last must be in \[1, 3\], the number of whole days"),
        ((1, 1), {}, r"last must be in \[1, 0\]"),
    ],
)
def test_days_say_what_is_wrong(shape, settings, message):
    with pytest.raises(ValueError, match=message):
        energy.days_to_reach(np.ones(shape), np.ones(shape), 2, **settings)
