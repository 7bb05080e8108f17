"""Drawn clients: stacked, sampled for cohorts, stored, and observed through rounds."""

import functools
import json
import pathlib
import tempfile

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_rounds import CLIENTS, begun, made, masks, of_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import federated as fed
from jaxanon.federated.private.shuffling import aggregate_arrivals

seeds = st.integers(0, 2**20)
few = settings(max_examples=6, deadline=None)
many = settings(max_examples=25, deadline=None)
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@many
@given(masks, st.sampled_from([bool, int, float]), st.booleans())
def test_a_population_has_a_row_of_each_client_or_is_refused(mask, dtype, late):
    rows = {"x": np.arange(12.0).reshape(3, 4), "y": [np.zeros((3, 4, 2), np.int32)]}
    empty = np.flatnonzero(~mask.any(axis=1)).tolist()
    if empty:
        with pytest.raises(ValueError, match=f"clients \\{empty} of 3"):
            fed.population(rows, mask.astype(dtype))
        return
    found = fed.population(rows, mask.astype(dtype))
    chex.assert_trees_all_equal(found, fed.Population(rows, mask))
    assert found.mask.dtype == bool and found.rows["x"].dtype == jnp.float32
    rows["y"][0] = rows["y"][0][:, 1:] if late else rows["y"][0][1:]
    with pytest.raises(
        ValueError, match=r"rows\['y'\]\[0\] must have the leading axes"
    ):
        fed.population(rows, mask)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def cohort(key, round_, num_clients, size, stay):
    return fed.sample_cohort(key, round_, num_clients, size, rounds_per_cohort=stay)


@many
@given(
    *(seeds, st.integers(0, 50)),
    st.sampled_from([(1, 1, 1), (5, 5, 2), (5, 2, 1), (5, 2, 3), (9, 8, 2)]),
)
def test_cohorts_are_some_of_all_and_stay_together(seed, round_, sizes):
    num_clients, size, stay = sizes
    key = jax.random.key(seed)
    found = cohort(key, round_, *sizes)
    assert found.dtype == jnp.int32 and found.shape == (size,)
    assert len({*found.tolist()}) == size and set(found.tolist()) <= {
        *range(num_clients)
    }
    if size == num_clients:
        assert found.tolist() == [*range(num_clients)]
    first = round_ - round_ % stay
    for other in range(first, first + stay):
        np.testing.assert_array_equal(cohort(key, other, *sizes), found)
    eager = fed.sample_cohort(key, round_, num_clients, size, rounds_per_cohort=stay)
    np.testing.assert_array_equal(eager, found)


@few
@given(seeds)
def test_everybody_is_asked_as_often(seed):
    """Over 400 rounds, five standard errors are 0.123."""
    rounds = jax.vmap(lambda t: cohort(jax.random.key(seed), t, 5, 2, 1))
    share = np.bincount(rounds(jnp.arange(400)).ravel(), minlength=5) / 400
    np.testing.assert_allclose(share, 0.4, atol=0.123)


@functools.cache
def fedavg():
    return made("fedavg")


@functools.cache
def atlas():
    return made("atlas")


@functools.cache
def update(make):
    return jax.jit(make().update)


def rounds_of(make, name, seed, clients, number=3, **hyper):
    """Returns the states before each round and after the last, and the infos."""
    state, infos = begun(name), []
    states = [state._replace(hyper=state.hyper | hyper)]
    for _ in range(number):
        state, info = update(make)(jax.random.key(seed), states[-1], clients)
        states.append(state)
        infos.append(info)
    return states, jax.tree.map(lambda *each: np.stack(each), *infos)


@functools.cache
def sharded():
    return fed.shard(fedavg(), [jax.devices()[0]] * 2)


def copied(state):
    return jax.tree.map(jnp.copy, state)


@few
@given(seeds, masks)
def test_rounds_in_one_call_or_by_two_workers_are_rounds_one_by_one(seed, mask):
    clients, key = of_rows(seed, mask), jax.random.key(seed)
    states, infos = rounds_of(fedavg, "fedavg", seed, clients)
    found = fed.simulate(fedavg(), key, copied(states[0]), clients, 3)
    chex.assert_trees_all_close(found, (states[-1], infos), **CLOSE)
    placed = sharded().shard_clients(clients)
    found, info = sharded().update(key, states[0], placed)
    chex.assert_trees_all_close(found, states[1], **CLOSE)
    chex.assert_trees_all_close(info, jax.tree.map(lambda x: x[0], infos), **CLOSE)


@functools.partial(jax.jit, static_argnames="num_rounds")
def watched(key, state, clients, client, num_rounds=3):
    return fed.simulate_observed(fedavg(), key, state, clients, num_rounds, client)


@few
@given(seeds, masks)
def test_what_is_seen_is_what_the_rounds_are_made_of(seed, mask):
    clients, key = of_rows(seed, mask), jax.random.key(seed)
    states, _ = rounds_of(fedavg, "fedavg", seed, clients)
    before = jax.tree.map(lambda *x: np.stack(x), *[s.params for s in states[:-1]])
    state, seen = watched(key, states[0], clients, None)
    chex.assert_trees_all_close(state, states[-1], **CLOSE)
    chex.assert_trees_all_close(seen.before, before, **CLOSE)
    each = [watched(key, states[0], clients, np.int32(c))[1] for c in range(CLIENTS)]
    weights = np.stack([one.weight for one in each])
    np.testing.assert_array_equal(weights, np.tile(mask.sum(axis=1)[:, None], (1, 3)))
    np.testing.assert_array_equal(seen.weight, weights.sum(axis=0))
    for client in np.flatnonzero(~mask.any(axis=1)):
        assert not any(leaf.any() for leaf in jax.tree.leaves(each[client].message))
    share = weights / np.maximum(weights.sum(axis=0), 1)
    mean = lambda *x: np.einsum("cr,cr...->r...", share, np.stack(x))
    mean = jax.tree.map(mean, *[one.message for one in each])
    chex.assert_trees_all_close(seen.message, mean, **CLOSE)
    # FedAvg's clients send their decrease.
    after = jax.tree.map(lambda *x: np.stack(x), *[s.params for s in states[1:]])
    down = jax.tree.map(np.subtract, before, after)
    chex.assert_trees_all_close(seen.message, down, **CLOSE)


