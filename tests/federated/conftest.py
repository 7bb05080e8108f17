"""A small network, its initial weights, and clients of unequal size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Population


def _network(params, batch, key):
    hidden = jnp.tanh(batch["x"] @ params["base"]["w"] + params["base"]["b"][None])
    v = params["head"]["v"]
    noise = 0.1 * jax.random.normal(key, v.shape, v.dtype)
    return (hidden @ (v + noise) - batch["y"]) ** 2


def _start(key):
    keys = jax.random.split(key)
    dtype = jnp.result_type(float)
    return {
        "base": {"w": jax.random.normal(keys[0], (3, 4), dtype), "b": jnp.ones(4)},
        "head": {"v": jax.random.normal(keys[1], (4,), dtype)},
    }


def _population(sizes=(5, 2, 7)):
    rng = np.random.default_rng(0)
    dtype = jnp.result_type(float)
    return federated.stack(
        [
            {
                "x": rng.normal(size=(n, 3)).astype(dtype),
                "y": rng.normal(size=n).astype(dtype),
            }
            for n in sizes
        ]
    )


def _grown(clients):
    grow = lambda leaf, value: jnp.pad(
        leaf, [(0, 2), (0, 3)] + [(0, 0)] * (leaf.ndim - 2), constant_values=value
    )
    rows = jax.tree.map(lambda leaf: grow(leaf, 9.0), clients.rows)
    return Population(rows, grow(clients.mask, False))


@pytest.fixture(scope="session")
def network():
    """Returns a two-layer loss, ``base`` and ``head``, that is random in its key."""
    return _network


@pytest.fixture(scope="session")
def start():
    """Returns ``key -> params`` of that network."""
    return _start


@pytest.fixture(scope="session")
def population():
    """Returns ``(sizes=(5, 2, 7)) -> Population`` with rows of three numbers."""
    return _population


@pytest.fixture(scope="session")
def grown():
    """Returns the same population padded with two clients and three rows."""
    return _grown
