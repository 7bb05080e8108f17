"""Kernels over a mesh of clients: replicated parameters, sharded clients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from jaxanon import kernels
from jaxanon.kernels import selection

CLIENTS, EVERYWHERE = PartitionSpec("clients"), PartitionSpec()
X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
MATRIX = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float32)
LABELS = np.arange(20).reshape(4, 5) % 2


def _loss(params, x):
    return jnp.mean(kernels.matmul(x, params["net"]["w"]) ** 2)


def _meta(implementation, chunk):
    phases = [kernels.Phase(("net",), _loss, 0.1)]
    objectives = [kernels.Objective(("net",), lambda p, x: (_loss(p, x), {}))]

    def run(x, w):
        grads, _ = kernels.meta_gradient(
            phases,
            objectives,
            {"net": {"w": w}},
            x,
            x,
            jnp.ones(len(x)),
            implementation=implementation,
            chunk=chunk,
        )
        return grads["net"]["w"][None]

    return run


def _lstm(x, w):
    return kernels.lstm(x, w, jnp.ones((2, 8)), w[0])


def _ghost_lstm(x, w):
    loss = lambda w, x: jnp.sum(_lstm(x, w)[:, -1], axis=1)
    return kernels.clipped_gradient_sum(loss, w, x, 1.0)[0].value[None]


def _factored(x, w):
    _, grads = kernels.value_and_grad(lambda p, x: jnp.sum(kernels.matmul(x, p) ** 2))(
        w, x[0, :1]
    )
    return grads.inputs[None] * jnp.sum(grads.cotangents)


CASES = {
    "factored": _factored,
    "ghost": _ghost_lstm,
    "lstm": _lstm,
    "slope of lstm": lambda x, w: jax.grad(lambda x: jnp.sum(_lstm(x, w)))(x),
    "meta": _meta("factored", None),
    "meta in chunks": _meta("materialised", 1),
    "layer mean": lambda x, w: kernels.layer_mean(x, jnp.ones(len(x)))[None],
    "median": lambda x, w: kernels.coordinate_median(x)[None],
    "places": lambda x, w: selection.by_search(x, 0, len(x))[None],
    # All clients' numbers, at each shard's positions.
    "places of a shard": lambda x, w: selection.by_search(
        w, 0 * len(x), jnp.int32(1 + jnp.sum(0 * x))
    )[None],
    "places of each": lambda x, w: jax.vmap(
        lambda first: selection.by_search(w, first, first + 1)
    )(x[:, 0, 0].astype(jnp.int32) % len(w)),
    "krum": lambda x, w: kernels.krum(x, 0)[0][None],
    "neighbours": lambda x, w: jax.vmap(
        lambda x, y: kernels.same_class_neighbors(x, y, jnp.ones(5, bool), 2)[0]
    )(x, LABELS[: len(x)]),
    "adaptive": lambda x, w: kernels.adapt_clip_norms(
        jax.random.key(0), x, 1.0, count_stddev=0.0
    )[None],
    "warping": lambda x, w: kernels.dtw(x, jnp.stack([w[:, :3]] * len(x))),
    "warping path": lambda x, w: kernels.dtw_path(x, x[:, ::-1]),
    "slope of warping": lambda x, w: jax.grad(
        lambda x: jnp.sum(kernels.dtw(x, x[:, ::-1]))
    )(x),
    "information": lambda x, w: jax.vmap(kernels.mutual_information)(
        x[..., 0], LABELS[: len(x)]
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_shard_gives_what_its_clients_give_alone(name, over_a_mesh):
    fn = CASES[name]
    got = over_a_mesh(fn, (CLIENTS, EVERYWHERE))(X, MATRIX)
    expected = jax.jit(fn)(X, MATRIX)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    jax.tree.map(close, got, expected)
