"""The evaluation network: published sizes, row layout, and dropout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.classifiers import Classifier


# The official networks' sizes: ObscureNet's activity, Blinder's activity, gender.
@pytest.mark.parametrize(("classes", "count"), [(5, 363749), (4, 363732), (1, 363681)])
def test_has_the_published_number_of_parameters(classes, count):
    shapes = jax.eval_shape(
        Classifier(classes).init, jax.random.key(0), jnp.zeros((1, 128, 2))
    )
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == count


def test_a_row_is_channel_after_channel():
    net = Classifier(1, hidden=(), drops=())
    windows = jnp.arange(6.0).reshape(1, 3, 2)  # Time 0..2 of channels x, y.
    kernel = jnp.arange(6.0).reshape(6, 1)
    params = {"params": {"Dense_0": {"kernel": kernel, "bias": jnp.zeros(1)}}}
    # [x0 x1 x2 y0 y1 y2] = [0 2 4 1 3 5] against weights 0..5.
    assert net.apply(params, windows)[0, 0] == 0 * 0 + 2 + 8 + 3 + 12 + 25


def _units(rate, key, drops=(True,)):
    """Returns the output of a wide identity layer with dropout for an input of ones."""
    net = Classifier(4096, hidden=(4096,), drops=drops)
    eye = {"kernel": jnp.eye(4096), "bias": jnp.zeros(4096)}
    params = {"params": {"Dense_0": eye, "Dense_1": eye}}
    return net.apply(params, jnp.ones((8, 4096, 1)), key, rate)


@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_dropout_drops_its_share_and_keeps_the_mean(rate):
    units = np.asarray(_units(rate, jax.random.key(0)))
    # 32,768 draws: five standard deviations are at most 0.014.
    assert abs(np.mean(units == 0) - rate) < 0.014
    np.testing.assert_allclose(units[units > 0], 1 / (1 - rate), rtol=1e-6)


def test_dropout_differs_between_rows_and_keys_and_can_be_off():
    units = np.asarray(_units(0.5, jax.random.key(0)))
    assert np.any(units[0] != units[1])
    assert np.any(units != np.asarray(_units(0.5, jax.random.key(1))))
    np.testing.assert_array_equal(_units(0.5, None), 1)
    np.testing.assert_array_equal(_units(0.0, jax.random.key(0)), 1)
    np.testing.assert_array_equal(_units(0.5, jax.random.key(0), (False,)), 1)
