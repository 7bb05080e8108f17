"""Clipping and noise on drawn rows, bounds, weights and groups, against float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**16)
positive = st.floats(0.125, 8.0, width=32)
GROUPS = {"w": "first", "v": ["second", "first"]}


@st.composite
def trees(draw, numbers=(5,), dtypes=(np.float32,)):
    """Draws rows as a tree of three leaves, one of which may hold non-finite values."""
    rng = np.random.default_rng(draw(seeds))
    number = draw(st.sampled_from(numbers))
    at = draw(st.sampled_from(dtypes))
    leaf = lambda *shape: rng.normal(size=(number, *shape)).astype(at)
    rows = {"w": leaf(3, 2), "v": [leaf(4), leaf()]}
    bad = draw(st.sampled_from((None, np.nan, np.inf)))
    if bad is not None and number:
        rows["v"][0][0, 1] = bad
    return rows


@st.composite
def bounds(draw):
    """Draws bounds: flat, by parts, or by labels.

    Includes the group of each leaf, in the order w, v[0], v[1].
    """
    kind = draw(st.sampled_from(("flat", "parts", "labels")))
    c = [draw(positive), draw(positive)]
    if kind == "flat":
        return c[0], None, [c[0]] * 3, [0, 0, 0]
    if kind == "parts":
        return {"w": c[0], "v": c[1]}, None, [c[0], c[1], c[1]], [0, 1, 1]
    named = {"first": c[0], "second": c[1]}
    return named, GROUPS, [c[0], c[1], c[0]], [0, 1, 0]


def leaves_of(tree):
    return [np.asarray(leaf) for leaf in (tree["w"], *tree["v"])]


def factors_of(rows, bound):
    """Returns the float64 factor of each leaf of each row; 0 drops the leaf."""
    _, _, of_leaf, group = bound
    flat = lambda leaf: leaf.reshape(len(leaf), math.prod(leaf.shape[1:]))
    leaves = [flat(leaf.astype(np.float64)) for leaf in leaves_of(rows)]
    factors = []
    for i in range(3):
        squares = [leaves[j] ** 2 for j in range(3) if group[j] == group[i]]
        norm = np.sqrt(np.concatenate(squares, axis=1).sum(axis=1))
        scale = of_leaf[i] / np.maximum(norm, of_leaf[i])
        factors.append(np.where(np.isfinite(norm), scale, 0))
    return factors


def clipped(rows, bound):
    found = []
    for leaf, factor in zip(leaves_of(rows), factors_of(rows, bound), strict=True):
        own = factor.reshape(-1, *[1] * (leaf.ndim - 1))
        numbers = np.where(np.isfinite(leaf), leaf, 0).astype(np.float64)
        found.append(numbers * own)
    return found


def assert_near(found, expected, at=np.float32):
    near = 1e-5 if at == np.float32 else 2e-3
    for one, other in zip(leaves_of(found), expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=near, atol=near)


@pytest.mark.slow
@few
@given(rows=trees((0, 1, 5), (np.float32, np.float16)), bound=bounds())
def test_rows_are_within_their_bounds_and_otherwise_as_they_were(rows, bound):
    clip_norms, groups, _, _ = bound
    found = kernels.clip_rows(rows, clip_norms, groups=groups)
    at = rows["w"].dtype
    assert_near(found, clipped(rows, bound), at)
    # Rows within the bound are unchanged to the bit.
    for got, was, factor in zip(
        *(leaves_of(found), leaves_of(rows), factors_of(rows, bound)), strict=True
    ):
        assert got.dtype == at
        within = factor == 1
        np.testing.assert_array_equal(got[within], was[within])


@st.composite
def weights(draw):
    """Draws weights of five rows, including invalid ones."""
    odd = (0.0, 1.0, 0.5, -1.0, 2.0, np.nan)
    return np.array([draw(st.sampled_from(odd)) for _ in range(5)], np.float32)


@few
@given(rows=trees(), bound=bounds(), given_weights=st.one_of(st.none(), weights()))
def test_a_sum_is_of_clipped_rows_by_their_weights(rows, bound, given_weights):
    clip_norms, groups, of_leaf, group = bound
    number = len(rows["w"])
    own = None if given_weights is None else given_weights[:number]
    total = kernels.clipped_sum(rows, clip_norms, groups=groups, weights=own)
    w = np.ones(number) if own is None else np.clip(np.nan_to_num(own, nan=0), 0, 1)
    expected = [np.tensordot(w, leaf, 1) for leaf in clipped(rows, bound)]
    assert_near(total.value, expected)
    np.testing.assert_allclose(total.squared_weights, (w**2).sum(), rtol=1e-6)
    joint = math.hypot(*{group[i]: of_leaf[i] for i in range(3)}.values())
    np.testing.assert_allclose(total.sensitivity, joint, rtol=1e-6)
    # No row contributes more than its bound: without noise the result is the sum.
    key = jax.random.key(0)
    assert_near(kernels.add_noise_to_sum(key, total, 0.0), expected)
    key = jax.random.clone(key)
    assert_near(kernels.add_aggregate_client_noise(key, total, 0.0), expected)


@few
@given(rows=trees(), bound=bounds(), z=st.floats(0.25, 4.0, width=32), seed=seeds)
def test_noise_is_as_many_times_larger_as_its_multiplier(rows, bound, z, seed):
    """The same key gives the same noise, scaled by each group's std."""
    clip_norms, groups, _, _ = bound
    total = kernels.clipped_sum(rows, clip_norms, groups=groups)
    key = lambda: jax.random.clone(jax.random.key(seed))
    noised = lambda add, z: [
        one - other
        for one, other in zip(
            leaves_of(add(key(), total, z)), leaves_of(total.value), strict=True
        )
    ]
    once, more = (noised(kernels.add_noise_to_sum, of) for of in (1.0, z))
    for one, other in zip(once, more, strict=True):
        assert np.all(one != 0)
        np.testing.assert_allclose(other, z * one, rtol=1e-3, atol=1e-4)
    # The sum of n clients' independent noises has sqrt(n) times the std of one.
    together = noised(kernels.add_aggregate_client_noise, 1.0)
    for one, other in zip(once, together, strict=True):
        expected = one * math.sqrt(len(rows["w"]))
        np.testing.assert_allclose(other, expected, rtol=1e-3, atol=1e-4)


