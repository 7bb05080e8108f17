"""The class that a window shows: next, any, or either, in the promised shares."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.methods.shown import shown_class

PREDICTED = jnp.tile(jnp.arange(3), 2000)


def _shares(kind, flip=0.5):
    """``float[3, 3]``: for each predicted class, how often each class is shown."""
    shown = shown_class(jax.random.key(0), kind, PREDICTED, 3, flip)
    assert shown.dtype == jnp.int32
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (np.asarray(PREDICTED), np.asarray(shown)), 1 / 2000)
    return pairs


def test_the_next_class_comes_round():
    np.testing.assert_allclose(_shares("deterministic"), np.eye(3)[[1, 2, 0]])


def test_a_uniform_class_says_nothing_of_the_wearer():
    # 4.5 standard deviations of a share; a draw among other classes would leave a zero.
    np.testing.assert_allclose(_shares("stochastic"), 1 / 3, atol=0.048)


@pytest.mark.parametrize("flip", [0.5, 0.2])
def test_a_flip_has_its_probability(flip):
    expected = flip * np.eye(3)[[1, 2, 0]] + (1 - flip) * np.eye(3)
    np.testing.assert_allclose(_shares("probabilistic", flip), expected, atol=0.05)
