"""Tied autoencoders: outputs of a layer, and invariants of its projection."""

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon.models import deeprotect

LAYERS = deeprotect.init_autoencoder(jax.random.key(0), (6, 4, 2))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def moved(layers):
    """Returns the same parameters with non-zero biases."""
    return [
        layer._replace(
            encoder_bias=jnp.linspace(-1, 1, len(layer.encoder_bias)),
            decoder_bias=jnp.linspace(0, 2, len(layer.decoder_bias)),
        )
        for layer in layers
    ]


def test_layers_by_hand_one_window_at_a_time():
    layers = moved(LAYERS)
    windows = np.random.default_rng(0).uniform(size=(5, 6))
    features, rebuilt = [], []
    for x in windows:
        for kernel, bias, _ in layers:
            x = logistic(np.array([row @ x for row in np.asarray(kernel)]) + bias)
        features.append(x)
        for kernel, _, bias in reversed(layers):
            x = logistic(
                np.array([column @ x for column in np.asarray(kernel).T]) + bias
            )
        rebuilt.append(x)
    got = deeprotect.encode(layers, jnp.asarray(windows, jnp.float32))
    np.testing.assert_allclose(got, features, rtol=1e-5)
    np.testing.assert_allclose(deeprotect.decode(layers, got), rebuilt, rtol=1e-5)
    assert deeprotect.encode((), got) is got
    # Without the curve, the layers are one matrix product and a shift.
    straight = deeprotect.encode(LAYERS, jnp.asarray(windows, jnp.float32), "linear")
    product = np.asarray(LAYERS[1].kernel) @ np.asarray(LAYERS[0].kernel)
    np.testing.assert_allclose(straight, windows @ product.T, rtol=1e-4, atol=1e-6)
    back = deeprotect.decode(LAYERS, straight, "linear")
    np.testing.assert_allclose(
        back, windows @ product.T @ product, rtol=1e-4, atol=1e-6
    )


def test_rows_are_orthonormal_at_the_start_and_after_any_step():
    for layer in LAYERS:
        np.testing.assert_allclose(
            layer.kernel @ layer.kernel.T, np.eye(len(layer.kernel)), atol=1e-6
        )
    layer = LAYERS[0]
    step = jax.random.normal(jax.random.key(1), layer.kernel.shape)
    found = deeprotect.project(layer._replace(kernel=layer.kernel + 0.3 * step))
    np.testing.assert_allclose(found.kernel @ found.kernel.T, np.eye(4), atol=1e-6)
    # The nearest orthonormal rows have singular values of one.
    u, _, v = np.linalg.svd(layer.kernel + 0.3 * step, full_matrices=False)
    np.testing.assert_allclose(found.kernel, u @ v, atol=1e-5)
    chex.assert_trees_all_equal(found[1:], layer[1:])


@hypothesis.given(st.integers(0, 1000))
def test_no_two_windows_have_features_further_apart_than_a_quarter(seed):
    """Orthonormal rows do not stretch, and the logistic slope is at most 1/4."""
    one, other = np.random.default_rng(seed).uniform(size=(2, 1, 6)).astype(np.float32)
    layers = moved(LAYERS)
    for count in (1, 2):
        apart = deeprotect.encode(layers[:count], one) - deeprotect.encode(
            layers[:count], other
        )
        most = np.linalg.norm(one - other) / 4**count
        assert np.linalg.norm(apart) <= most * (1 + 1e-4) + 1e-6


def test_sparsity_is_the_relative_entropy_of_coins():
    features = jnp.array([[0.2, 0.9], [0.4, 0.9]])
    want = sum(stats.entropy([0.1, 0.9], [mean, 1 - mean]) for mean in (0.3, 0.9))
    assert float(deeprotect.sparsity(features, 0.1)) == pytest.approx(want, rel=1e-5)
    even = jnp.full((3, 2), 0.1)
    assert float(deeprotect.sparsity(even, 0.1)) == pytest.approx(0, abs=1e-6)
    assert jnp.isfinite(deeprotect.sparsity(jnp.zeros((3, 2)), 0.1))


def test_layers_do_not_grow():
    with pytest.raises(
        ValueError, match="hidden_sizes must not increase, got 8 features for 7 inputs"
    ):
        deeprotect.init_autoencoder(jax.random.key(0), (30, 7, 8))
