"""PFDRL on simulated homes: training, absent devices, and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import DQNConfig, ForecastConfig, PFDRLConfig

SMALL = PFDRLConfig(
    forecast=ForecastConfig(kind="lr", lookback=10, ahead=20),
    forecaster_steps=2,
    forecaster_batch_size=4,
    dqn=DQNConfig(num_envs=2, batch_size=8, capacity=60),
    hidden_sizes=(6,),
    slot_min=20,
)


def test_a_device_that_a_home_lacks_counts_for_nothing():
    made_up = energy.households(jax.random.key(5), 3, 1, energy.APPLIANCES[:2])
    power = np.array(made_up.power[:, 900:1000])
    power[1, :, 1] = np.nan
    made, neighborhood = energy.pfdrl(SMALL), energy.build_neighborhood(power)
    state = made.init(
        jax.random.key(0), neighborhood, alpha=1, beta_hours=1.0, gamma_hours=1.0
    )
    state, info = energy.simulate(made, jax.random.key(1), state, neighborhood, 3)
    assert not any(found[:, 3].any() for found in info.values())
    kernel = state.control.params["dense_1"]["kernel"]
    np.testing.assert_allclose(kernel[1], kernel[5], atol=1e-6)
    assert not np.allclose(kernel[1], kernel[3], atol=1e-3)


def test_pfdrl_learns_to_switch_standby_off():
    made_up = energy.households(jax.random.key(2), 3, 4, energy.APPLIANCES[:2])
    config = PFDRLConfig(
        forecast=ForecastConfig(kind="lr"),
        forecaster_steps=1,
        dqn=DQNConfig(num_envs=2),
        hidden_sizes=(24, 24, 24),
    )
    neighborhood = energy.build_neighborhood(
        np.asarray(made_up.power), learn_minutes=3 * 1440
    )
    made = energy.pfdrl(config)
    hyper = {
        "alpha": 2,
        "exploration_epsilon": 0.2,
        "discount": 0.5,
        "learning_rate": 3e-3,
    }
    state = made.init(jax.random.key(0), neighborhood, **hyper)
    state, info = energy.simulate(made, jax.random.key(1), state, neighborhood, 72)
    test_days = jax.vmap(lambda slot: made.act(state, neighborhood, slot))
    did = jax.jit(test_days)(jnp.arange(72, 96))
    found = energy.summarize_slot(
        did, neighborhood.present[None] | jnp.zeros((24, 1), bool)
    )
    total = {name: float(one.sum()) for name, one in found.items()}
    first = {name: float(one[:3].sum()) for name, one in info.items()}
    assert total["optimal"] / total["minutes"] > 0.97
    assert total["saved_wh"] / total["standby_wh"] > 0.95
    assert total["switched_off"] <= 0.03 * total["in_use"]
    # Untrained agents fail this.
    assert first["optimal"] / first["minutes"] < 0.9


@pytest.mark.parametrize("ahead", [20, 30])
def test_minutes_that_have_not_happened_teach_nothing(ahead):
    """Later minutes do not change the first three slots."""
    forecast = ForecastConfig(kind="lr", lookback=10, ahead=ahead)
    made = energy.pfdrl(PFDRLConfig(**vars(SMALL) | {"forecast": forecast}))
    rng = np.random.default_rng(0)
    power = rng.choice([0.0, 2.0, 80.0], (3, 100, 2))
    other = power.copy()
    other[:, 60:] = 80.0 - power[:, 60:]
    hyper = {"alpha": 1, "beta_hours": 1.0, "gamma_hours": 1.0}
    found = []
    for watts in (power, other):
        neighborhood = energy.build_neighborhood(watts, learn_minutes=60)
        state = made.init(jax.random.key(0), neighborhood, **hyper)
        state, _ = energy.simulate(made, jax.random.key(1), state, neighborhood, 3)
        found.append([np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)])
    assert found[0] == found[1]


def test_environments_share_a_slot_evenly():
    with pytest.raises(ValueError, match="dqn.num_envs must divide slot_min"):
        PFDRLConfig(dqn=DQNConfig(num_envs=4), slot_min=30)


@pytest.mark.parametrize(
    ("hyper", "error", "message"),
    [
        ({"gama": 3}, TypeError, r"init takes the hyper-parameters \['alpha', 'beta_"),
        ({"alpha": 3}, ValueError, r"alpha must be a whole number in \[0, 2\]"),
        (
            {"alpha": 1.5},
            ValueError,
            r"alpha must be a whole number .* got 1.5; set alpha",
        ),
        ({"alpha": 1, "beta_hours": np.nan}, ValueError, "beta_hours must be at least"),
        (
            {},
            ValueError,
            r"alpha must be a whole number in \[0, 2\].* got 6, its default; set",
        ),
        (
            {"alpha": 1, "gamma_hours": 0.1},
            ValueError,
            "gamma_hours must be at least one slot .20",
        ),
    ],
)
def test_hyper_parameters_are_checked(hyper, error, message):
    with pytest.raises(error, match=message):
        energy.pfdrl(SMALL).init(jax.random.key(0), None, **hyper)
