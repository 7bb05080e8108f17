"""Tests of DEEProtect's release: sensitivities, and the noise that hides them."""

import functools
import math
import os
import subprocess
import sys

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optimized import optimized
from scipy import stats

from jaxanon.methods.deeprotect import release as releasing
from jaxanon.methods.deeprotect.config import DEEProtectConfig, in_range
from jaxanon.models import deeprotect

pytestmark = pytest.mark.slow

RANGE = {"low": (0.0, 0.0), "high": (20.0, 20.0)}
CURVES = pytest.mark.parametrize("curve", ["sigmoid", "linear"])


@functools.cache
def layers():
    return deeprotect.init_autoencoder(jax.random.key(5), (32, 8, 4))


def config(**settings):
    given = {**RANGE, "hidden_sizes": (8, 4), "mechanism": "laplace", "radius": None}
    return DEEProtectConfig(**given | settings)


def test_sensitivities_by_hand():
    """Compares corrected and published values for 30 inputs and 7 features."""

    def told(count, l2=30**0.5, **settings):
        apart = releasing.NeighborDistance(l2, 1.0)
        found = releasing.sensitivities(
            config(hidden_sizes=(7,), **settings), count, 30, apart
        )
        return {name: round(value, 3) for name, value in found.items()}

    one = told(1, curve="sigmoid")
    assert one == {"l1": 3.623, "l2": 1.369, "linf": 1.0}  # √(7 x 30)/4, √30/4.
    assert told(2, curve="sigmoid") == {"l1": 0.906, "l2": 0.342, "linf": 0.342}
    assert told(1) == {"l1": 14.492, "l2": 5.477}
    assert told(1, radius=0.5) == {"l1": 2.646, "l2": 1.0}
    # Features in (0, 1) are at most 7 apart.
    assert told(1, 99.0, curve="sigmoid")["l1"] == 7.0
    assert told(1, sensitivity="published") == {"l1": 79.373}  # √7 x 30.


@functools.cache
def features_of_pairs(curve, radius):
    """Returns ``(key, two windows) -> features``, and a bound on their distance."""
    own = config(curve=curve, radius=radius, mechanism="none")
    apart = releasing.anything(32)

    @jax.jit
    def features(key, pair):
        weights_key, noise_key = jax.random.split(key)
        own_layers = deeprotect.init_autoencoder(weights_key, (32, 8, 4))
        return releasing.release(
            noise_key, own, own_layers, pair, jnp.full((1, 32), 0.4), apart
        )

    return features, releasing.sensitivities(own, 2, 32, apart)


@CURVES
@hypothesis.given(st.integers(0, 2**16), st.booleans())
def test_no_two_windows_have_features_further_apart_than_it_is_said(curve, seed, bold):
    pair = np.random.default_rng(seed).uniform(size=(2, 32))
    pair = np.float32(np.round(pair) if bold else pair)  # Corners are most distant.
    for radius in (None, 0.3):
        features, told = features_of_pairs(curve, radius)
        sent = features(jax.random.key(seed), pair)
        apart = np.asarray(sent[0] - sent[1], np.float64)
        assert np.abs(apart).sum() <= told["l1"] * (1 + 1e-5)
        assert np.linalg.norm(apart) <= told["l2"] * (1 + 1e-5)
        assert np.abs(apart).max() <= told.get("linf", np.inf) * (1 + 1e-5)


def released(unit, count, **settings):
    """Returns features of one window, released repeatedly."""
    own, apart = config(**settings), releasing.anything(len(unit))
    windows = jnp.broadcast_to(jnp.asarray(unit)[None], (count, len(unit)))
    usual = jnp.full((1, len(unit)), 0.4)
    send = lambda key, x: releasing.release(key, own, layers(), x, usual, apart)
    return np.asarray(optimized(send)(jax.random.key(0), windows))


def standard(data, windows):
    return (windows - np.float32(data.spec.mean)) / np.float32(data.spec.std)


