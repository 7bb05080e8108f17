"""Factors agree with the products that they represent."""

import math
import re

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import kernels

pytestmark = pytest.mark.slow


def random_factors(seed, rows, d_in, d_out, *lead):
    rng = np.random.default_rng(seed)
    draw = lambda last: jnp.asarray(rng.normal(size=(*lead, rows, last)))
    return kernels.Factors(draw(d_in), draw(d_out))


def dense_gradient(factors):
    return jnp.einsum("...ri,...ro->...io", *factors)


def two_layers(params, x):
    h = jnp.tanh(kernels.matmul(x, params["first"]) + params["bias"][None])
    return jnp.sum(jnp.square(kernels.matmul(h, params["second"])))


def parameters(d_in=30, width=20, d_out=25):
    keys = jax.random.split(jax.random.key(0), 3)
    return {
        "first": jax.random.normal(keys[0], (d_in, width)),
        "bias": jax.random.normal(keys[1], (width,)),
        "second": jax.random.normal(keys[2], (width, d_out)),
    }


@jax.jit
def step(params, x, size):
    """Returns the parameters after one gradient descent step, and its gradients."""
    _, grads = kernels.value_and_grad(two_layers)(params, x)
    return kernels.sgd_step(params, grads, size), grads


sizes = st.integers(1, 6)


@hypothesis.settings(max_examples=8, deadline=None)
@hypothesis.given(rows=sizes, other=sizes, d_in=sizes, d_out=sizes)
def test_norms_and_inner_products_are_those_of_the_matrices(rows, other, d_in, d_out):
    with jax.enable_x64():
        a = random_factors(1, rows, d_in, d_out)
        b = random_factors(2, other, d_in, d_out)
        one, other = (np.einsum("ri,ro->io", *factors) for factors in (a, b))
        both = jax.jit(
            lambda a, b: (kernels.inner_product(a, b), kernels.squared_norm(a))
        )
        product, norm = both(a, b)
        np.testing.assert_allclose(product, np.sum(one * other), atol=1e-10)
        np.testing.assert_allclose(norm, np.sum(one**2), atol=1e-10)


def test_squared_norm_of_cancelling_rows_is_not_negative():
    # Rows that cancel up to rounding: the Gram form sums to either sign.
    def both(key):
        row, other = jax.random.split(key)
        row = 100 * jax.random.normal(row, (1, 5))
        other = jax.random.normal(other, (1, 7))
        inputs = jnp.concatenate([row, row])
        cotangents = jnp.concatenate([other, -other * (1 + 1e-7)])
        factors = kernels.Factors(inputs, cotangents)
        return kernels.inner_product(factors, factors), kernels.squared_norm(factors)

    products, norms = jax.vmap(both)(jax.random.split(jax.random.key(0), 50))
    assert jnp.any(products < 0) and jnp.all(norms >= 0)


def test_weighted_sum_leaves_out_weight_zero_and_sums_the_rest():
    factors = random_factors(3, 2, 4, 5, 3)
    weights = jnp.array([2.0, 0.0, 0.5])
    expected = jnp.einsum("c,cio->io", weights, dense_gradient(factors))
    got = kernels.weighted_sum(factors, weights)
    chex.assert_trees_all_close(got, expected, rtol=1e-5)


def test_gradient_steps_agree_with_plain_ones_over_several_steps():
    params, x = parameters(), jax.random.normal(jax.random.key(1), (2, 30))
    with jax.enable_x64():
        params, x = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), (params, x))
        plain = kept = params
        slope = jax.jit(jax.grad(two_layers))
        for _ in range(3):
            grads = slope(plain, x)
            plain = jax.tree.map(lambda p, g: p - 0.01 * g, plain, grads)
            kept, grads = step(kept, x, 0.01)
        assert kept["first"].factors.inputs.shape == (6, 30)  # 3 steps of 2 rows.
        # Entries are of order 1; one that nearly cancels keeps the others' rounding
        # error.
        dense = jax.jit(kernels.materialize)(kept)
        chex.assert_trees_all_close(dense, plain, rtol=1e-12, atol=1e-14)
        multiplied = jax.jit(kernels.materialize_gradient)(grads)
        chex.assert_trees_all_equal_shapes(multiplied, params)


