"""Factored updates, inner loops and memory of drawn shapes, against matrices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels

pytestmark = pytest.mark.slow

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**16)
sizes = st.sampled_from((1, 3))


def draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def factors(seed, *lead, rows, d_in, d_out):
    return kernels.Factors(
        jnp.asarray(draw(seed, *lead, rows, d_in)),
        jnp.asarray(draw(seed + 1, *lead, rows, d_out)),
    )


def product(thin):
    left, right = (np.asarray(one, np.float64) for one in thin)
    return np.swapaxes(left, -1, -2) @ right


@few
@given(seed=seeds, rows=sizes, d_in=sizes, d_out=sizes, size=st.floats(-2, 2, width=32))
def test_steps_of_factors_are_steps_of_the_matrix(seed, rows, d_in, d_out, size):
    """Compares after two steps, for rows that meet the kernel and for the gradient."""
    kernel, x = draw(seed, d_in, d_out), draw(seed + 9, 4, d_in)
    moved, params = kernel.astype(np.float64), {"kernel": jnp.asarray(kernel)}
    for step in range(2):
        thin = factors(seed + 2 * step, rows=rows, d_in=d_in, d_out=d_out)
        params = kernels.sgd_step(params, {"kernel": thin}, size)
        whole = kernels.materialize_gradient({"kernel": thin})["kernel"]
        np.testing.assert_allclose(whole, product(thin), rtol=1e-4, atol=1e-5)
        moved = moved - size * product(thin)
    np.testing.assert_allclose(
        kernels.materialize(params)["kernel"], moved, rtol=1e-4, atol=1e-4
    )
    met = kernels.matmul(jnp.asarray(x), params["kernel"])
    np.testing.assert_allclose(met, x @ moved, rtol=1e-3, atol=1e-3)


@few
@given(
    seed=seeds, rows=sizes, d_in=sizes, d_out=sizes, steps=st.sampled_from((0, 1, 3))
)
def test_steps_in_a_loop_are_plain_steps(seed, rows, d_in, d_out, steps):
    """Compares with gradient descent on a squared error in float64."""
    kernel, x = draw(seed, d_in, d_out), draw(seed + 1, rows, d_in)
    y = draw(seed + 2, rows, d_out)
    loss_fn = lambda params, x, y: jnp.sum((x @ params["kernel"] - y) ** 2)
    moved = kernels.sgd_steps(
        loss_fn,
        {"kernel": jnp.asarray(kernel)},
        x,
        y,
        learning_rate=0.02,
        num_steps=steps,
    )
    wide = kernel.astype(np.float64)
    for _ in range(steps):
        wide = wide - 0.02 * 2 * x.T @ (x @ wide - y)
    near = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(kernels.materialize(moved)["kernel"], wide, **near)
    value = kernels.apply_factored(loss_fn, moved, x, y)
    np.testing.assert_allclose(value, np.sum((x @ wide - y) ** 2), **near)


@few
@given(seed=seeds, rows=sizes, other=sizes, d_in=sizes, d_out=sizes, lead=st.booleans())
def test_products_and_norms_are_those_of_matrices(seed, rows, other, d_in, d_out, lead):
    before = (2,) if lead else ()
    one = factors(seed, *before, rows=rows, d_in=d_in, d_out=d_out)
    two = factors(seed + 5, *before, rows=other, d_in=d_in, d_out=d_out)
    near = {"rtol": 1e-4, "atol": 1e-4}
    expected = (product(one) * product(two)).sum(axis=(-1, -2))
    np.testing.assert_allclose(kernels.inner_product(one, two), expected, **near)
    squared = (product(one) ** 2).sum(axis=(-1, -2))
    np.testing.assert_allclose(kernels.squared_norm(one), squared, **near)


@few
@given(
    seed=seeds,
    rows=sizes,
    d_in=sizes,
    d_out=sizes,
    weights=st.lists(st.sampled_from((0.0, 1.0, -0.5)), min_size=3, max_size=3),
)
def test_a_sum_over_clients_is_by_their_weights(seed, rows, d_in, d_out, weights):
    each = factors(seed, 3, rows=rows, d_in=d_in, d_out=d_out)
    found = kernels.weighted_sum(each, jnp.asarray(weights))
    expected = np.tensordot(weights, product(each), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="weights"):
        kernels.weighted_sum(each, jnp.ones(2))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@few
@given(seed=seeds, batch=sizes, time=sizes, d_in=sizes, features=sizes)
def test_a_memory_goes_as_the_loop_over_time(seed, batch, time, d_in, features):
    x = draw(seed, batch, time, d_in)
    kernel, recurrent = (
        draw(seed + 1, d_in, 4 * features),
        draw(seed + 2, features, 4 * features),
    )
    bias = draw(seed + 3, 4 * features)
    found = kernels.lstm(x, kernel, recurrent, bias)
    h = c = np.zeros((batch, features))
    for t in range(time):
        gates = x[:, t] @ kernel + h @ recurrent + bias
        i, f, g, o = np.split(gates.astype(np.float64), 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(found[:, t], h, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="recurrent"):
        kernels.lstm(x, kernel, recurrent[:, 1:], bias)


def loss(params, batch):
    """Returns a linear model's mean squared error over the real rows."""
    off = kernels.matmul(batch["x"], params["net"]["w"]) + params["net"]["b"][None]
    off = jnp.where(batch["mask"][:, None], off - batch["y"], 0)
    return jnp.sum(off**2) / 2 / jnp.maximum(jnp.sum(batch["mask"]), 1)