@many
@given(seeds, masks, st.sampled_from([1, 2, 1000]))
def test_names_come_off_and_nothing_is_lost(seed, mask, slots):
    rng = np.random.default_rng(seed)
    sent = {n: {"w": rng.normal(size=(3, 2))} for n in "abcd"}
    senders = dict(zip("abcd", mask.T, strict=True))
    came, whose = fed.shuffle_messages(jax.random.key(seed), sent, senders, slots)
    assert sorted(came) == sorted(whose) == [n for n in "abcd" if senders[n].any()]
    for name, arrivals in came.items():
        np.testing.assert_array_equal(
            np.sort(whose[name]), np.flatnonzero(senders[name])
        )
        layer = np.asarray(arrivals.layer["w"])
        np.testing.assert_array_equal(layer, sent[name]["w"][whose[name]])
        slot = np.asarray(arrivals.slot)
        assert (np.diff(slot) >= 0).all() and ((slot >= 0) & (slot < slots)).all()
    with pytest.raises(ValueError, match="senders must have the layers"):
        fed.shuffle_messages(jax.random.key(seed), sent, {"a": mask[:, 0]}, slots)


@few
@given(
    seeds, masks.map(lambda mask: mask | (np.arange(4) == 1)), st.sampled_from([1, 9])
)
def test_shuffled_layers_make_the_rounds_that_unshuffled_make(seed, mask, slots):
    """Layers begin at the threshold, and some clients fall below it."""
    clients, key = of_rows(seed, mask), jax.random.key(seed)
    level = {"threshold": np.float32(0.6), "first_score": np.float32(0.6)}
    states, _ = rounds_of(atlas, "atlas", seed, clients, 2, **level)
    state, rounds = fed.simulate_observed_shuffled(
        atlas(), key, states[0], clients, 2, slots
    )
    chex.assert_trees_all_close(state, states[-1], **CLOSE)
    for before, after, seen in zip(states[:-1], states[1:], rounds, strict=True):
        chex.assert_trees_all_close(seen.before, before.params, **CLOSE)
        made_of = aggregate_arrivals(seen.before, seen.arrivals)
        chex.assert_trees_all_close(made_of, after.params, **CLOSE)
        assert all(mask[ids].any(axis=1).all() for ids in seen.whose.values())


DTYPES = ("<f4", "<f8", ">f4", "|i1", "<u2", "|b1", "<c8", "<i8", "<f2")
shapes = st.sampled_from([(), (2,), (1, 3), (0,)])


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["x", "y", "é", "a b"]),
        st.tuples(st.sampled_from(DTYPES), shapes),
        min_size=1,
    ),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    seeds,
)
def test_what_is_written_is_read(arrays, sizes, asked, seed):
    rng = np.random.default_rng(seed)
    of = lambda n, dtype, shape: (rng.normal(size=(n, *shape)) * 9).astype(dtype)
    clients = [{k: of(n, *about) for k, about in arrays.items()} for n in sizes]
    clients[1:] = [dict(reversed(client.items())) for client in clients[1:]]
    asked = [number % len(sizes) for number in asked]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / "new"
        fed.write_clients(folder, iter(clients))
        stored = fed.open_clients(folder)
        found = stored.read(asked)
        with pytest.raises(IndexError, match=r"ids must be in \[0, "):
            stored.read([*asked, len(sizes)])
        with pytest.raises(FileExistsError, match="already holds clients"):
            fed.write_clients(folder, clients)
        about = folder / "clients.json"
        told = json.loads(about.read_text())
        about.write_text(json.dumps(told | {"num_clients": len(sizes) + 1}))
        with pytest.raises(ValueError, match="are damaged"):
            fed.open_clients(folder)
    assert (stored.num_clients, stored.most_rows) == (len(sizes), max(sizes))
    for place, number in enumerate(asked):
        real, client = found.mask[place], clients[number]
        assert real.tolist() == [row < sizes[number] for row in range(max(sizes))]
        for name, leaf in client.items():
            np.testing.assert_array_equal(found.rows[name][place, real], leaf)
            assert not found.rows[name][place, ~real].any()
            assert found.rows[name].dtype == leaf.dtype


GOOD = {"x": np.zeros((2, 3), np.float32), "y": np.zeros(2, int)}
BAD = (
    GOOD | {"x": np.zeros((2, 4), np.float32)},
    GOOD | {"x": np.zeros((2, 3))},
    GOOD | {"y": np.zeros(3, int)},
    GOOD | {"z": np.zeros(2)},
    GOOD | {"y": np.array(["a", "b"])},
    GOOD | {"y": np.float32(1)},
    {"x": np.zeros((0, 3), np.float32), "y": np.zeros(0, int)},
    {"x": GOOD["x"]},
)


@many
@given(st.sampled_from(range(len(BAD))), st.integers(0, 2))
def test_a_client_unlike_the_others_is_refused_by_its_number(which, place):
    clients = [GOOD] * max(place, 1)
    clients.insert(place, BAD[which])
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(ValueError, match=f"client ({place}|1) "):
            fed.write_clients(folder, clients)
        with pytest.raises(FileNotFoundError, match="must hold clients"):
            fed.open_clients(folder)