def _one_step(params, support):
    _, grads = kernels.value_and_grad(two_layers)(params, support)
    return kernels.sgd_step(params, grads, 1e-3)


def _two_steps(params, support):
    loss = lambda params, x: two_layers(params["net"], x)
    phases = [kernels.Phase(("net",), loss, 1e-3, num_steps=2)]
    return kernels.adapt(phases, {"net": params}, support)["net"]


@pytest.mark.parametrize("adapt", [_one_step, _two_steps])
def test_no_client_gets_a_copy_of_a_layer_that_stays_factored(adapt):
    clients, params = 7, parameters()

    def mean(params, x):
        each = jax.vmap(lambda x: two_layers(adapt(params, x), x))
        return jnp.mean(each(x))

    x = jnp.ones((clients, 1, 30))
    text = jax.jit(jax.grad(mean)).lower(params, x).compile().as_text()
    shapes = re.findall(r"f32\[([\d,]+)\]", text)
    sizes = {math.prod(map(int, shape.split(","))) for shape in shapes}
    # The layers are 30 x 20 and 20 x 25; other products have different sizes.
    assert {600, 500} <= sizes
    assert not {clients * 600, clients * 500} & sizes


def test_a_matrix_is_given_up_when_its_factors_would_be_larger():
    # 30 x 20 is cheaper factored below 600 / 50 = 12 rows: two steps of 5 fit, three do
    # not.
    params, x = parameters(), jnp.ones((5, 30))
    kinds = []
    for _ in range(3):
        params, _ = step(params, x, 1e-3)
        kinds.append(isinstance(params["first"], kernels.FactoredKernel))
    assert kinds == [True, True, False]


def test_a_matrix_used_twice_has_the_factors_of_both_products():
    def loss(params, x):
        twice = kernels.matmul(kernels.matmul(x, params["twice"]), params["twice"])
        return jnp.sum(jnp.sin(twice)) + jnp.sum(jnp.cos(x @ params["plain"]))

    params = {"twice": jnp.eye(40) / 2, "plain": jnp.ones((40, 40)) / 9}
    x = jax.random.normal(jax.random.key(0), (1, 40))
    value, grads = jax.jit(kernels.value_and_grad(loss))(params, x)
    assert [len(grads[name].inputs) for name in ("twice", "plain")] == [2, 1]
    got = value, kernels.materialize_gradient(grads)
    expected = jax.jit(jax.value_and_grad(loss))(params, x)
    chex.assert_trees_all_close(got, expected, rtol=1e-6, atol=1e-7)


REPEATS = {
    "scan": lambda layer, x: jax.lax.scan(
        lambda total, row: (total + layer(row[None]), None), 0 * x[:1], x
    )[0],
    "vmap": lambda layer, x: jax.vmap(lambda row: layer(row[None]))(x),
    "map": lambda layer, x: jax.lax.map(lambda row: layer(row[None]), x),
    "jit twice": lambda layer, x: jax.jit(layer)(x[:1]) * jax.jit(layer)(x[1:2]),
    "one jit twice": lambda layer, x: _twice(jax.jit(layer), x),
    "remat": lambda layer, x: jax.checkpoint(layer)(x[:1]),
    "cond": lambda layer, x: jax.lax.cond(x[0, 0] > 9, lambda: 0 * x, lambda: layer(x)),
    "grad": lambda layer, x: jax.grad(lambda x: jnp.sum(jnp.sin(layer(x))))(x),
}


def _twice(layer, x):
    return layer(x[:1]) * layer(x[1:2])


