"""Plain and noisy steps and Poisson batches of drawn rows; means over drawn clients."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_rounds import CLIENTS, ROWS, START, loss_fn, of_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_rounds import plain, privately

from jaxanon import federated as fed
from jaxanon.federated import Layout, PoissonSampling, Population

seeds = st.integers(0, 2**20)
rows_of_one = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).map(np.array)
few = settings(max_examples=8, deadline=None)
many = settings(max_examples=25, deadline=None)
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
WHOLE = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=4.0, max_examples=ROWS
)
PARTS = (
    PoissonSampling(
        sampling_probability=0.4, expected_batch_size=2.0, max_examples=ROWS
    ),
    PoissonSampling(
        sampling_probability=0.8, expected_batch_size=2.0, max_batch_size=2
    ),
)


def client_of(seed, mask, junk=0.0):
    clients = of_rows(seed, np.broadcast_to(mask, (CLIENTS, ROWS)), junk=junk)
    return jax.tree.map(lambda leaf: leaf[0], clients)


def start():
    return jax.tree.map(np.float32, START)


@functools.partial(jax.jit, static_argnames="how")
def descend(key, params, client, learning_rate, how=(2, False)):
    size, shuffle = how
    options = {"num_steps": 2, "batch_size": size, "shuffle": shuffle}
    return fed.local_sgd(
        *(loss_fn, key, params, *client), learning_rate=learning_rate, **options
    )


@functools.partial(jax.jit, static_argnames=("lots", "loss_fn"))
def descend_privately(
    key, params, client, learning_rate, max_norm, noise, lots, loss_fn=loss_fn
):
    options = {"lots": lots, "num_steps": 2, "learning_rate": learning_rate}
    return fed.local_dp_sgd(
        *(loss_fn, key, params, *client),
        **options | {"clip_norms": max_norm, "noise_multipliers": noise},
    )


@few
@given(seeds, rows_of_one, st.floats(0, 1, width=32), st.sampled_from([0.2, 5.0]))
def test_steps_are_those_of_loops_in_float64(seed, mask, learning_rate, max_norm):
    key, client = lambda: jax.random.key(seed), client_of(seed, mask, junk=7.0)
    x, y = np.float64(client.rows["x"][mask]), client.rows["y"][mask]
    hyper = {"learning_rate": learning_rate, "clip_norm": max_norm}
    wanted = plain(hyper, START, (x, y)) if len(y) else START
    found, losses = descend(key(), start(), client, np.float32(learning_rate))
    chex.assert_trees_all_close(found, wanted, **CLOSE)
    # Before a step, the mean over its rows.
    logits = x[:2] @ START["base"]["w"] + START["head"]["b"]
    each = np.log(np.exp(logits).sum(axis=1)) - logits[range(len(y[:2])), y[:2]]
    np.testing.assert_allclose(losses[0], each.mean() if len(y) else 0, rtol=1e-4)
    numbers = map(np.float32, (learning_rate, max_norm, 0.0))
    found, losses = descend_privately(key(), start(), client, *numbers, WHOLE)
    wanted = privately(hyper, START, (x, y)) if len(y) else START
    chex.assert_trees_all_close(found, wanted, **CLOSE)
    assert losses.shape == (2,) and (len(y) or not losses.any())


@few
@given(seeds, rows_of_one, st.sampled_from([(None, True), (2, True), (9, False)]))
def test_what_is_not_real_is_never_visited(seed, mask, how):
    zero, one = client_of(seed, mask), client_of(seed, mask, 9)
    length = np.float32(0.5)
    wanted, found = (
        descend(jax.random.key(seed), start(), each, length, how)
        for each in (zero, one)
    )
    chex.assert_trees_all_equal(found, wanted)
    for lots in PARTS:
        noisy = lambda each, lots=lots: descend_privately(
            jax.random.key(seed),
            start(),
            each,
            length,
            np.float32(1),
            np.float32(1),
            lots,
        )
        chex.assert_trees_all_equal(noisy(one), noisy(zero))


@few
@given(seeds, rows_of_one, st.sampled_from([1, 2, 3]), st.booleans())
def test_rows_take_turns_in_steps(seed, mask, size, shuffle):
    """The loss of row r is weight r, so the weights count visits."""
    rows = jnp.eye(ROWS)
    steps = functools.partial(
        *(fed.local_sgd, lambda w, x, key: -x @ w),
        **{
            "learning_rate": 1.0,
            "num_steps": 3,
            "batch_size": size,
            "shuffle": shuffle,
        },
    )
    counts, _ = jax.jit(steps)(jax.random.key(seed), jnp.zeros(ROWS), rows, mask)
    batch = min(size, mask.sum())
    visits = np.asarray(counts) * batch
    assert not visits[~mask].any()
    np.testing.assert_allclose(visits.sum(), 3 * batch, rtol=1e-5)
    if mask.any():
        assert np.ptp(visits[mask]) < 1.01
    if not shuffle:  # Unshuffled: the first rows get the remaining visits.
        assert (np.diff(visits[mask]) < 0.01).all()


count_loss = lambda w, x, key: -x @ w


@few
@given(seeds, rows_of_one, st.sampled_from(PARTS))
def test_a_noisy_step_takes_a_lot_of_rows(seed, mask, lots):
    client = Population(np.eye(ROWS, dtype=np.float32), mask)
    numbers = map(np.float32, (1.0, 9.0, 0.0))
    found, _ = descend_privately(
        jax.random.key(seed),
        np.zeros(ROWS, np.float32),
        client,
        *numbers,
        lots,
        count_loss,
    )
    visits = np.asarray(found) * lots.expected_batch_size
    assert set(visits.round(4).tolist()) <= {0, 1, 2} and not visits[~mask].any()
    assert visits.sum() < 2 * lots.largest + 0.01


@functools.partial(jax.jit, static_argnames="lots")
def lots_of(keys, mask, lots):
    return jax.vmap(lambda key: fed.poisson_sample(key, mask, lots))(keys)


@few
@given(seeds, rows_of_one)
def test_lots_are_rows_each_as_likely_as_it_says(seed, mask):
    """Over 2,000 batches, 0.06 is at least five standard errors."""
    n = mask.sum()
    for lots in (WHOLE, *PARTS):
        keys = lambda: jax.random.split(jax.random.key(seed), 2000)
        index, real = lots_of(keys(), mask, lots)
        assert index.shape == real.shape == (2000, min(lots.largest, ROWS))
        assert (np.diff(np.sort(index, axis=1), axis=1) > 0).all()
        taken = np.zeros((2000, ROWS), bool)
        np.put_along_axis(taken, np.asarray(index), np.asarray(real), axis=1)
        assert not taken[:, ~mask].any()
        q, most = lots.sampling_probability, lots.largest
        odds = [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
        expected = sum(p * min(k, most) for k, p in enumerate(odds)) / max(n, 1)
        np.testing.assert_allclose(taken[:, mask].mean(axis=0), expected, atol=0.06)
        alone = fed.poisson_sample(keys()[0], mask, lots)
        chex.assert_trees_all_equal(alone, (index[0], real[0]))
    with pytest.raises(ValueError, match="mask must have at most max_examples = "):
        fed.poisson_sample(jax.random.key(0), np.append(mask, False), WHOLE)


@many
@given(st.floats(0.01, 1), st.integers(1, 300), st.floats(0.1, 9), st.integers(1, 9))
def test_what_lots_cost_is_what_they_are(q, records, z, steps):
    lots = PoissonSampling(
        sampling_probability=q, expected_batch_size=3.0, max_examples=records
    )
    cost = fed.sampled_gaussian(lots, z, steps)
    assert (cost.noise_multiplier, cost.sampling_probability, cost.steps) == (
        z,
        q,
        steps,
    )
    assert (cost.max_batch_size is None) == (lots.largest >= records)
    with pytest.raises(ValueError, match="max_examples"):
        fed.sampled_gaussian(
            PoissonSampling(
                sampling_probability=q, expected_batch_size=3.0, max_batch_size=3
            ),
            z,
            1,
        )


@jax.jit
def two_points(key, weights, radius, epsilon):
    return fed.two_points(key, weights, radius, epsilon)


@few
@given(seeds, st.floats(-3, 3), st.floats(0.1, 2), st.floats(0.3, 9))
def test_two_points_are_right_on_average(seed, weight, radius, epsilon):
    n = 4000
    weights = np.full(n, weight, np.float32)
    radius, epsilon = np.float32(radius), np.float32(epsilon)
    found = two_points(jax.random.key(seed), weights, radius, epsilon)
    value = radius / np.tanh(epsilon / 2)
    np.testing.assert_allclose(np.abs(found), value, rtol=1e-5)
    wanted = np.clip(weight, -radius, radius)
    error = math.sqrt(max(value**2 - wanted**2, 0) / n)
    assert abs(np.mean(np.float64(found)) - wanted) <= 5 * error + 1e-4 * value
    # The odds of either value change by at most e^ε from one end to the other.
    weights[:] = np.nan
    nothing = np.asarray(two_points(jax.random.key(seed), weights, radius, epsilon))
    assert abs((nothing > 0).mean() - 0.5) < 5 * 0.5 / math.sqrt(n)


@functools.partial(jax.jit, static_argnames="chunk")
def mean_over(x, weights, chunk):
    fn = lambda one: {"twice": 2 * one, "flag": one > 0}
    return fed.mean_over_clients(fn, x, weights, Layout(chunk_size=chunk))


@many
@given(
    seeds,
    st.sampled_from([None, 1, 2, 9]),
    st.sampled_from([np.float32, np.float16, np.int32]),
    st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=5, max_size=5),
)
def test_means_over_clients_are_numpy_s(seed, chunk, dtype, weights):
    x = np.random.default_rng(seed).normal(size=(5, 2)) * 3
    x, weights = x.astype(dtype), np.float32(weights)
    wanted = {"twice": 2 * np.float64(x), "flag": np.float64(x > 0)}
    share = np.float64(weights) / max(weights.sum(), 1e-9)
    wanted = jax.tree.map(lambda leaf: share @ leaf, wanted)
    if dtype != np.int32:
        x[weights == 0] = np.nan
    found = mean_over(x, weights, chunk)
    chex.assert_trees_all_close(found, wanted, rtol=1e-3, atol=1e-5)
    assert {leaf.dtype for leaf in found.values()} == {jnp.dtype("float32")}


@many
@given(
    st.lists(st.integers(1, 2**28), min_size=1, max_size=50),
    *(st.integers(1, 500), st.integers(1, 20), st.integers(0, 2**33)),
)
def test_as_many_clients_side_by_side_as_there_is_room_for(sizes, clients, steps, held):
    params = [jax.ShapeDtypeStruct((size,), jnp.float32) for size in sizes]
    options = {"num_steps": steps, "example_bytes": held}
    unroll = min(steps, 8) if len(sizes) <= 40 else 1
    found = fed.default_layout(params, clients, backend="cpu", **options)
    assert found == Layout(chunk_size=1, unroll=unroll)
    found = fed.default_layout(params, clients, backend="gpu", **options)
    alive, room = 3 * 4 * sum(sizes) + held, 4 << 30
    side = clients if found.chunk_size is None else found.chunk_size
    assert side == 1 or side * alive <= room
    assert side == clients or (side + 1) * alive > room
    assert found.unroll == unroll and 1 <= side <= clients
