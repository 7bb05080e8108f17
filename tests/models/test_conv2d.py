"""Convolutions of windows against XLA, and transposed ones against its gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxanon.models.conv2d import (
    PlaneConv,
    PlaneConvTranspose,
    batch_norm,
    logits,
    max_pool,
    to_planes,
)

DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def _layer(net, x):
    """Returns the layer's output and its weights, none of them 0."""
    shapes = jax.eval_shape(net.init, jax.random.key(0), x)["params"]
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda leaf: np.float32(rng.normal(size=leaf.shape)), shapes)
    return jax.jit(net.apply)({"params": params}, x), params


def _windows(*shape):
    return np.float32(np.random.default_rng(0).normal(size=shape))


@pytest.mark.parametrize(
    ("reach", "same"),
    [((2, 5), True), ((1, 3), True), ((1, 5), True), ((1, 5), False), ((1, 3), False)],
)
def test_a_convolution_is_xlas(reach, same):
    x = _windows(3, 4, 11, 2)
    found, params = _layer(PlaneConv(6, reach, same), x)
    expected = jax.lax.conv_general_dilated(
        x,
        params["kernel"],
        (1, 1),
        "SAME" if same else "VALID",
        dimension_numbers=DIMENSIONS,
    )
    np.testing.assert_allclose(
        found, expected + params["bias"][None, None, None], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("reach", [(2, 5), (1, 3)])
@pytest.mark.parametrize("stretch", [1, 2])
def test_a_transposed_one_is_the_gradient_of_xlas(reach, stretch):
    x = _windows(3, 4, 7, 2)
    found, params = _layer(PlaneConvTranspose(6, reach, stretch), x)
    kernel = np.swapaxes(params["kernel"], 2, 3)  # The transposed convolution's kernel.

    def back(wide):
        return jax.lax.conv_general_dilated(
            wide, kernel, (1, stretch), "SAME", dimension_numbers=DIMENSIONS
        )

    wide = jnp.zeros((3, 4, 7 * stretch, 6))
    (expected,) = jax.vjp(back, wide)[1](x)
    np.testing.assert_allclose(
        found, expected + params["bias"][None, None, None], rtol=1e-4, atol=1e-4
    )


def test_the_largest_of_samples():
    x = np.float32([1, 5, 2, 2, 9, 0, 7])[None, None, :, None]
    assert max_pool(x, 3).ravel().tolist() == [5, 9]
    assert max_pool(x, 3, rest=True).ravel().tolist() == [5, 9, 7]


def test_two_classes_have_one_unit():
    x = _windows(4, 3)

    class Head(nn.Module):
        classes: int

        @nn.compact
        def __call__(self, x):
            return logits(x, self.classes)

    two, params = _layer(Head(2), x)
    one = x @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"][None]
    assert params["Dense_0"]["kernel"].shape == (3, 1)
    # A sigmoid of the unit is the second class's probability.
    np.testing.assert_allclose(
        jax.nn.softmax(two)[:, 1:], 1 / (1 + np.exp(-one)), rtol=1e-4
    )
    assert _layer(Head(3), x)[1]["Dense_0"]["kernel"].shape == (3, 3)


def test_planes_are_channels_first():
    x = _windows(2, 5, 3)
    np.testing.assert_array_equal(to_planes(x)[..., 0], np.swapaxes(x, 1, 2))


def test_normalising_moves_the_averages_by_a_hundredth():
    class Norm(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            return batch_norm(x, train)

    x = 3 + _windows(50, 2, 4, 1)
    variables = Norm().init(jax.random.key(0), x, False)
    _, moved = Norm().apply(variables, x, True, mutable=["batch_stats"])
    found = moved["batch_stats"]["BatchNorm_0"]["mean"]
    np.testing.assert_allclose(found, [0.01 * x.mean()], rtol=1e-4)
