"""Confusion losses by hand, and their minima."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon.models.losses import (
    CONFUSIONS,
    confusion,
    distance_from_uniform,
    kernel_squares,
    weighted_cross_entropy,
)

ROW = jnp.log(jnp.array([[0.2, 0.5, 0.3]]))
LABEL = jnp.array([0])


def test_by_hand():
    chance = -(np.log(0.2) + np.log(0.5) + np.log(0.3)) / 3
    np.testing.assert_allclose(confusion(ROW, LABEL), chance, rtol=1e-5)
    # 1 - .2 of the true class, 1 - .5 of the most probable one.
    released = -np.log(0.8) - np.log(0.5)
    np.testing.assert_allclose(confusion(ROW, LABEL, "official"), released, rtol=1e-5)
    off = (1 / 3 - 0.2 + 0.5 - 1 / 3 + 1 / 3 - 0.3) / 3
    np.testing.assert_allclose(distance_from_uniform(ROW), off, rtol=1e-5)


def test_of_two_classes_chance_is_cross_entropy_against_a_half():
    one = jnp.array([1.7, -0.3])
    two = jnp.stack([jnp.zeros(2), one], axis=1)
    expected = optax.sigmoid_binary_cross_entropy(one, jnp.full(2, 0.5)).mean()
    np.testing.assert_allclose(confusion(two, jnp.array([0, 1])), expected, rtol=1e-5)
    halves = jnp.mean(jnp.abs(0.5 - jax.nn.sigmoid(one)))
    np.testing.assert_allclose(distance_from_uniform(two), halves, rtol=1e-5)


@pytest.mark.parametrize(
    ("variant", "classes", "least"),
    [
        ("chance", 2, [1 / 2, 1 / 2]),
        ("chance", 3, [1 / 3, 1 / 3, 1 / 3]),
        ("official", 2, [1 / 2, 1 / 2]),
        # Its minimum reveals which class is wrong.
        ("official", 3, [1e-6, 1 / 2, 1 / 2]),
    ],
)
def test_where_it_is_least(variant, classes, least):
    # All probabilities in steps of a thirtieth; none is exactly 0.
    steps = np.stack(np.meshgrid(*[np.arange(31)] * classes), -1).reshape(-1, classes)
    grid = np.float32(np.maximum(steps[steps.sum(1) == 30] / 30, 1e-6))
    one = lambda row: confusion(jnp.log(row)[None], LABEL, variant)
    found = jax.jit(jax.vmap(one))(grid)
    np.testing.assert_allclose(grid[np.argmin(found)], least, atol=1e-5)


@pytest.mark.parametrize("variant", CONFUSIONS)
def test_the_surest_reader_has_a_finite_gradient(variant):
    sure = jnp.array([[60.0, 0.0, 0.0]])
    grad = jax.grad(confusion)(sure, LABEL, variant)
    assert np.isfinite(grad).all() and grad[0, 0] > 0.3


def test_weights_of_rows():
    logits = jnp.array([[0.0, 1.0], [2.0, 0.0], [5.0, 0.0]])
    labels, weights = jnp.array([0, 1, 1]), jnp.array([3.0, 1.0, 0.0])
    found = weighted_cross_entropy(logits, labels, weights)
    expected = (3 * np.log(1 + np.e) + np.log(1 + np.e**2)) / 4
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert weighted_cross_entropy(logits, labels, jnp.zeros(3)) == 0


def test_squares_are_of_kernels_alone():
    params = [{"a": {"kernel": jnp.full((2, 2), 3.0), "bias": jnp.ones(2)}}]
    params.append({"b": {"kernel": jnp.ones((4, 1)), "scale": jnp.ones(2)}})
    assert kernel_squares(params) == 36
    assert kernel_squares({}) == 0
