"""DEEProtect's release: how far features can be apart, and what their noise hides."""

import functools
import math

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.methods import deeprotect_release as releasing
from jaxanon.methods.deeprotect_config import DEEProtectConfig
from jaxanon.methods.deeprotect_range import in_range
from jaxanon.models import tied

RANGE = {"low": (0.0, 0.0), "high": (20.0, 20.0)}
CURVES = pytest.mark.parametrize("curve", ["sigmoid", "linear"])


@functools.cache
def layers():
    return tied.init(jax.random.key(5), (32, 8, 4))


def config(**settings):
    given = {**RANGE, "hidden": (8, 4), "mechanism": "laplace", "radius": None}
    return DEEProtectConfig(**given | settings)


def test_sensitivities_by_hand():
    """The corrected ones of 30 numbers and 7 features, and the published."""

    def told(count, l2=30**0.5, **settings):
        apart = releasing.Apart(l2, 1.0)
        found = releasing.sensitivities(
            config(hidden=(7,), **settings), count, 30, apart
        )
        return {name: round(value, 3) for name, value in found.items()}

    one = told(1, curve="sigmoid")
    assert one == {"l1": 3.623, "l2": 1.369, "linf": 1.0}  # √(7 x 30)/4, √30/4.
    assert told(2, curve="sigmoid") == {"l1": 0.906, "l2": 0.342, "linf": 0.342}
    assert told(1) == {"l1": 14.492, "l2": 5.477}
    assert told(1, radius=0.5) == {"l1": 2.646, "l2": 1.0}
    # Features in (0, 1) are no more than 7 apart.
    assert told(1, 99.0, curve="sigmoid")["l1"] == 7.0
    assert told(1, sensitivity="published") == {"l1": 79.373}  # √7 x 30.


@functools.cache
def features_of_pairs(curve, radius):
    """``(key of the weights, two windows) -> features``, and how far they may be."""
    own = config(curve=curve, radius=radius, mechanism="none")
    apart = releasing.anything(32)

    @jax.jit
    def features(key, pair):
        weights_key, noise_key = jax.random.split(key)
        own_layers = tied.init(weights_key, (32, 8, 4))
        return releasing.release(
            noise_key, own, own_layers, pair, jnp.full((1, 32), 0.4), apart
        )

    return features, releasing.sensitivities(own, 2, 32, apart)


@CURVES
@hypothesis.given(st.integers(0, 2**16), st.booleans())
def test_no_two_windows_have_features_further_apart_than_it_is_said(curve, seed, bold):
    pair = np.random.default_rng(seed).uniform(size=(2, 32))
    pair = np.float32(np.round(pair) if bold else pair)  # Corners are furthest apart.
    for radius in (None, 0.3):
        features, told = features_of_pairs(curve, radius)
        sent = features(jax.random.key(seed), pair)
        apart = np.asarray(sent[0] - sent[1], np.float64)
        assert np.abs(apart).sum() <= told["l1"] * (1 + 1e-5)
        assert np.linalg.norm(apart) <= told["l2"] * (1 + 1e-5)
        assert np.abs(apart).max() <= told.get("linf", np.inf) * (1 + 1e-5)


def log_ratio(sent, one, other, scale):
    """Log of the ratio of Laplace densities, ``float[draws]``, from the exact law."""
    size = lambda x: np.abs(sent - x).sum(1) / scale
    return size(other) - size(one)


def released(unit, count, **settings):
    """Features of one window, released so many times."""
    own, apart = config(**settings), releasing.anything(len(unit))
    windows = jnp.broadcast_to(jnp.asarray(unit)[None], (count, len(unit)))
    usual = jnp.full((1, len(unit)), 0.4)
    send = lambda key, x: releasing.release(key, own, layers(), x, usual, apart)
    return np.asarray(jax.jit(send)(jax.random.key(0), windows))


def standard(data, windows):
    return (windows - np.float32(data.spec.mean)) / np.float32(data.spec.std)


def test_no_release_tells_more_than_epsilon_and_one_scaled_by_the_data_does(data):
    """By the density of a million draws, for windows at both ends of the range."""
    own, inputs = config(), 32
    # Of all corners, those that this autoencoder tells apart the most.
    product = np.asarray(layers()[1].kernel @ layers()[0].kernel)
    far = np.float32(product[np.abs(product).sum(1).argmax()] > 0)
    ends = [tied.encode(layers(), x[None], own.curve)[0] for x in (far, 1 - far)]
    one, other = (np.asarray(end, np.float64) for end in ends)
    told = releasing.sensitivities(own, 2, inputs, releasing.anything(inputs))
    sent = released(far, 1_000_000, epsilon=2.0)
    ratio = log_ratio(sent, one, other, told["l1"] / 2.0)
    assert ratio.max() <= 2.0 * (1 + 1e-4)
    # The paper's scale is of windows that were seen. They do not reach the ends.
    unit = in_range(data.spec, own, jnp.asarray(standard(data, data.train.windows)))
    seen = tied.encode(layers(), unit, own.curve)
    local = float(jnp.sum(seen.max(0) - seen.min(0)))
    noise = np.random.default_rng(0).laplace(scale=local / 2.0, size=(100_000, 4))
    ratio = log_ratio(one + noise, one, other, local / 2.0)
    assert ratio.max() > 2.0 * 1.2


@pytest.mark.parametrize("mechanism", ["laplace", "grid", "l2", "linf", "priv unit"])
def test_every_mechanism_sends_features_that_are_right_on_average(mechanism):
    """Within four standard errors; the noise of no window is another's."""
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
    "priv unit": {"mechanism": "priv unit", "radius": 0.4},
    "within the span": {"mechanism": "span", "mode": "named", "radius": 0.4},
    "l2 within the span": {"mechanism": "span", "mode": "named"},
}


@functools.cache
def pair_released(name, scale):
    """Many features of each of two neighbours, seen along their difference.

    They differ along one direction, by all that the range allows; ``scale`` is of the
    distance that the noise is told of.
    """
    own = config(**AUDITED[name], epsilon=1.5)
    product = np.asarray(layers()[1].kernel @ layers()[0].kernel)
    direction = jnp.asarray(np.sign(product[:1]))
    apart = releasing.Apart(scale * math.sqrt(32), 1.0)
    draws = 1_000_000 if name in ("laplace", "priv unit") else 200_000

    @jax.jit
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
    """The largest log ratio of counts, less four of its standard errors."""
    edges = np.quantile(np.concatenate(sent), np.linspace(0, 1, 41))
    edges = np.unique(edges)
    one, other = (np.histogram(each, edges)[0] for each in sent)
    many = (one > 1000) & (other > 1000)
    error = np.sqrt(1 / one[many] + 1 / other[many])
    return float(np.max(np.abs(np.log(one[many] / other[many])) - 4 * error))


@pytest.mark.parametrize("name", sorted(AUDITED))
def test_counts_of_releases_differ_by_epsilon_at_most(name):
    assert 0.2 < most_told(pair_released(name, 1.0)) <= 1.5


@pytest.mark.parametrize("name", ["laplace", "l2", "l2 within the span"])
def test_counts_find_noise_that_is_too_small(name):
    assert most_told(pair_released(name, 0.2)) > 1.5