def test_noise_follows_its_law_and_a_tenth_less_does_not():
    """Compares a million features with Laplace noise by a Kolmogorov-Smirnov test."""
    far = np.float32(np.arange(32) % 2)
    exact = deeprotect.encode(layers(), jnp.asarray(far)[None], "linear")[0]
    told = releasing.sensitivities(config(), 2, 32, releasing.anything(32))
    sent = released(far, 250_000, epsilon=2.0) - np.asarray(exact)
    law = stats.laplace(scale=told["l1"] / 2.0)
    assert stats.kstest(sent.ravel(), law.cdf).pvalue > 1e-3
    assert stats.kstest(0.9 * sent.ravel(), law.cdf).pvalue < 1e-9


@pytest.mark.parametrize("mechanism", ["laplace", "grid", "l2", "linf", "privunit"])
def test_every_mechanism_sends_features_that_are_right_on_average(mechanism):
    """Checks within four standard errors that noise is independent across windows."""
    unit = np.full(32, 0.6, np.float32)
    exact = released(unit, 1, mechanism="none")[0]
    settings = {"mechanism": mechanism, "epsilon": 20.0, "radius": 1.0}
    sent = released(unit, 40_000, **settings)
    error = sent.std(0) / math.sqrt(len(sent))
    assert np.all(np.abs(sent.mean(0) - exact) < 4 * error) and (error > 0).all()
    assert len(np.unique(sent[:, 0])) > 1_000 and error.max() < 0.02
    again = released(unit, 40_000, **settings)
    chex.assert_trees_all_equal(sent, again)


def test_rows_that_are_not_orthonormal_release_nothing():
    first, second = layers()
    longer = [first._replace(kernel=1.001 * first.kernel), second]
    apart = releasing.anything(32)
    sent = releasing.release(
        jax.random.key(0),
        config(),
        longer,
        jnp.full((3, 32), 0.5),
        jnp.full((1, 32), 0.5),
        apart,
    )
    assert sent.shape == (3, 4) and jnp.isnan(sent).all()


def test_values_out_of_the_public_range_are_clipped(data):
    own = config()
    windows = np.full((1, 16, 2), 25.0, np.float32)
    windows[0, 0], windows[0, 1] = (-3.0, 10.0), (5.0, 20.0)
    unit = in_range(data.spec, own, jnp.asarray(standard(data, windows)))
    np.testing.assert_allclose(unit[0, :4], [0, 0.5, 0.25, 1], atol=1e-6)
    assert (np.asarray(unit[0, 4:]) == 1).all()


AUDITED = {
    "laplace": {"mechanism": "laplace"},
    "l2": {"mechanism": "l2"},
    "linf": {"mechanism": "linf", "curve": "sigmoid"},
    "privunit": {"mechanism": "privunit", "radius": 0.4},
    "within the span": {"mechanism": "span", "mode": "named", "radius": 0.4},
    "l2 within the span": {"mechanism": "span", "mode": "named"},
}


DRAWS = {"laplace": 1_000_000, "privunit": 300_000}


@functools.cache
def pair_released(name, l2, epsilon=1.5):
    """Returns features of two neighbours, projected on their difference.

    The neighbours differ along one direction, by the full width of the range. ``l2`` is
    the distance for which the noise is calibrated.
    """
    own = config(**AUDITED[name], epsilon=epsilon)
    product = np.asarray(layers()[1].kernel @ layers()[0].kernel)
    direction = jnp.asarray(np.sign(product[:1]))
    apart = releasing.NeighborDistance(l2, 1.0)
    draws = DRAWS.get(name, 200_000)

    @optimized
    def send(key, unit):
        windows = jnp.broadcast_to(unit[None], (draws, 32))
        usual = jnp.full((1, 32), 0.5)
        sent = releasing.release(
            key, own, layers(), windows, usual, apart, directions=direction
        )
        return sent @ jnp.asarray(product) @ direction[0] / 32

    ends = [0.5 + 0.5 * direction[0], 0.5 - 0.5 * direction[0]]
    keys = jax.random.split(jax.random.key(11))
    return [np.asarray(send(key, end)) for key, end in zip(keys, ends, strict=True)]


