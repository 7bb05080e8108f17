"""Tests of target classes: next, random, or either, with their probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.methods.common.target_class import shown_class, shown_vector

PREDICTED = jnp.tile(jnp.arange(3), 2000)


def _shares(kind, flip=0.5, flip_direction="next"):
    """Returns target-class frequencies by predicted class, ``float[3, 3]``."""
    shown = shown_class(jax.random.key(0), kind, PREDICTED, 3, flip, flip_direction)
    assert shown.dtype == jnp.int32
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (np.asarray(PREDICTED), np.asarray(shown)), 1 / 2000)
    return pairs


def test_the_next_class_comes_round():
    np.testing.assert_allclose(_shares("deterministic"), np.eye(3)[[1, 2, 0]])


def test_or_the_one_before():
    # The authors' program for MobiAct's weight maps 0 to 2, 1 to 0 and 2 to 1.
    before = _shares("deterministic", flip_direction="previous")
    np.testing.assert_allclose(before, np.eye(3)[[2, 0, 1]])
    moved = _shares("probabilistic", 0.2, "previous")
    expected = 0.2 * np.eye(3)[[2, 0, 1]] + 0.8 * np.eye(3)
    np.testing.assert_allclose(moved, expected, atol=0.05)


def test_a_uniform_class_says_nothing_of_the_wearer():
    # 4.5 standard deviations of a share; a draw among other classes would leave a zero.
    np.testing.assert_allclose(_shares("stochastic"), 1 / 3, atol=0.048)


@pytest.mark.parametrize("flip", [0.5, 0.2])
def test_a_flip_has_its_probability(flip):
    expected = flip * np.eye(3)[[1, 2, 0]] + (1 - flip) * np.eye(3)
    np.testing.assert_allclose(_shares("probabilistic", flip), expected, atol=0.05)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_vector_is_of_random_weights(classes):
    rows = np.asarray(shown_vector(jax.random.key(1), 20_000, classes))
    assert rows.shape == (20_000, classes) and rows.min() >= 0
    np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(rows.mean(0), 1 / classes, atol=0.01)
    # r is uniform in [0, 1]; u / (u + v + w) uses the midpoints of 60 slices.
    slices = (np.arange(60) + 0.5) / 60
    u, v, w = np.meshgrid(slices, slices, slices)
    deviation = 12**-0.5 if classes == 2 else np.std(u / (u + v + w))
    np.testing.assert_allclose(rows.std(0), deviation, rtol=0.02)
