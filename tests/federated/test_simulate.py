"""Rounds in one call are rounds one by one; shards are one program."""

import os
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated


def _algorithm(**settings):
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    init_fn = lambda key: jax.random.normal(key, ())
    return federated.fed_avg(
        init_fn, square, num_steps=2, batch_size=1, cohort_size=2, **settings
    )


def _clients():
    return federated.stack([np.array([1.0, 3.0]), np.array([5.0]), np.array([2.0] * 3)])


def test_stopped_and_resumed_equals_uninterrupted_bit_for_bit():
    algorithm, clients = _algorithm(rounds_per_cohort=2), _clients()
    start = lambda: algorithm.init(jax.random.key(0))
    key = jax.random.key(1)
    whole, info = federated.simulate(algorithm, key, start(), clients, 6)
    half, first = federated.simulate(algorithm, key, start(), clients, 3)
    saved = jax.tree.map(np.asarray, half)
    resumed, second = federated.simulate(
        algorithm, key, jax.tree.map(jnp.asarray, saved), clients, 3
    )
    chex.assert_trees_all_equal(whole, resumed)
    np.testing.assert_array_equal(
        info["loss"], np.concatenate([first["loss"], second["loss"]])
    )
    assert whole.round == 6


def test_the_state_is_donated():
    algorithm = _algorithm()
    state = algorithm.init(jax.random.key(0))
    federated.simulate(algorithm, jax.random.key(1), state, _clients(), 1)
    assert state.params.is_deleted()


SHARDS = """
import jax, jax.numpy as jnp, numpy as np
from jaxanon import federated

assert len(jax.devices()) == 3
square = lambda w, x, key: 0.5 * (w - x) ** 2 + w * jax.random.normal(key)
clients = federated.stack([np.arange(n + 1.0) for n in range(7)])
# Cohorts of 5, 1: a ragged last shard, and shards with no client at all.
for size in (5, 1):
    algorithm = federated.fed_avg(
        lambda key: jnp.zeros(2), lambda w, x, key: square(w[:1], x, key),
        num_steps=2, batch_size=2, cohort_size=size)
    sharded = federated.shard(algorithm)
    placed = sharded.place(clients)
    one = many = algorithm.init(jax.random.key(0))
    key = jax.random.key(1)
    for _ in range(3):
        one, info = jax.jit(algorithm.update)(key, one, clients)
        many, other = sharded.update(key, many, placed)
        np.testing.assert_allclose(one.params, many.params, rtol=1e-5)
        np.testing.assert_allclose(info["loss"], other["loss"], rtol=1e-5)
    assert one.params[0] != 0 and one.round == many.round == 3
"""


def test_one_shard_per_device_is_the_same_algorithm(tmp_path):
    # Devices are counted when JAX starts, so this takes a process of its own.
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=3"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", SHARDS],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_algorithm_without_acts_cannot_be_sharded():
    algorithm = federated.FederatedAlgorithm(lambda key: 0, lambda k, s, c: (s, {}))
    with pytest.raises(ValueError, match="must have acts to be sharded"):
        federated.shard(algorithm)