def most_told(sent):
    """Returns the largest log ratio of counts, less four of its standard errors."""
    edges = np.quantile(np.concatenate(sent), np.linspace(0, 1, 41))
    edges = np.unique(edges)
    one, other = (np.histogram(each, edges)[0] for each in sent)
    many = (one > 1000) & (other > 1000)
    error = np.sqrt(1 / one[many] + 1 / other[many])
    return float(np.max(np.abs(np.log(one[many] / other[many])) - 4 * error))


ROOT = math.sqrt(32)  # Maximum distance of two windows of 32 values.


@pytest.mark.parametrize("name", sorted(AUDITED))
def test_counts_of_releases_differ_by_epsilon_at_most(name):
    assert 0.05 < most_told(pair_released(name, ROOT)) <= 1.5


@pytest.mark.parametrize("name", ["laplace", "l2", "l2 within the span"])
def test_counts_find_noise_that_is_too_small(name):
    assert most_told(pair_released(name, 0.2 * ROOT)) > 1.5


@pytest.mark.parametrize("name", ["privunit", "within the span"])
def test_counts_find_a_larger_epsilon(name):
    assert 1.5 < most_told(pair_released(name, ROOT, epsilon=2.5)) <= 2.5


def test_counts_find_a_sensitivity_that_is_estimated_from_data(data):
    """Uses the paper's estimate from observed windows, which other windows exceed."""
    unit = in_range(
        data.spec, config(), jnp.asarray(standard(data, data.train.windows))
    )
    local = float(jnp.linalg.norm(unit.max(0) - unit.min(0)))
    assert local < 0.8 * ROOT
    assert most_told(pair_released("l2 within the span", local)) > 1.5


def test_the_baseline_near_the_mean_may_be_stretched_in_l1():
    """Checks clipping to a radius, which may increase the L1 distance of neighbours."""
    settings = {"features": "window", "hidden_sizes": (30,), "mode": "named"}
    apart = releasing.along(jnp.eye(30)[:1])
    near = config(**settings, radius=0.5)
    told = releasing.sensitivities(near, 1, 30, apart)
    away = jnp.full((2, 30), 0.5 / 29**0.5).at[:, 0].set(jnp.array([0.0, 1.0]))
    moved = releasing.bring_in(away, 0.5)
    stretched = float(jnp.sum(jnp.abs(moved[0] - moved[1])))
    assert 1.0 < stretched <= told["l1"]
    alone = releasing.sensitivities(config(**settings), 1, 30, apart)
    assert alone["l1"] == pytest.approx(1.0)


ONE_CORE = """
import jax, jax.numpy as jnp
from jaxanon.methods.deeprotect.release import along

# What waits for another program is run in XLA's thread, of which there is one.
two = jax.jit(lambda x: 0 * (x @ x)[:1, :2] + jnp.array([[1.0, 0.5]]))(jnp.eye(2000))
told = jax.jit(lambda numbers: along(jnp.pad(2 * numbers, ((0, 0), (0, 29_998)))))(two)
print(*map(float, told))
"""


def test_long_windows_are_reckoned_with_on_one_core():
    """Checks that copying 120 kB of directions does not deadlock one thread."""
    words = [sys.executable, "-P", "-c", ONE_CORE]
    env = os.environ | {"NPROC": "1"}
    said = subprocess.check_output(words, env=env, text=True, timeout=120)
    l2, per_input = map(float, said.split())
    assert l2 == pytest.approx(math.sqrt(1.25))  # Side to side, half along two.
    assert per_input == pytest.approx(1.5 / 30_000)


def test_a_window_that_is_clipped_is_no_neighbour():
    """Checks that the component across the span is released as clipped."""
    own = config(**AUDITED["l2 within the span"])
    direction = jnp.ones((1, 32))
    within = jnp.full((1, 32), 0.5).at[0, 0].set(0.9)
    beyond = jnp.clip(within + 0.6, 0, 1)
    across = []
    for window in (within, beyond):
        sent = releasing.release(
            *(jax.random.key(0), own, layers(), window, window),
            *(releasing.anything(32), direction),
        )
        kernel = layers()[1].kernel @ layers()[0].kernel
        along = kernel @ direction[0] / jnp.linalg.norm(kernel @ direction[0])
        across.append(sent[0] - (sent[0] @ along) * along)
    assert float(jnp.abs(across[0] - across[1]).max()) > 0.01
