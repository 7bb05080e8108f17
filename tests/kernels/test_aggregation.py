"""Aggregation over clients: means, medians, Krum, fixed point."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxanon.kernels import aggregation
from jaxanon.kernels.aggregation import reference
from jaxanon.kernels.aggregation.cases import CASES, updates

# One program each for all encodings of a shape, and for all selections.
encode = jax.jit(
    aggregation.fixed_point_encode, static_argnames=("max_abs", "num_clients", "bits")
)
krum = jax.jit(aggregation.krum, static_argnames="num_selected")

SMALL = pytest.mark.parametrize("name", ["small", "one", "even"])


def old(stacked):
    return {name: np.full(leaf.shape[1:], 5.0) for name, leaf in stacked.items()}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("small", jnp.float32),
        ("one", jnp.bfloat16),
        ("even", jnp.bfloat16),
        ("even", jnp.float64),
    ],
)
def test_layer_mean_is_that_of_the_loops(name, dtype):
    stacked, weights, _, sent = updates(CASES[name], seed=1)
    with jax.enable_x64(dtype == jnp.float64):
        cast = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), stacked)
        mean = jax.jit(aggregation.layer_mean)
        got = mean(cast, weights, sent=sent, previous=old(stacked))
        rounded = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), cast)
        expected = reference.layer_mean(rounded, weights, sent, old(stacked))
        eps = float(jnp.finfo(dtype).eps)
        for layer, leaf in got.items():
            assert leaf.dtype == dtype
            np.testing.assert_allclose(
                np.asarray(leaf, np.float64), expected[layer], rtol=8 * eps, atol=eps
            )


def test_a_layer_nobody_sent_keeps_its_old_bits_and_absent_nans_are_not_read():
    stacked, weights, _, _ = updates(CASES["small"], seed=2)
    nobody = {"dense": np.zeros(7, bool), "bias": np.arange(7) < 6}
    stacked["bias"][6] = np.nan
    got = aggregation.layer_mean(stacked, weights, sent=nobody, previous=old(stacked))
    np.testing.assert_array_equal(got["dense"], 5.0)
    assert np.isfinite(got["bias"]).all()
    # Without an old value it is 0; a weight of 0 equals not sending.
    weights[:] = 0
    zero = aggregation.layer_mean(stacked, weights)
    assert not any(leaf.any() for leaf in jax.tree.leaves(zero))


@SMALL
def test_trimmed_mean_and_median_are_those_of_the_loops_and_of_scipy(name):
    stacked, _, mask, _ = updates(CASES[name], seed=3)
    for num_trimmed in (0, 1):
        if 2 * num_trimmed >= mask.sum():
            continue
        got = jax.jit(aggregation.trimmed_mean)(stacked, num_trimmed, mask=mask)
        expected = reference.trimmed_mean(stacked, num_trimmed, mask)
        chex.assert_trees_all_close(got, expected, rtol=1e-5)
        for layer, leaf in stacked.items():
            # SciPy rounds its fraction down; the added half prevents that.
            cut = (num_trimmed + 0.5) / mask.sum() if num_trimmed else 0
            theirs = stats.trim_mean(leaf[mask], cut)
            np.testing.assert_allclose(got[layer], theirs, rtol=1e-5)
    median = jax.jit(aggregation.coordinate_median)(stacked, mask=mask)
    expected = reference.coordinate_median(stacked, mask)
    chex.assert_trees_all_close(median, expected, rtol=1e-6)
    for layer, leaf in stacked.items():
        np.testing.assert_allclose(median[layer], np.median(leaf[mask], 0), rtol=1e-6)


def test_trimming_too_much_is_the_median_and_nobody_is_zero():
    x = {"w": jnp.array([5.0, 1.0, 2.0, 40.0])}
    assert float(aggregation.trimmed_mean(x, 9)["w"]) == 3.5  # (2 + 5) / 2
    nobody = jnp.zeros(4, bool)
    assert float(aggregation.trimmed_mean(x, 1, mask=nobody)["w"]) == 0
    assert float(aggregation.coordinate_median(x, mask=nobody)["w"]) == 0


@jax.jit
def _robust(x, mask):
    return (
        aggregation.trimmed_mean(x, 1, mask=mask),
        aggregation.coordinate_median(x, mask=mask),
        aggregation.krum(x, 1, num_selected=3, mask=mask)[0],
        aggregation.krum(x, 1, num_selected=7, mask=mask)[1],
    )


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 3e38])
def test_one_wild_client_moves_no_robust_aggregate_out_of_the_others_range(wild):
    rng = np.random.default_rng(0)
    honest = rng.normal(size=(6, 4)).astype(np.float32)
    stacked = {"w": np.concatenate([honest[:2], np.full((1, 4), wild), honest[2:]])}
    stacked = jax.tree.map(lambda leaf: leaf.astype(np.float32), stacked)
    absent = np.array([True] * 6 + [False])
    low, high = (
        stacked["w"][[0, 1, 3, 4, 5]].min(0),
        stacked["w"][[0, 1, 3, 4, 5]].max(0),
    )
    *robust, info = _robust(stacked, absent)
    for got in robust:
        got = np.asarray(got["w"])
        assert ((got >= low) & (got <= high)).all()
    expected = absent.copy()
    expected[2] = np.abs(wild) < np.inf  # Far away, but all are selected.
    np.testing.assert_array_equal(info["selected"], expected)


@SMALL
def test_krum_selects_as_the_loops_do(name):
    stacked, _, mask, _ = updates(CASES[name], seed=4)
    num_selected = min(2, int(mask.sum()))
    got, info = krum(stacked, 1, num_selected=num_selected, mask=mask)
    scores = reference.krum_scores(stacked, 1, mask)
    if mask.sum() >= 4:  # With fewer, no client has a neighbour that counts.
        np.testing.assert_allclose(info["scores"], scores, rtol=1e-4)
    chosen = np.argsort(info["scores"], kind="stable")[:num_selected]
    np.testing.assert_array_equal(np.flatnonzero(info["selected"]), np.sort(chosen))
    expected = {name: leaf[chosen].mean(0) for name, leaf in stacked.items()}
    chex.assert_trees_all_close(got, expected, rtol=1e-5)


def test_distances_keep_their_precision_far_from_zero():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 30)).astype(np.float32)
    exact = np.square(x[:, None].astype(float) - x[None]).sum(-1)
    shifted = (x + np.float32(1000)).astype(np.float32)
    near = np.square(shifted[:, None].astype(float) - shifted[None]).sum(-1)
    far = np.concatenate([shifted, np.full((1, 30), 1e30, np.float32)])
    got = np.asarray(jax.jit(aggregation.squared_distances)({"w": far}))
    np.testing.assert_allclose(got[:5, :5], near, rtol=1e-4)
    np.testing.assert_allclose(near, exact, rtol=1e-2)
    assert not np.diagonal(got).any() and np.isinf(got[5, :5]).all()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-4, 4, width=32), min_size=3, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_fixed_point_rounds_to_a_neighbour_and_sums_exactly(numbers, seed):
    x = jnp.asarray(numbers, jnp.float32)
    step = aggregation.fixed_point_resolution(3.0, 10, bits=12)
    sent = encode(jax.random.key(seed), x, 3.0, 10, bits=12)
    cut = np.clip(np.asarray(numbers, np.float64), -3, 3)
    assert sent.dtype == jnp.int32
    assert (np.abs(np.asarray(sent) * step - cut) < step).all()
    total = sum([sent] * 10)
    assert (np.abs(np.asarray(total, np.int64)) < 2**11).all()
    back = aggregation.fixed_point_decode(total, 3.0, 10, bits=12)
    np.testing.assert_array_equal(back, 10.0 * np.asarray(sent) * step)


def test_fixed_point_is_the_loop_and_unbiased():
    step = aggregation.fixed_point_resolution(1.0, 4, bits=8)
    assert step == 1 / 16  # 127 / 4 = 31.75 steps per client, and one for rounding.
    x = jnp.full(20_000, 0.3)
    key = jax.random.key(3)
    sent = np.asarray(encode(key, x, 1.0, 4, bits=8))
    uniform = np.asarray(jax.random.uniform(jax.random.fold_in(key, 0), x.shape))
    few = slice(0, 200)
    loop = reference.fixed_point(np.asarray(x)[few], uniform[few], step)
    np.testing.assert_array_equal(sent[few], loop)
    # 0.3 is 4.8 steps: 4 or 5, of variance 0.16; five standard errors are 0.014.
    assert abs(sent.mean() - 4.8) < 0.0142 < abs(round(4.8) - 4.8)
    assert set(np.unique(sent)) == {4, 5}


def test_fixed_point_wraps_and_cuts():
    key = jax.random.key(0)
    wild = jnp.array([np.nan, np.inf, -np.inf, 1e30])
    sent = encode(key, wild, 2.0, 3)
    back = aggregation.fixed_point_decode(sent, 2.0, 3)
    np.testing.assert_array_equal(back, [0.0, 2.0, -2.0, 2.0])
    # Masks that cancel modulo 2**32, as in secure aggregation, leave the sum unchanged.
    noise = jax.random.bits(key, (4,), jnp.uint32).astype(jnp.int32)
    masked = (sent + noise) + (sent - noise) + sent
    np.testing.assert_array_equal(masked, 3 * sent)
    first, second = (
        encode(key, leaf, 1.0, 1, bits=3)
        for leaf in (jnp.full(99, 0.25), {"a": jnp.zeros(()), "b": jnp.full(99, 0.25)})
    )
    assert (first != second["b"]).any()  # Another leaf gives other bits.


@pytest.mark.parametrize(
    ("bits", "num_clients"), [(3, 1), (12, 1), (12, 1000), (24, 7), (32, 1000)]
)
def test_the_resolution_is_a_power_of_two_and_the_smallest(bits, num_clients):
    step = aggregation.fixed_point_resolution(0.7, num_clients, bits)
    assert math.frexp(step)[0] == 0.5
    fits = lambda step: num_clients * (math.ceil(0.7 / step) + 1) < 2 ** (bits - 1)
    assert fits(step) and not fits(step / 2)


def test_works_side_by_side_and_compiles_once():
    stacked, weights, mask, _ = updates(CASES["small"], seed=5)
    many = jax.tree.map(lambda leaf: np.stack([leaf, leaf + 1]), stacked)

    @jax.jit
    @chex.assert_max_traces(n=1)
    def both(many, trimmed):
        one = lambda x: (
            aggregation.layer_mean(x, weights),
            aggregation.trimmed_mean(x, trimmed, mask=mask),
            aggregation.krum(x, trimmed, mask=mask)[0],
        )
        return jax.vmap(one)(many)

    first = both(many, 1)
    both(many, 2)
    alone = aggregation.trimmed_mean(stacked, 1, mask=mask)
    chex.assert_trees_all_close(jax.tree.map(lambda x: x[0], first[1]), alone)
    for part in first:  # All of them follow a common shift of the clients.
        shift = jax.tree.map(lambda x: x[1] - x[0], part)
        chex.assert_trees_all_close(
            shift, jax.tree.map(jnp.ones_like, shift), rtol=1e-5
        )


def test_the_mean_is_differentiable():
    stacked, weights, _, sent = updates(CASES["small"], seed=6)
    total = lambda x: jnp.sum(aggregation.layer_mean(x, weights, sent=sent)["bias"])
    grads = jax.grad(total)(jax.tree.map(jnp.asarray, stacked))
    share = np.where(sent["bias"], weights, 0) / weights[sent["bias"]].sum()
    np.testing.assert_allclose(grads["bias"][:, 0], share, rtol=1e-5)


@pytest.mark.parametrize("max_abs", [0.95, 0.3, 1.0])
def test_fixed_point_never_sends_more_than_the_bound(max_abs):
    x = jnp.array([max_abs, -max_abs, 9.0, -9.0])
    for seed in range(8):  # Rounding up is random.
        sent = encode(jax.random.key(seed), x, max_abs, 10, bits=8)
        back = aggregation.fixed_point_decode(sent, max_abs, 10, bits=8)
        step = aggregation.fixed_point_resolution(max_abs, 10, bits=8)
        assert np.abs(back).max() <= max_abs < np.abs(back).max() + 2 * step


def test_a_bound_that_float32_rounds_up_makes_no_sum_wrap():
    # 0.99999999 is 1 in float32: 2^30 steps, and twice that is -2^31 as an int32.
    x = jnp.array([9.0, -9.0])
    sent = encode(jax.random.key(0), x, 0.99999999, 2)
    back = aggregation.fixed_point_decode(sent + sent, 0.99999999, 2)
    np.testing.assert_allclose(back, [2.0, -2.0], rtol=1e-6)
    assert np.abs(back).max() < 2


def test_krum_selects_among_those_who_are_finite_however_few():
    x = jnp.array([1.0, 1.25, 0.75, 1.0, jnp.nan, jnp.inf, jnp.nan])
    chosen, info = krum(x, 1)
    assert chosen == 1.0 and info["selected"].tolist() == [True] + 6 * [False]


@pytest.mark.parametrize("num_byzantine", [-1, 3])
def test_krum_refuses_more_liars_than_it_can_bear(num_byzantine):
    with pytest.raises(ValueError, match=r"num_byzantine must be in \[0, 1\] for 5"):
        aggregation.krum(jnp.arange(5.0), num_byzantine)


def test_krum_of_a_single_client_that_is_there_selects_it():
    # It has no neighbour, so its score is an empty sum.
    updates = {"w": jnp.array([[9.0], [7.0], [4.0], [8.0]])}
    mask = jnp.array([False, False, True, False])
    run = jax.jit(lambda mask: aggregation.krum(updates, 0, mask=mask))
    chosen, info = run(mask)
    assert chosen["w"].tolist() == [4.0]
    assert info["selected"].tolist() == mask.tolist()
    assert info["scores"].tolist() == [np.inf, np.inf, 0.0, np.inf]
