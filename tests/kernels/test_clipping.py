"""Clipping against plain loops, Optax, hand arithmetic and finite differences."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, PartitionSpec

from jaxanon.kernels import clipping, row_sums
from jaxanon.kernels.clipping import cases, reference

HALF = (jnp.bfloat16, jnp.float16)


def _one_by_one(tree):
    num_rows = len(next(iter(tree.values())))
    return [{name: leaf[i] for name, leaf in tree.items()} for i in range(num_rows)]


@functools.cache
def _jitted(fn, **static):
    return jax.jit(functools.partial(fn, **static))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("flat", jnp.float32),
        ("flat", jnp.bfloat16),
        ("groups", jnp.float32),
        ("groups", jnp.float16),
        ("one_row", jnp.bfloat16),
    ],
)
def test_rows_are_those_of_the_loops(name, dtype):
    case = cases.CASES[name]
    rows = cases.rows(case, 0, dtype)
    clip = jax.jit(lambda r: clipping.clip_rows(r, case.clip_norms, groups=case.groups))
    got = clip(rows)
    chex.assert_trees_all_equal_shapes_and_dtypes(got, jax.tree.map(jnp.asarray, rows))
    rtol = 1.5 * float(jnp.finfo(dtype).eps) if dtype in HALF else 3e-6
    for i, row in enumerate(_one_by_one(rows)):
        row = {k: np.asarray(v, np.float64) for k, v in row.items()}
        expected = reference.clip_row(row, case.groups, case.clip_norms)
        here = {k: np.asarray(v[i], np.float64) for k, v in got.items()}
        chex.assert_trees_all_close(here, expected, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "dtype", "large"),  # Row by row on the CPU, or all at once.
    [
        ("flat", jnp.float32, 0),
        ("flat", jnp.bfloat16, 1000),
        ("groups", jnp.float32, 1000),
        ("groups", jnp.bfloat16, 0),
        ("groups", jnp.float16, 1000),
        ("one_row", jnp.float32, 1000),
        ("one_row", jnp.float16, 0),
    ],
)
def test_sum_is_that_of_the_loops(name, dtype, large, monkeypatch):
    monkeypatch.setattr(row_sums, "LARGE", large)
    case = cases.CASES[name]
    rows = cases.rows(case, 1, dtype)
    weights = np.linspace(1.0, 0.0, case.num_rows, dtype=np.float32)
    run = lambda rows, weights: clipping.clipped_sum(
        rows, case.clip_norms, groups=case.groups, weights=weights
    )
    total = jax.jit(run)(rows, weights)
    wide = jax.tree.map(lambda x: np.asarray(x, np.float64), rows)
    expected = reference.clipped_sum(
        _one_by_one(wide), case.groups, case.clip_norms, weights
    )
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(total.value))
    chex.assert_trees_all_close(
        jax.tree.map(np.asarray, total.value), expected, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(total.squared_weights, np.sum(weights**2), rtol=1e-6)
    squares = [c**2 for c in case.clip_norms.values()]
    np.testing.assert_allclose(total.sensitivity, np.sqrt(sum(squares)), rtol=1e-6)


def test_the_ways_to_sum_agree_and_leave_bad_rows_out():
    # Accelerators use the column layout; this runs it on a CPU.
    leaf = jnp.arange(24.0).reshape(4, 3, 2).at[2].set(jnp.nan)
    factor, used = jnp.array([1.0, 0.5, 2.0, 0.0]), jnp.array([True, True, False, True])
    expected = leaf[0] + leaf[1] / 2
    for way in (row_sums.by_columns, row_sums.by_product, row_sums.row_by_row):
        np.testing.assert_array_equal(jax.jit(way)(factor, used, leaf), expected)


def test_known_rows():
    x = jnp.array([[3.0, 4.0], [0.0, 0.5], [0.0, 0.0], [-3.0, 4.0]])
    got = clipping.clip_rows(x, 1.0)
    # Norm 5 is clipped to 1; norm 0.5 is within the bound; 0 must not become NaN.
    by_hand = jnp.array([[0.6, 0.8], [0.0, 0.5], [0.0, 0.0], [-0.6, 0.8]])
    chex.assert_trees_all_close(got, by_hand, rtol=1e-6)
    np.testing.assert_array_equal(clipping.clip_rows(x, 5.0), x)  # At the bound.


def test_a_number_bounds_all_that_is_beneath_it():
    # Row by leaf: a = 2, b = 3, c = 6; norm of all 7, of (a, b) sqrt(13).
    rows = {
        "net": {"a": jnp.array([2.0]), "b": jnp.array([3.0])},
        "c": jnp.array([6.0]),
    }
    clip = lambda bound, **more: clipping.clip_rows(rows, bound, **more)
    close = functools.partial(chex.assert_trees_all_close, rtol=1e-6)
    close(clip(3.5), jax.tree.map(lambda x: x / 2, rows))
    half = {"net": jax.tree.map(lambda x: x / 2, rows["net"]), "c": jnp.array([1.5])}
    close(clip({"net": 13**0.5 / 2, "c": 1.5}), half)
    each = {"net": {"a": 0.5, "b": 4.0}, "c": 3.0}
    by_leaf = {
        "net": {"a": jnp.array([0.5]), "b": jnp.array([3.0])},
        "c": jnp.array([3.0]),
    }
    close(clip(each), by_leaf)
    # Labels across the tree: a and c together have norm sqrt(40).
    labels = {"net": {"a": "x", "b": "y"}, "c": "x"}
    crossed = {
        "net": {"a": jnp.array([1.0]), "b": jnp.array([1.0])},
        "c": jnp.array([3.0]),
    }
    close(clip({"x": 10**0.5, "y": 1.0}, groups=labels), crossed)


def test_flat_and_per_layer_sums_are_those_of_optax():
    case = cases.CASES["groups"]
    rows = jax.tree.map(jnp.asarray, cases.rows(case, 3))
    leaves, treedef = jax.tree.flatten(rows)
    optax_flat = jax.jit(optax.per_example_global_norm_clip, static_argnums=1)
    optax_layers = jax.jit(optax.per_example_layer_norm_clip, static_argnums=(1, 2))
    summed = _jitted(clipping.clipped_sum)
    theirs, _ = optax_flat(leaves, 1.5)
    ours = summed(rows, 1.5).value
    chex.assert_trees_all_close(ours, treedef.unflatten(theirs), rtol=1e-5, atol=1e-6)
    theirs, _ = optax_layers(leaves, 1.5, True)
    each = jax.tree.map(lambda _: 1.5 / len(leaves) ** 0.5, rows)
    ours = summed(rows, each).value
    chex.assert_trees_all_close(ours, treedef.unflatten(theirs), rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_finite_differences_and_finite_at_zero():
    x = np.array([[3.0, 4.0], [0.1, 0.2], [0.0, 0.0]])
    along = jnp.array([[1.0, -2.0], [0.5, 1.0], [2.0, 1.0]])

    def loss(x, bound):
        total = clipping.clipped_sum(x, bound).value
        return jnp.sum(along * clipping.clip_rows(x, bound)) + jnp.sum(total**2)

    with jax.enable_x64(True):
        args = jnp.asarray(x), jnp.float64(0.7)
        grads = jax.jit(jax.grad(loss, (0, 1)))(*args)
        value, step = jax.jit(loss), 1e-6
        for i in np.ndindex(3, 2):
            up, down = args[0].at[i].add(step), args[0].at[i].add(-step)
            slope = (value(up, args[1]) - value(down, args[1])) / (2 * step)
            np.testing.assert_allclose(grads[0][i], slope, rtol=1e-6, atol=1e-8)
        slope = value(args[0], 0.7 + step) - value(args[0], 0.7 - step)
        np.testing.assert_allclose(grads[1], slope / (2 * step), rtol=1e-6)


def test_float64_is_taken_in_float64():
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(4, 5)) * 1e100
        total = jax.jit(clipping.clipped_sum)(x, 2.0)
        expected = np.sum(2 * x / np.linalg.norm(x, axis=1, keepdims=True), axis=0)
        assert total.value.dtype == jnp.float64
        np.testing.assert_allclose(total.value, expected, rtol=1e-13)
        half = clipping.clipped_sum(np.ones((2, 3), np.float16), 1.0)
        assert half.value.dtype == jnp.float32


def test_a_sweep_of_bounds_is_one_more_axis():
    case = cases.CASES["groups"]
    rows = cases.rows(case, 4)
    run = lambda c: clipping.clipped_sum(
        rows, {"bias": c, "kernel": 2 * c}, groups=case.groups
    )
    bounds = jnp.array([0.3, 1.0, 2.0])
    swept = jax.jit(jax.vmap(run))(bounds)
    np.testing.assert_allclose(swept.clip_norms["kernel"], 2 * bounds)
    for i, bound in enumerate(bounds):
        one = jax.tree.map(lambda x, i=i: x[i], swept)
        alone = jax.jit(run)(bound)
        chex.assert_trees_all_close(one, alone, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        ValueError, match=r"clip_norms must be one number.*shape \(3,\)"
    ):
        clipping.clipped_sum(rows, bounds)


def test_clients_spread_over_an_axis_sum_as_if_together(monkeypatch):
    monkeypatch.setattr(row_sums, "LARGE", 0)
    x = jnp.asarray(cases.rows(cases.CASES["groups"], 5)["a"])[:8]
    weights = jnp.array([1.0, 1, 0, 1, 1, 0.5, 1, 1])
    whole = jax.jit(lambda x, w: clipping.clipped_sum(x, 1.0, weights=w))(x, weights)
    local = lambda x, w: clipping.clipped_sum(x, 1.0, weights=w, axis_name="clients")
    mapped = jax.jit(jax.vmap(local, axis_name="clients"))(
        x.reshape(4, 2, 4, 3), weights.reshape(4, 2)
    )
    mesh = Mesh(np.array(jax.devices()[:1]), ("clients",))
    rows, all_ = PartitionSpec("clients"), PartitionSpec()
    sharded = jax.jit(
        jax.shard_map(local, mesh=mesh, in_specs=(rows, rows), out_specs=all_)
    )(x, weights)
    for total in (sharded, jax.tree.map(lambda leaf: leaf[2], mapped)):
        chex.assert_trees_all_close(total, whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(whole.sensitivity, 1.0)


def test_compiles_once_per_shape():
    def both(x, bound):
        return clipping.clip_rows(x, bound), clipping.clipped_sum(x, bound)

    run = jax.jit(chex.assert_max_traces(both, n=1))
    for seed in range(3):
        run(jax.random.normal(jax.random.key(seed), (4, 9)), 0.5 + seed)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"clip_norms": 0.0}, ValueError, "clip_norms must be > 0, got 0.0"),
        ({"clip_norms": np.float32(-2)}, ValueError, "must be > 0, got np.float32"),
        ({"clip_norms": np.array(-2)}, ValueError, r"must be > 0, got array\(-2\)"),
        ({"clip_norms": {"w": 1.0, "b": -1}}, ValueError, "must be > 0, got -1"),
        ({"clip_norms": {"w": 1.0}}, ValueError, "clip_norms must be a tree prefix"),
        ({"clip_norms": {}}, ValueError, "clip_norms must hold at least one number"),
        (
            {"groups": "all"},
            TypeError,
            "clip_norms must be a dict from label.*got Array\\(1",
        ),
        (
            {"groups": {"w": "x", "b": "y"}, "clip_norms": {"x": 1.0}},
            ValueError,
            r"one number for each label.*\['x', 'y'\] and numbers for \['x'\]",
        ),
        (
            {"groups": {"w": "x"}, "clip_norms": {"x": 1.0}},
            ValueError,
            "groups must be",
        ),
        ({"rows": {}}, ValueError, "rows must have at least one leaf"),
        ({"rows": jnp.array([1, 2])}, TypeError, "got a leaf of dtype int32"),
        ({"rows": jnp.array([1j])}, TypeError, "must hold real numbers"),
        ({"rows": jnp.float32(1)}, ValueError, r"with one N, got shapes \[\(\)\]"),
        (
            {"rows": [jnp.ones(2), jnp.ones((3, 2))]},
            ValueError,
            r"with one N, got shapes \[\(2,\), \(3, 2\)\]; stack",
        ),
        ({"weights": jnp.ones(4)}, ValueError, r"weights must be float\[2\].*\(4,\)"),
    ],
)
def test_says_what_was_wrong(change, error, message):
    good = {"rows": {"w": jnp.ones((2, 3)), "b": jnp.ones(2)}, "clip_norms": 1.0}
    with pytest.raises(error, match=message):
        clipping.clipped_sum(**(good | change))
