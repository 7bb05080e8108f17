"""Convolutions against plain loops, and their gradients against derived ones."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.convolution import (
    NARROW,
    WIDE,
    Conv,
    _convolution,
    _product,
    convolve,
    fewer_products,
    overlap_add,
    patches,
)

# Input and output channels: few enough for a product with patches, or too many.
SIZES = [(3, 2), (NARROW + 1, NARROW + 2), (3, NARROW + 1), (NARROW + 1, 3)]


def _by_loops(x, kernel, widen):
    """Computes the definition, sample by sample."""
    size = len(kernel)
    if widen:
        x = jnp.pad(x, ((0, 0), (size - 1, size - 1), (0, 0)))
    rows = [
        sum(x[:, t + j] @ kernel[j] for j in range(size))
        for t in range(x.shape[1] - size + 1)
    ]
    return jnp.stack(rows, axis=1)


def _drawn(d_in, d_out):
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (2, 7, d_in), (4, d_in, d_out)
    return [jax.random.normal(key, s) for key, s in zip(keys, shapes, strict=False)]


@pytest.mark.parametrize("widen", [False, True])
@pytest.mark.parametrize(("d_in", "d_out"), SIZES)
def test_agrees_with_loops_gradients_too(d_in, d_out, widen):
    x, kernel = _drawn(d_in, d_out)

    def judged(function):
        loss = lambda x, kernel: jnp.sum(jnp.sin(function(x, kernel)))
        return jax.jit(jax.value_and_grad(loss, (0, 1)))(x, kernel)

    fast = judged(lambda x, kernel: convolve(x, kernel, widen=widen))
    slow = judged(lambda x, kernel: _by_loops(x, kernel, widen))
    chex.assert_trees_all_close(fast, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("edge", [(0, 0), (3, 3)])
def test_accelerators_compute_the_same(edge):
    # On a CPU, ``convolve`` covers only one of them.
    x, kernel = _drawn(NARROW + 1, NARROW + 2)
    run = lambda f: jax.jit(f, static_argnums=2)(x, kernel, edge)
    both = run(_convolution), run(_product)
    np.testing.assert_allclose(*both, rtol=1e-4, atol=1e-4)


def test_fewer_products_are_the_convolution_whatever_is_left_of_four():
    with jax.enable_x64(True):
        for time in range(3, 11):
            rng = np.random.default_rng(time)
            x, kernel = rng.normal(size=(2, time, 3)), rng.normal(size=(3, 3, 2))

            def judged(function, x=x, kernel=kernel):
                loss = lambda x, kernel: jnp.sum(jnp.sin(function(x, kernel)))
                return jax.jit(jax.value_and_grad(loss, (0, 1)))(x, kernel)

            fast = judged(fewer_products)
            slow = judged(lambda x, kernel: _by_loops(x, kernel, False))
            chex.assert_trees_all_close(fast, slow, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "d_in", "size", "share"),
    [
        ("float32", WIDE, 3, 0.5),
        ("bfloat16", WIDE, 3, 1.0),
        ("float32", WIDE - 1, 3, 1.0),
        ("float32", WIDE, 5, 1.0),
    ],
)
def test_a_cpu_multiplies_half_where_it_pays(dtype, d_in, size, share):
    x = jax.ShapeDtypeStruct((2, 32, d_in), dtype)
    kernel = jax.ShapeDtypeStruct((size, d_in, 64), dtype)
    edge = size // 2, size // 2
    traced = jax.make_jaxpr(lambda x, kernel: _product(x, kernel, edge))(x, kernel)
    (dot,) = (one for one in traced.eqns if one.primitive.name == "dot_general")
    products = math.prod(dot.outvars[0].aval.shape) * dot.invars[0].aval.shape[-1]
    assert products == share * 2 * 32 * size * d_in * 64


def test_patches_and_their_sum_are_each_others_transpose():
    keys = jax.random.split(jax.random.key(1))
    x = jax.random.normal(keys[0], (2, 6, 3))
    parts = jax.random.normal(keys[1], (2, 4, 9))
    one = jnp.vdot(patches(x, 3), parts)
    np.testing.assert_allclose(one, jnp.vdot(x, overlap_add(parts, 3)), rtol=1e-5)


@pytest.mark.parametrize(("widen", "fan_in"), [(False, 5 * 40), (True, 5 * 30)])
def test_starts_as_pytorch_does(widen, fan_in):
    # There a transposed convolution counts its 30 filters, not its 40 channels.
    net = Conv(30, 5, widen)
    params = jax.jit(net.init)(jax.random.key(2), jnp.zeros((1, 9, 40)))["params"]
    for leaf in jax.tree.leaves(params):
        assert abs(leaf).max() <= fan_in**-0.5
    # 6000 uniform draws miss the bound by that much with probability e^-30.
    assert abs(params["kernel"]).max() > 0.995 * fan_in**-0.5
    assert abs(params["bias"]).max() > 0.5 * fan_in**-0.5
