"""Drawn clients: stacked, sharded, on disk, and new after training."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import federated

pytestmark = pytest.mark.slow

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**16)
sizes = st.lists(st.integers(1, 3), min_size=1, max_size=4)


def rows_of(seed, sizes):
    rng = np.random.default_rng(seed)
    return [{"x": rng.normal(size=(n, 2)).astype(np.float32)} for n in sizes]


@few
@given(seeds, sizes)
def test_stacked_clients_have_their_own_rows_and_then_nothing(seed, sizes):
    clients = rows_of(seed, sizes)
    stacked = federated.stack(clients)
    for client, (own, n) in enumerate(zip(clients, sizes, strict=True)):
        np.testing.assert_array_equal(stacked.rows["x"][client, :n], own["x"])
        assert not np.any(stacked.rows["x"][client, n:])
        assert stacked.mask[client].tolist() == [True] * n + [False] * (max(sizes) - n)
    placed = federated.shard_clients(stacked, jax.devices()[:1])
    chex.assert_trees_all_equal(placed.data, stacked)


@few
@given(st.sampled_from(["none", "rows", "numbers"]))
def test_clients_that_there_are_not_are_not_stacked(wrong):
    clients = {
        "none": [],
        "rows": [{"x": np.ones(2)}, {"x": np.ones(0)}],
        "numbers": [{"x": np.ones(2), "y": np.ones(3)}],
    }[wrong]
    with pytest.raises(ValueError, match=r"client"):
        federated.stack(clients)


def loss_fn(params, x, key):
    return 0.5 * (params["w"] + params["v"] - x) ** 2


@functools.cache
def personal():
    zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
    algorithm = federated.fedper(
        *(zeros, loss_fn),
        **{"personal_layers": ("v",), "num_clients": 4},
        steps=federated.Steps(num_steps=1),
    )
    return algorithm, algorithm.init(jax.random.key(0))


numbers = st.floats(-4, 4, width=32)


@few
@given(numbers, numbers, numbers, st.floats(0, 1, width=32), st.sampled_from([0, 3]))
def test_who_joins_goes_his_own_way_from_what_is_shared(shared, began, x, size, rounds):
    algorithm, state = personal()
    hyper = state.hyper | {"learning_rate": jnp.float32(size)}
    state = state._replace(params={"w": jnp.float32(shared)}, hyper=hyper)
    own = {"v": jnp.float32(began)}
    rows, mask = jnp.float32([x, 99.0]), jnp.array([True, False])
    found = federated.personalize_new_client(
        algorithm, jax.random.key(1), state, own, rows, mask, rounds
    )
    # Each round reduces the new client's residual by a factor of 1 - size.
    expected = x - shared + (began - x + shared) * (1 - size) ** rounds
    assert float(found["w"]) == shared
    np.testing.assert_allclose(found["v"], expected, atol=1e-4)


@few
@given(st.sampled_from([-1, 1.5, True, "2"]))
def test_rounds_that_there_are_not_nobody_joins_for(rounds):
    algorithm, state = personal()
    given_rows = {"v": jnp.zeros(())}, jnp.ones(2), jnp.ones(2, bool)
    with pytest.raises((TypeError, ValueError), match="num_rounds"):
        federated.personalize_new_client(
            algorithm, jax.random.key(1), state, *given_rows, rounds
        )


@settings(max_examples=4, deadline=None)
@given(seed=seeds, chunk=st.sampled_from([1, 2, None]))
def test_clients_on_disk_make_the_rounds_of_those_in_memory(
    tmp_path_factory, seed, chunk
):
    clients = [{"x": own["x"][:, 0]} for own in rows_of(seed, (1, 3, 2))]
    folder = tmp_path_factory.mktemp("clients") / "own"
    federated.write_clients(folder, clients)
    square = lambda w, row, key: 0.5 * (w - row["x"]) ** 2
    algorithm = federated.fedavg(
        lambda key: jnp.zeros(()), square, steps=federated.Steps(num_steps=1)
    )
    begin = lambda: algorithm.init(jax.random.key(0), learning_rate=0.5)
    key = lambda: jax.random.key(seed)
    stored = federated.open_clients(folder)
    state, info = federated.stream(algorithm, key(), begin(), stored, 2, chunk=chunk)
    whole = federated.stack(clients)
    want, told = federated.simulate(algorithm, key(), begin(), whole, 2)
    np.testing.assert_allclose(state.params, want.params, atol=1e-5)
    np.testing.assert_allclose(info["loss"], told["loss"], rtol=1e-4)
