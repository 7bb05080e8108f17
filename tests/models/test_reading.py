"""Attribute classifiers of windows: their losses by hand, and that they learn."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

from jaxanon.models import deeprotect

EACH = pytest.mark.parametrize("inference", ["ridge", "logistic", "network"])


def standard(x):
    return (x - x.mean(0)) / x.std(0)


def test_scores_and_losses_by_hand():
    rng = np.random.default_rng(0)
    windows, labels = rng.uniform(size=(6, 3)), np.array([0, 1, 2, 1, 0, 2])
    kernel, bias = rng.normal(size=(3, 3)), rng.normal(size=3)
    params = {"kernel": jnp.asarray(kernel), "bias": jnp.asarray(bias)}
    told = standard(windows) @ kernel + bias
    got = deeprotect.predict_scores(params, jnp.asarray(windows))
    np.testing.assert_allclose(got, told, rtol=1e-4, atol=1e-5)
    ridge = np.mean(np.sum((told - np.where(np.eye(3)[labels], 1, -1)) ** 2, 1))
    entropy = -np.mean(special.log_softmax(told, 1)[np.arange(6), labels])
    for inference, want in (("ridge", ridge), ("logistic", entropy)):
        found = deeprotect.loss(params, inference, jnp.asarray(windows), labels)
        assert float(found) == pytest.approx(want, rel=1e-4)
    assert float(deeprotect.squared_norm(params)) == pytest.approx(np.sum(kernel**2))


@EACH
def test_windows_that_hardly_differ_are_read_all_the_same(inference):
    """Windows of two flat curves per layer differ as little as this."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=256)
    windows = 0.5 + 1e-4 * (labels[:, None] == np.arange(3)) + 1e-5 * rng.normal(size=3)
    windows = jnp.asarray(windows + 2e-5 * rng.normal(size=(256, 3)), jnp.float32)
    params = deeprotect.init_classifier(jax.random.key(0), inference, 3, 3)
    optimizer = optax.adam(0.05)
    loss = lambda params: deeprotect.loss(params, inference, windows, labels)

    @jax.jit
    def step(params, state):
        grads = jax.grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state

    state = optimizer.init(params)
    for _ in range(100):
        params, state = step(params, state)
    guesses = deeprotect.predict_scores(params, windows).argmax(1)
    assert np.mean(guesses == labels) > 0.95


@EACH
def test_squares_are_of_weights_and_not_of_biases(inference):
    params = deeprotect.init_classifier(jax.random.key(0), inference, 4, 2)
    moved = {n: x + 1 if "bias" in n else x for n, x in params.items()}
    assert deeprotect.squared_norm(moved) == deeprotect.squared_norm(params) > 0
