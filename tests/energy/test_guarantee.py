"""Noise on broadcasts: ε against a closed form, and runs with and without noise."""

import functools
import math

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from jaxanon import energy
from jaxanon.energy import DQNConfig, ForecastConfig, PFDRLConfig, guarantee

SMALL = functools.partial(
    PFDRLConfig,
    forecast=ForecastConfig(kind="lr", lookback=10, ahead=20),
    forecaster_steps=1,
    forecaster_batch_size=4,
    dqn=DQNConfig(num_envs=4, batch_size=8, capacity=60),
    hidden_sizes=(6,),
    slot_min=20,
)


def gaussian_epsilon(mu, delta):
    """ε of a µ-GDP mechanism (Balle and Wang 2018, theorem 8), by bisection."""

    def spare(epsilon):
        first = stats.norm.cdf(mu / 2 - epsilon / mu)
        return first - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)

    return optimize.brentq(lambda epsilon: spare(epsilon) - delta, 0, 600)


@pytest.mark.parametrize("z", [5.0, 30.0])
@pytest.mark.parametrize("devices", [1, 4])
def test_epsilon_is_that_of_gaussian_composition(z, devices):
    config = PFDRLConfig(noise_multiplier=z)
    told = energy.broadcast_epsilon(
        config, 5 * 24, 1e-5, beta_hours=12.0, gamma_hours=24.0, devices=devices
    )
    # Ten broadcasts of forecasters and five of Q-networks, of every device.
    expected = gaussian_epsilon(math.sqrt(15 * devices) / z, 1e-5)
    assert expected <= told * (1 + 1e-6) <= 1.01 * expected


def test_little_noise_is_told_by_an_upper_bound():
    told = energy.broadcast_epsilon(PFDRLConfig(noise_multiplier=0.2), 24, 1e-5)
    expected = gaussian_epsilon(2 / 0.2, 1e-5)  # Four broadcasts.
    assert guarantee.MIN_PLD_MULTIPLIER == 0.1
    assert expected <= told * (1 + 1e-6) <= 1.01 * expected
    more = energy.broadcast_epsilon(PFDRLConfig(noise_multiplier=0.1), 24, 1e-5)
    assert gaussian_epsilon(2 / 0.1, 1e-5) <= more <= 2.2 * gaussian_epsilon(20, 1e-5)


def test_what_is_not_broadcast_costs_nothing():
    ask = functools.partial(energy.broadcast_epsilon, delta=1e-5)
    noisy = PFDRLConfig(noise_multiplier=5.0)
    assert ask(noisy, 11) == 0
    assert ask(PFDRLConfig(), 11) == 0 and ask(PFDRLConfig(), 12) == math.inf
    assert ask(noisy, 24, alpha=0) == ask(noisy, 24, gamma_hours=48.0) < ask(noisy, 24)


HOURS = {"beta_hours": 1.0, "gamma_hours": 0.7}  # Every three slots, and every two.


@functools.cache
def home():
    made_up = energy.households(jax.random.key(5), 2, 1, energy.APPLIANCES[:1])
    return energy.build_neighborhood(np.asarray(made_up.power[:, :240]))


@functools.cache
def lived(**settings):
    """The state after six slots."""
    made = energy.pfdrl(SMALL(**settings))
    state = made.init(jax.random.key(0), home(), alpha=1, **HOURS)
    return energy.simulate(made, jax.random.key(1), state, home(), 6)[0]


@pytest.mark.slow
def test_broadcasts_are_those_of_a_run():
    config, state = SMALL(noise_multiplier=1.0), lived(noise_multiplier=1.0)
    assert state.fit_mail.mail.round == energy.num_broadcasts(config, 6, 1.0) == 2
    assert state.control_mail.mail.round == energy.num_broadcasts(config, 6, 0.7) == 3
    assert energy.num_broadcasts(config, 7, 0.7) == 3  # The last one followed slot 6.


@pytest.mark.slow
def test_noise_parts_homes_that_would_agree_and_none_changes_nothing():
    """Without noise nothing is clipped: a clip norm of 1e-6 has no effect."""
    kernels = {
        name: np.asarray(lived(**settings).control.params["dense_1"]["kernel"])
        for name, settings in {
            "none": {"noise_multiplier": 0.0, "clip_norm": 1e-6},
            "hardly": {"noise_multiplier": 1e-9, "clip_norm": 1e3},
            "noisy": {"noise_multiplier": 1.0},
        }.items()
    }
    np.testing.assert_allclose(kernels["none"], kernels["hardly"], atol=1e-4)
    np.testing.assert_allclose(*kernels["none"], atol=1e-6)
    assert np.abs(np.subtract(*kernels["noisy"])).max() > 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip_norm": 0.0}, "clip_norm must be finite and > 0, got 0.0"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be finite and >= 0"),
        ({"method": "frl", "noise_multiplier": 1.0}, "must be 0 for 'frl'"),
    ],
)
def test_noise_out_of_range_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        PFDRLConfig(**settings)


@pytest.mark.parametrize(
    ("config", "slots", "more", "message"),
    [
        (PFDRLConfig(method="fl"), 24, {}, "method must be 'pfdrl', got 'fl'"),
        (PFDRLConfig(), -1, {}, "num_slots must be >= 0, got -1"),
        (PFDRLConfig(), 24, {"devices": 0}, "devices must be >= 1, got 0"),
    ],
)
def test_budgets_that_there_are_not_are_refused(config, slots, more, message):
    with pytest.raises(ValueError, match=message):
        energy.broadcast_epsilon(config, slots, 1e-5, **more)


def test_new_homes_get_nothing_but_what_was_broadcast():
    """Layers that were never broadcast, set to 99, do not reach new homes."""
    neighborhood, made = home(), energy.pfdrl(SMALL(noise_multiplier=1.0))
    state = made.init(jax.random.key(0), neighborhood, alpha=1)
    secret = lambda tree: jax.tree.map(lambda leaf: 99 + 0 * leaf, tree)
    state = state._replace(
        fits=state.fits._replace(layers=secret(state.fits.layers)),
        control=state.control._replace(params=secret(state.control.params)),
    )
    joined = energy.add_home(made, jax.random.key(1), state, neighborhood, neighborhood)
    for own, mail, theirs in (
        (joined.fits.layers, joined.fit_mail, state.fit_mail),
        (joined.control.params, joined.control_mail, state.control_mail),
    ):
        told = own["dense_1"]["kernel"]
        np.testing.assert_allclose(told, theirs.public["dense_1"]["kernel"])
        # The public layers equal the initial ones.
        np.testing.assert_array_equal(mail.public["dense_1"]["kernel"], told)
        assert all(abs(leaf).max() < 50 for leaf in jax.tree.leaves(own))
