"""Factored updates agree with separate dense matrices of the clients."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import kernels
from jaxanon.kernels.factored import cases, reference

SMALL = [name for name in cases.CASES if name != "cohort"]
STEP_SIZE = 0.1


@functools.cache
def solved(name):
    """Solves all clients together by factors, and one by one by the reference."""
    case = cases.CASES[name]
    of = lambda matmul: functools.partial(cases.loss, matmul=matmul)
    with jax.enable_x64():
        params, batches = cases.problem(case, jax.random.key(0))

        @jax.jit
        @functools.partial(jax.vmap, in_axes=(None, 0))
        def fast(params, batch):
            for _ in range(case.num_steps):
                loss, grads = kernels.value_and_grad(of(kernels.matmul))(params, batch)
                params = kernels.sgd_step(params, grads, STEP_SIZE)
            return params, loss, grads

        client = jax.jit(
            lambda batch: reference.client(
                of(jnp.matmul), params, batch, STEP_SIZE, case.num_steps
            )
        )
        return fast(params, batches), [client(batch) for batch in batches]


def of_client(tree, i):
    return jax.tree.map(lambda leaf: leaf[i], tree)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_each_client_ends_where_plain_gradient_steps_end(name):
    (params, losses, grads), expected = solved(name)
    with jax.enable_x64():
        params = jax.vmap(kernels.materialize)(params)
        grads = kernels.materialize_gradient(grads)
        for i, (own, loss, gradient) in enumerate(expected):
            got = of_client((params, losses, grads), i)
            chex.assert_trees_all_close(got, (own, loss, gradient), rtol=1e-11)


def test_cases_keep_factors_as_long_as_these_pay():
    kinds = {}
    for name in SMALL:
        (params, _, _), _ = solved(name)
        kinds[name] = [
            isinstance(params[layer], kernels.FactoredKernel)
            for layer in ("first", "second")
        ]
        rows, widths = cases.CASES[name].held, cases.CASES[name].widths
        pairs = itertools.pairwise(widths)
        # rows (a + b) < a b, by hand for each case.
        assert kinds[name] == [rows * (a + b) < a * b for a, b in pairs]
    assert kinds["steps"] == [True, True] and kinds["given_up"] == [False, False]


@pytest.mark.parametrize("name", ["one_row", "steps", "one_client"])
def test_sums_norms_and_products_are_those_of_the_clients_matrices(name):
    (_, _, grads), _ = solved(name)
    factors = grads["first"]
    clients = len(factors.inputs)
    with jax.enable_x64():
        inputs, cotangents = map(np.asarray, factors)
        dense = list(map(reference.gradient, inputs, cotangents))
        weights = np.linspace(0.5, 2.0, clients)
        got = kernels.weighted_sum(factors, jnp.asarray(weights))
        expected = reference.weighted_sum(dense, weights)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-14)

        norms = [reference.squared_norm(matrix) for matrix in dense]
        np.testing.assert_allclose(kernels.squared_norm(factors), norms, rtol=1e-11)
        left = jax.tree.map(lambda leaf: leaf[:, None], factors)
        right = jax.tree.map(lambda leaf: leaf[None], factors)
        got = kernels.inner_product(left, right)
        expected = [[reference.inner_product(a, b) for b in dense] for a in dense]
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14)


def test_the_reference_is_right_by_hand():
    # Rows (1, 2) and (0, 1) with 3 and 4: (1, 2) 3 + (0, 1) 4 = (3, 10).
    matrix = reference.gradient(np.array([[1, 2], [0, 1]]), np.array([[3], [4]]))
    assert matrix.tolist() == [[3], [10]]
    assert reference.squared_norm(matrix) == 109
    total = reference.weighted_sum([matrix, 2 * matrix], [1, 0.5])
    assert total.tolist() == [[6], [20]]
    # Loss w x: the gradient is x = 3, and two steps of 0.5 take 3 from w.
    loss = lambda params, x: params["w"] * x
    own, value, grads = reference.client(loss, {"w": jnp.array(5.0)}, 3.0, 0.5, 2)
    assert (own["w"], value, grads["w"]) == (2, 10.5, 3)
