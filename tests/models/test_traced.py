"""Networks are traced once, however often a program applies them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxanon.models import convolution
from jaxanon.models.layers import apply

TRACED = []


class Scale(nn.Module):
    """Multiplication by a parameter, which records each trace."""

    sizes: tuple | list = ()

    @nn.compact
    def __call__(self, x):
        TRACED.append(x.shape)
        return x * self.param("scale", nn.initializers.constant(3.0), ())


def test_a_program_traces_it_once_for_each_shape():
    params, x = {"scale": jnp.float32(3.0)}, jnp.arange(4.0)

    def loss(params, x):
        # Equal networks share their traces.
        first, second = apply(Scale(), params, x), apply(Scale(), params, 2 * x)
        return jnp.sum(first + second) + jnp.sum(apply(Scale(), params, x[:2]))

    TRACED.clear()
    value, grads = jax.jit(jax.value_and_grad(loss))(params, x)
    assert TRACED == [(4,), (2,)]
    assert float(value) == 3 * (3 * 6 + 1) and float(grads["scale"]) == 3 * 6 + 1


def test_it_says_what_the_network_says():
    net, x = Scale(), jnp.arange(4.0)
    params = net.init(jax.random.key(0), x)["params"]
    np.testing.assert_array_equal(
        apply(net, params, x), net.apply({"params": params}, x)
    )


def test_a_field_that_cannot_be_hashed_is_refused():
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        apply(Scale([1]), {"scale": jnp.float32(3.0)}, jnp.arange(4.0))


def test_convolutions_of_a_shape_are_traced_once(monkeypatch):
    product, traced = convolution._product, []

    def noted(x, kernel, edge):
        traced.append(x.shape)
        return product(x, kernel, edge)

    monkeypatch.setattr(convolution, "_product", noted)
    # Shapes unique to this test.
    x, kernel = jnp.ones((2, 9, 21)), jnp.ones((3, 21, 21))
    twice = lambda x: convolution.convolve(convolution.convolve(x, kernel), kernel)
    jax.jit(lambda x: (twice(x), twice(2 * x)))(x)
    assert traced == [(2, 9, 21), (2, 7, 21)]