@pytest.mark.parametrize("how", REPEATS)
def test_a_product_that_is_traced_once_and_run_often_counts_often(how):
    x = jax.random.normal(jax.random.key(2), (3, 40))
    params = {"w": jax.random.normal(jax.random.key(3), (40, 40)) / 9}

    def loss(params, x):
        layer = lambda rows: jnp.tanh(kernels.matmul(rows, params["w"]))
        return jnp.sum(jnp.square(REPEATS[how](layer, x)))

    value, grads = jax.jit(kernels.value_and_grad(loss))(params, x)
    got = value, kernels.materialize_gradient(grads)
    expected = jax.jit(jax.value_and_grad(loss))(params, x)
    chex.assert_trees_all_close(got, expected, rtol=1e-4, atol=1e-5)


def test_a_factored_kernel_is_an_array_to_everything_else():
    change = random_factors(4, 1, 3, 3)
    kernel = kernels.FactoredKernel(jnp.eye(3), change)
    expected = jnp.eye(3) - dense_gradient(change)
    chex.assert_trees_all_close(jnp.sin(kernel), jnp.sin(expected), rtol=1e-6)
    assert kernel.shape == (3, 3) and kernel.ndim == 2
    assert kernel.dtype == jnp.float32 and "rows=1" in repr(kernel)


def test_half_precision_stays_half_precision():
    params = jax.tree.map(lambda a: a.astype(jnp.bfloat16), parameters())
    x = jnp.ones((1, 30), jnp.bfloat16)
    stepped, _ = step(params, x, jnp.bfloat16(0.1))
    assert stepped["first"].factors.cotangents.dtype == jnp.bfloat16
    product = jax.eval_shape(kernels.matmul, x, stepped["first"])
    assert product.dtype == jnp.bfloat16


def test_norms_and_sums_of_half_precision_are_taken_in_float32():
    # 300 * 300 exceeds float16's largest number, and so does the squared norm 600².
    half = kernels.Factors(jnp.full((2, 1), 300.0), jnp.array([[1.0], [1.0]]))
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), half)
    norm = kernels.squared_norm(half)
    assert norm.dtype == jnp.float32 and float(norm) == 360_000
    # Numbers above 4096 are 4 apart in float16: sequential sums lose small ones.
    many = kernels.Factors(
        jnp.ones((4, 1, 1), jnp.float16),
        jnp.array([4096.0, 1.0, 1.0, 2.0], jnp.float16).reshape(4, 1, 1),
    )
    total = kernels.weighted_sum(many, jnp.ones(4))
    assert total.dtype == jnp.float16 and float(total[0, 0]) == 4100


def test_factored_product_wants_rows():
    kernel = kernels.FactoredKernel(jnp.eye(3), random_factors(0, 1, 3, 3))
    with pytest.raises(ValueError, match=r"x must be float\[rows, d_in\].*\(3,\)"):
        kernels.matmul(jnp.ones(3), kernel)


def test_weighted_sum_wants_a_weight_for_each_client():
    factors = random_factors(0, 1, 3, 4, 2)
    for weights, shape in ((jnp.ones(3), r"\(3,\)"), (jnp.ones((2, 1)), r"\(2, 1\)")):
        with pytest.raises(ValueError, match=f"one entry of weights per.*and {shape}"):
            kernels.weighted_sum(factors, weights)
    with pytest.raises(ValueError, match=r"float\[clients, r, .*got shapes \(1, 3\)"):
        kernels.weighted_sum(random_factors(0, 1, 3, 4), jnp.ones(1))


def test_what_does_not_fit_is_refused():
    factors, wider = random_factors(0, 1, 3, 4), random_factors(1, 1, 5, 4)
    with pytest.raises(TypeError, match="dot_general|matmul"):
        kernels.inner_product(factors, wider)
    with pytest.raises(ValueError, match="metadata|mismatch"):
        kernels.sgd_step({"a": jnp.ones(2)}, {"b": jnp.ones(2)}, 0.1)
    vector = lambda params, x: kernels.matmul(x, params)[0]
    with pytest.raises(TypeError, match="scalar-output"):
        kernels.value_and_grad(vector)(jnp.eye(3), jnp.ones((1, 3)))
