"""Variants of FedAvg, compression and permutations on drawn numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import federated as fed

ONE = fed.Steps(num_steps=1)
B1, B2, TAU, ETA = 0.8, 0.9, 0.5, 0.3
few = settings(max_examples=10, deadline=None)
numbers = st.floats(-8, 8, width=32)
rates = st.floats(0, 1, width=32)


def _adaptive(second):
    """Returns the server's first step from the mean change."""
    step = lambda move: ETA * (1 - B1) * move / (np.sqrt(second(move**2)) + TAU)
    return lambda rate, x: step(rate * x)


MOMENTS = {"server_learning_rate": ETA, "b1": B1, "b2": B2, "tau": TAU}
PLAIN = lambda rate, x: rate * x
# Settings, hyper-parameters, and the model after one client's step from 0.
CASES = {
    "fedadam": (MOMENTS, {}, _adaptive(lambda s: B2 * TAU**2 + (1 - B2) * s)),
    "fedyogi": (
        *(MOMENTS, {}),
        _adaptive(lambda s: TAU**2 - (1 - B2) * s * np.sign(TAU**2 - s)),
    ),
    "fedadagrad": (MOMENTS, {}, _adaptive(lambda s: TAU**2 + s)),
    "fednova": ({}, {}, PLAIN),
    # The linear term repeats the way of the client.
    "feddyn": ({"num_clients": 1}, {"alpha": 0.5}, lambda rate, x: 2 * rate * x),
    "mime": ({"num_clients": 1}, {"momentum": 0.0}, PLAIN),
    "fedbuff": (
        {"num_clients": 1, "buffer_size": 1, "max_staleness": 2},
        *({}, None),
    ),
    "hierarchical": ({"groups": [0], "rounds_per_average": 1}, {}, PLAIN),
    "dp_ftrl": (
        {"num_clients": 1, "cohort_size": 1},
        *({"noise_multiplier": 0.0, "clip_norm": 100.0}, PLAIN),
    ),
}


@functools.cache
def compiled(name):
    more, hyper, _ = CASES[name]
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    algorithm = getattr(fed, name)(lambda key: jnp.zeros(()), square, steps=ONE, **more)
    init = lambda rate: algorithm.init(
        jax.random.key(0), learning_rate=np.float32(rate), **hyper
    )
    return init, jax.jit(algorithm.update)


@pytest.mark.parametrize("name", sorted(CASES))
@few
@given(rate=rates, x=numbers, seed=st.integers(0, 2**20))
def test_one_step_of_one_client(name, rate, x, seed):
    init, update = compiled(name)
    clients = fed.Population(jnp.float32([[x]]), jnp.ones((1, 1), bool))
    state, info = update(jax.random.key(seed), init(rate), clients)
    np.testing.assert_allclose(info["loss"], 0.5 * x**2, rtol=1e-5, atol=1e-6)
    want = CASES[name][2]
    if want is None:  # The weight of the staleness.
        want = lambda rate, x: rate * x / np.sqrt(1 + info["staleness"])
    np.testing.assert_allclose(state.params, want(rate, x), rtol=1e-4, atol=1e-5)


@functools.cache
def normalised():
    loss = lambda p, x, key: 0.5 * (p["layer"]["dense"] + p["layer"]["bn_1"] - x) ** 2
    zeros = lambda key: {"layer": {"dense": jnp.zeros(()), "bn_1": jnp.zeros(())}}
    algorithm = fed.fedbn(zeros, loss, steps=ONE, num_clients=2)
    return algorithm.init, jax.jit(algorithm.update)


@few
@given(rates, numbers, numbers)
def test_fedbn_averages_all_but_the_normalisation(rate, x, y):
    init, update = normalised()
    state = init(jax.random.key(0), learning_rate=np.float32(rate))
    rows = jnp.float32([[x], [y]])
    clients = fed.Population(rows, jnp.ones((2, 1), bool))
    state, _ = update(jax.random.key(1), state, clients)
    want = rate * np.array([x, y])
    np.testing.assert_allclose(
        state.params["layer"]["dense"], want.mean(), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(state.own["layer"]["bn_1"], want, rtol=1e-5)
    assert "bn_1" not in state.params["layer"]


vectors = st.lists(numbers, min_size=6, max_size=6).map(np.float32)


@few
@given(vectors, st.integers(0, 2**20), st.sampled_from([1, 2, 7]))
def test_compressed_changes_are_what_they_claim(values, seed, level):
    key, norm = jax.random.key(seed), np.linalg.norm(values)
    sent, num_bytes = fed.qsgd(level)(key, jnp.asarray(values))
    if norm > 0:
        levels = np.abs(sent) / norm * level
        np.testing.assert_allclose(levels, np.round(levels), atol=1e-3)
        assert (np.abs(sent - values) <= norm / level * 1.001).all()
    else:
        assert not sent.any()
    assert num_bytes == 4 + -(-6 * int(np.ceil(np.log2(2 * level + 1))) // 8)
    sent, num_bytes = fed.top_k(level / 12)(key, jnp.asarray(values))
    left = np.asarray(sent) != 0
    k = max(1, round(level / 2))
    assert left.sum() <= k and num_bytes == 8 * k
    np.testing.assert_array_equal(np.asarray(sent)[left], values[left])
    if left.any() and not left.all():
        assert np.abs(values[left]).min() >= np.abs(values[~left]).max()
    sent, num_bytes = fed.sign()(key, jnp.asarray(values))
    np.testing.assert_allclose(np.abs(sent), np.abs(values).mean(), rtol=1e-5)
    assert (np.asarray(sent)[values > 0] > 0).all() and num_bytes == 5


@functools.cache
def permuted(num):
    places = jnp.arange(num, dtype=jnp.int32)
    return jax.jit(lambda key: fed.keyed_permutation(key, places, num))


@few
@given(st.integers(0, 2**30), st.sampled_from([1, 6, 33]))
def test_permutations_of_any_key_have_every_entry_once(seed, num):
    found = permuted(num)(jax.random.key(seed))
    assert sorted(found.tolist()) == list(range(num))


@few
@given(st.integers(1, 40), st.integers(1, 20))
def test_a_client_changes_as_many_nodes_as_are_paid_for(num_rounds, period):
    """Counts complete nodes over a client's round, in the worst round of each pass."""
    nodes = 0
    for start in range(0, num_rounds, period):
        rounds = min(period, num_rounds - start)
        sizes = [2**level for level in range(10)]
        nodes += max(
            sum((place // size + 1) * size <= rounds for size in sizes)
            for place in range(rounds)
        )
    assert fed.tree_gaussian(1.0, num_rounds, period).steps == nodes


@few
@given(st.sampled_from(["num_rounds", "rounds_per_pass"]), st.integers(-5, 0))
def test_no_tree_has_no_rounds(name, value):
    with pytest.raises(ValueError, match=f"{name} must be >= 1"):
        fed.tree_gaussian(
            **{"noise_multiplier": 1.0, "num_rounds": 4, "rounds_per_pass": 2}
            | {name: value}
        )