def graded(params, batch):
    return loss(params, batch), {"rows": jnp.sum(batch["mask"])}


CLIENTS, ROWS, D_IN, D_OUT = 3, 4, 3, 2


def batches(seed, share):
    mask = np.random.default_rng(seed).random((CLIENTS, ROWS)) < share
    hold = lambda x: np.where(mask[..., None], x, np.float32(1e6))
    return {
        "x": hold(draw(seed + 1, CLIENTS, ROWS, D_IN)),
        "y": hold(draw(seed + 2, CLIENTS, ROWS, D_OUT)),
        "mask": mask,
    }


@functools.partial(jax.jit, static_argnames=("second_order", "how"))
def gradient(params, support, query, weights, size, second_order, how):
    phases = [kernels.Phase(("net",), loss, size, num_steps=2)]
    return kernels.meta_gradient(
        *(phases, [kernels.Objective(("net",), graded)], params, support, query),
        weights,
        second_order=second_order,
        implementation=how,
    )


def by_hand(params, batch, client, size):
    """Returns two steps of one client in float64, and its gradient's factors."""
    w = np.concatenate([params["net"]["w"], params["net"]["b"][None]]).astype(float)
    through = np.eye(D_IN + 1)
    real = batch["mask"][client]
    x = np.concatenate([batch["x"][client], np.ones((ROWS, 1))], axis=1)[real]
    curve = x.T @ x / max(real.sum(), 1)
    for _ in range(2):
        w = w - size * (curve @ w - x.T @ batch["y"][client][real] / max(real.sum(), 1))
        through = through @ (np.eye(D_IN + 1) - size * curve)
    return w, through


@settings(max_examples=12, deadline=None)
@given(
    seed=seeds,
    share=st.sampled_from((0.0, 0.6, 1.0)),
    weights=st.lists(st.sampled_from((0.0, 1.0, 0.25)), min_size=3, max_size=3),
    size=st.floats(0.0, 0.5, width=32),
    second_order=st.booleans(),
    how=st.sampled_from(("factored", "materialised", "reference")),
)
def test_meta_gradients_are_the_closed_form_of_a_linear_model(
    seed, share, weights, size, second_order, how
):
    params = {"net": {"w": draw(seed + 7, D_IN, D_OUT), "b": draw(seed + 8, D_OUT)}}
    support, query = batches(seed, share), batches(seed + 20, 1.0)
    found, infos = gradient(
        *(params, support, query, np.float32(weights), np.float32(size)),
        **{"second_order": second_order, "how": how},
    )
    total = np.zeros((D_IN + 1, D_OUT))
    for client, weight in enumerate(weights):
        w, through = by_hand(params, support, client, size)
        x = np.concatenate([query["x"][client], np.ones((ROWS, 1))], axis=1)
        grad = x.T @ (x @ w - query["y"][client]) / ROWS
        total += weight * (through @ grad if second_order else grad)
    total /= max(sum(weights), 1e-9)
    near = {"rtol": 2e-3, "atol": 2e-4}
    np.testing.assert_allclose(found["net"]["w"], total[:-1], **near)
    np.testing.assert_allclose(found["net"]["b"], total[-1], **near)
    if sum(weights):
        assert float(infos[0][1]["rows"]) == pytest.approx(ROWS)


@few
@given(
    seed=seeds,
    share=st.sampled_from((0.0, 0.6)),
    size=st.floats(0.0, 0.5, width=32),
    factor=st.booleans(),
)
def test_a_client_s_own_steps_are_those_by_hand(seed, share, size, factor):
    params = {"net": {"w": draw(seed + 7, D_IN, D_OUT), "b": draw(seed + 8, D_OUT)}}
    support = batches(seed, share)
    phases = [kernels.Phase(("net",), loss, size, num_steps=2)]
    own = {name: jnp.asarray(one[1]) for name, one in support.items()}
    adapted = kernels.adapt(phases, params, own, factor=factor)
    expected, _ = by_hand(params, support, 1, size)
    found = kernels.materialize(adapted)["net"]
    np.testing.assert_allclose(found["w"], expected[:-1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found["b"], expected[-1], rtol=1e-3, atol=1e-4)