@few
@given(
    rows=trees(),
    bound=bounds(),
    z=st.one_of(st.just(0.0), positive),
    seed=seeds,
)
def test_what_each_client_sends_is_its_clipped_row_and_noise(rows, bound, z, seed):
    clip_norms, groups, _, _ = bound
    key = jax.random.key(seed)
    found = kernels.clip_and_noise_per_client(key, rows, clip_norms, z, groups=groups)
    expected, at = clipped(rows, bound), rows["w"].dtype
    if z == 0:
        assert_near(found, expected, at)
    for got, leaf in zip(leaves_of(found), expected, strict=True):
        assert got.shape == leaf.shape and got.dtype == at and np.isfinite(got).all()
        if z:  # Each number has independent noise.
            assert len(np.unique(got - leaf)) > leaf.size / 2


@few
@given(
    c=st.tuples(positive, positive, positive),
    z=st.tuples(*[st.floats(0.0625, 8.0, width=32)] * 3),
)
def test_deviations_and_the_multiplier_they_come_to_are_each_others_inverse(c, z):
    named = dict(zip("abc", c, strict=True))
    whole = kernels.noise_stddevs(named, z[0])
    joint = math.sqrt(sum(one**2 for one in c))
    for stddev in whole.values():
        np.testing.assert_allclose(stddev, z[0] * joint, rtol=1e-5)
    parts = kernels.noise_stddevs(named, dict(zip("abc", z, strict=True)))
    np.testing.assert_allclose(
        [parts[name] for name in "abc"], np.multiply(c, z), rtol=1e-5
    )
    found = kernels.joint_noise_multiplier(named, parts)
    np.testing.assert_allclose(found, sum(one**-2 for one in z) ** -0.5, rtol=1e-5)
    # One std for all groups needs no larger multiplier than one std per group.
    assert kernels.joint_noise_multiplier(named, whole) >= z[0] * (1 - 1e-5)


@few
@given(z=st.floats(0.25, 4.0), stddev=st.floats(0.25, 20.0), counts=st.integers(1, 3))
def test_counts_leave_what_the_sum_of_squares_leaves(z, stddev, counts):
    left = z**-2 - counts * (2 * stddev) ** -2
    if left <= 1e-6:
        if left < -1e-6:
            with pytest.raises(ValueError, match="count_stddev"):
                kernels.noise_multiplier_with_counts(z, stddev, counts)
        return
    found = kernels.noise_multiplier_with_counts(z, stddev, counts)
    np.testing.assert_allclose(found, left**-0.5, rtol=1e-3)


@few
@given(
    rows=trees(),
    bound=bounds(),
    quantile=st.floats(0, 1, width=32),
    step=st.floats(0, 2, width=32),
)
def test_clip_norms_move_to_the_quantile_by_the_share_within(
    rows, bound, quantile, step
):
    clip_norms, groups, of_leaf, group = bound
    number = len(rows["w"])
    found = kernels.adapt_clip_norms(
        *(jax.random.key(0), rows, clip_norms),
        **{"count_stddev": 0.0, "quantile": quantile, "learning_rate": step},
        **{"groups": groups, "expected_rows": max(number, 1)},
    )
    values = [found] if group == [0, 0, 0] else list(found.values())
    if isinstance(clip_norms, dict):
        assert set(found) == set(clip_norms)
        values = [found[name] for name in clip_norms]
    factors = factors_of(rows, bound)
    for g, value in enumerate(values):
        leaf = group.index(g)
        within = (factors[leaf] == 1).mean() if number else 0.5
        expected = of_leaf[leaf] * math.exp(-step * (within - quantile))
        np.testing.assert_allclose(value, expected, rtol=1e-5)


@few
@given(
    bound=st.sampled_from(
        (0.0, -1.0, "1", {"w": 1.0}, [1.0, 2.0], {"x": 1.0, "y": 2.0})
    ),
    what=st.sampled_from(("clip_rows", "clipped_sum", "clip_and_noise_per_client")),
)
def test_bounds_that_are_none_or_of_another_tree_are_refused(bound, what):
    rows = {"w": jnp.ones((2, 3)), "v": jnp.ones(2)}
    calls = {
        "clip_rows": lambda: kernels.clip_rows(rows, bound),
        "clipped_sum": lambda: kernels.clipped_sum(rows, bound),
        "clip_and_noise_per_client": lambda: kernels.clip_and_noise_per_client(
            jax.random.key(0), rows, bound, 1.0
        ),
    }
    with pytest.raises((TypeError, ValueError), match="clip_norms"):
        calls[what]()
