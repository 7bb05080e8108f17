"""Clipped sums from factors against materialized per-example gradients."""

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon.kernels import ghost
from jaxanon.kernels.ghost import cases, reference

pytestmark = pytest.mark.slow

EACH = pytest.mark.parametrize("name", sorted(cases.CASES))
MASK = np.array([True, False, True, True])
LINEAR = jnp.array([[3.0, 4.0], [0.0, 2.0], [6.0, 8.0]])


def linear(w, x):
    return x @ w  # The gradient of each example is x.


def value(*args, **settings):
    return ghost.clipped_gradient_sum(*args, **settings)[0].value


@EACH
def test_agrees_with_gradients_made_one_by_one(name):
    case = cases.CASES[name]

    @jax.jit
    def fast(params, batch, all_bounds):
        args = case.loss_fn, params, batch
        return [ghost.clipped_gradient_sum(*args, c, mask=MASK) for c in all_bounds]

    with jax.enable_x64():
        params, batch = cases.problem(case, jax.random.key(1), 4, jnp.float64)
        losses, trees = reference.gradients(case.loss_fn, params, batch)
        slow = lambda bounds: reference.clipped_gradient_sum(trees, bounds, MASK)
        # Bounds that clip some examples only, for all leaves together and for each.
        middle = lambda norms: float(np.median(norms[MASK]))
        flat, layers = slow(1e9)[1], slow(jax.tree.map(lambda _: 1e9, params))[1]
        all_bounds = middle(flat), jax.tree.map(middle, layers)
        got = fast(params, batch, all_bounds)
        for bounds, (total, info) in zip(all_bounds, got, strict=True):
            expected = slow(bounds)
            close = {"rtol": 1e-10, "atol": 1e-13}
            chex.assert_trees_all_close((total.value, info.norms), expected, **close)
            chex.assert_trees_all_close(info.losses, np.array(losses) * MASK, **close)
            chex.assert_trees_all_equal_shapes_and_dtypes(total.value, params)


@EACH
def test_leaves_without_factors_are_those_that_the_case_names(name):
    # Otherwise a broken rule would pass every test by the fallback.
    case = cases.CASES[name]
    params, batch = jax.eval_shape(
        lambda key: cases.problem(case, key, 2), jax.random.key(0)
    )
    names = ghost.leaves_without_factors(case.loss_fn, params, batch)
    assert names == [f"['{leaf}']" for leaf in sorted(case.dense)]


def test_by_hand():
    total, info = ghost.clipped_gradient_sum(linear, jnp.ones(2), LINEAR, 2.5)
    # (3, 4) is halved, (0, 2) is within, (6, 8) is quartered.
    np.testing.assert_allclose(total.value, [3.0, 6.0], rtol=1e-6)
    np.testing.assert_allclose(info.norms, [5.0, 2.0, 10.0], rtol=1e-6)
    np.testing.assert_allclose(info.losses, [7.0, 2.0, 14.0], rtol=1e-6)
    assert float(total.sensitivity) == 2.5 and float(total.squared_weights) == 3.0


def test_within_the_bound_nothing_changes_to_the_bit():
    case = cases.CASES["mlp"]
    with jax.enable_x64():
        params, batch = cases.problem(case, jax.random.key(0), 1, jnp.float64)
        mean = lambda params: case.loss_fn(params, batch)[0]
        got = jax.jit(lambda p: value(case.loss_fn, p, batch, 1e6))(params)
        expected = jax.jit(jax.grad(mean))(params)
        chex.assert_trees_all_close(got, expected, rtol=1e-9)
    with_another = jnp.concatenate([LINEAR[1:2], jnp.zeros((1, 2))])
    np.testing.assert_array_equal(value(linear, jnp.ones(2), with_another, 2.0), [0, 2])


def test_agrees_with_optax():
    case = cases.CASES["conv"]
    params, batch = cases.problem(case, jax.random.key(2), 5)

    @jax.jit
    def both(params, batch):
        one = lambda params, x: case.loss_fn(params, x[None])[0]
        rows = jax.vmap(jax.grad(one), (None, 0))(params, batch)
        bounds = jax.tree.map(lambda _: 0.2, params)
        flat, _ = optax.per_example_global_norm_clip(jax.tree.leaves(rows), 0.5)
        layers, _ = optax.per_example_layer_norm_clip(
            jax.tree.leaves(rows), 0.4, uniform=True
        )
        bounds = jax.tree.map(lambda _: 0.4 / len(params) ** 0.5, params)
        ours = [value(case.loss_fn, params, batch, c) for c in (0.5, bounds)]
        return (flat, layers), [jax.tree.leaves(tree) for tree in ours]

    theirs, ours = both(params, batch)
    chex.assert_trees_all_close(list(map(list, theirs)), ours, rtol=1e-4, atol=1e-6)


def test_groups_share_a_bound():
    loss_fn = lambda p, x: x @ p["a"]["w"] + x @ p["a"]["v"] + 2 * (x @ p["b"])
    params = {"a": {"w": jnp.ones(1), "v": jnp.ones(1)}, "b": jnp.ones(1)}
    x = jnp.array([[1.0], [2.0]])
    # Group a has norms √2 and 2√2, group b has 2 and 4.
    total, info = ghost.clipped_gradient_sum(loss_fn, params, x, {"a": 2.0, "b": 3.0})
    np.testing.assert_allclose(total.value["a"]["w"], [1 + 2**0.5], rtol=1e-6)
    np.testing.assert_allclose(total.value["b"], [5.0], rtol=1e-6)
    np.testing.assert_allclose(info.norms["a"], [2**0.5, 8**0.5], rtol=1e-6)
    np.testing.assert_allclose(total.sensitivity, 13**0.5, rtol=1e-6)
    # Across the tree, w and b together have norms √5 and 2√5.
    labels = {"a": {"w": "one", "v": "two"}, "b": "one"}
    total, _ = ghost.clipped_gradient_sum(
        loss_fn, params, x, {"one": 5**0.5, "two": 9.0}, groups=labels
    )
    np.testing.assert_allclose(total.value["b"], [4.0], rtol=1e-6)
    np.testing.assert_allclose(total.value["a"]["w"], [2.0], rtol=1e-6)
    assert total.groups == (1, 0, 0)


@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_padding_adds_nothing_whatever_it_holds(name):
    case = cases.CASES[name]
    params, batch = cases.problem(case, jax.random.key(3), 4)
    run = jax.jit(
        lambda params, batch, mask: ghost.clipped_gradient_sum(
            case.loss_fn, params, batch, 0.1, mask=mask
        )
    )
    spoilt = batch.at[1].set(jnp.nan)
    padded = run(params, spoilt, MASK)
    chex.assert_trees_all_close(padded, run(params, batch, MASK), rtol=1e-6)
    assert float(padded[0].squared_weights) == 3
    assert padded[1].losses[1] == padded[1].norms[1] == 0
    # Only padding, and no example at all.
    zeros = jax.tree.map(jnp.zeros_like, params)
    chex.assert_trees_all_equal(run(params, spoilt, ~MASK & MASK)[0].value, zeros)
    chex.assert_trees_all_equal(run(params, batch[:0], MASK[:0])[0].value, zeros)


def test_an_example_that_is_not_finite_is_left_out():
    bad = jnp.array([[3.0, 4.0], [jnp.nan, 0.0], [jnp.inf, 1.0], [1e30, 0.0]])
    clip = jax.jit(ghost.clipped_gradient_sum, static_argnums=0)
    total, info = clip(linear, jnp.ones(2), bad, 2.5)
    np.testing.assert_allclose(total.value, [1.5, 2.0], rtol=1e-6)
    assert not np.isfinite(info.norms[1:]).any()
    # The same from factors of a matrix, whose inputs are not finite.
    square = lambda w, x: jnp.sum(x @ w, axis=1)
    got = clip(square, jnp.ones((2, 3)), bad, 5 * 3**0.5)[0].value
    np.testing.assert_allclose(got, np.outer([3.0, 4.0], np.ones(3)), rtol=1e-6)


NUMBERS = st.floats(-(2.0**40), 2.0**40, width=32)
_clip_matrix = jax.jit(
    lambda w, x, c: value(lambda w, x: jnp.sum(jnp.sin(x @ w), axis=1), w, x, c)
)


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(
    x=st.lists(NUMBERS, min_size=3, max_size=3),
    max_norm=st.floats(2.0**-10, 2.0**10, width=32),
)
def test_no_example_moves_the_sum_by_more_than_the_bound(x, max_norm):
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    rest = [0.5, -1.0, 2.0]
    with_it = _clip_matrix(w, np.float32([rest, x]), max_norm)
    without = _clip_matrix(w, np.float32([rest, [0.0] * 3]), max_norm)
    moved = np.linalg.norm(np.asarray(with_it, float) - np.asarray(without, float))
    assert moved <= max_norm * (1 + 1e-5)


@pytest.mark.parametrize("name", ["mlp", "conv", "shared"])
def test_half_precision_is_summed_in_float32(name):
    case = cases.CASES[name]
    params, batch = cases.problem(case, jax.random.key(4), 4, jnp.bfloat16)
    got = jax.jit(lambda p, b: value(case.loss_fn, p, b, 0.5))(params, batch)
    chex.assert_tree_all_finite(got)
    assert {leaf.dtype for leaf in jax.tree.leaves(got)} == {jnp.dtype("float32")}
    wide = jax.tree.map(lambda a: a.astype(jnp.float32), (params, batch))
    expected = jax.jit(lambda p, b: value(case.loss_fn, p, b, 0.5))(*wide)
    chex.assert_trees_all_close(got, expected, atol=0.05)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("params_dtype", ["float32", None])
def test_one_example_of_a_thousand_moves_half_precision_no_further(dtype, params_dtype):
    # Rounding sums and weights to half precision would change them by more than 2 C.
    x = 1 + jnp.abs(jax.random.normal(jax.random.key(7), (1024, 8), dtype))
    w = jnp.ones((8, 16), params_dtype or dtype)
    loss_fn = lambda w, x: jnp.sum(x @ w.astype(dtype), axis=1).astype(jnp.float32)

    @jax.jit
    def clipped(mask):
        total, _ = ghost.clipped_gradient_sum(loss_fn, w, x, 1.0, mask=mask)
        return total.value

    everybody = jnp.ones(1024, bool)
    with_all = np.asarray(clipped(everybody), float)
    for one in (0, 5, 1023):
        without = np.asarray(clipped(everybody.at[one].set(False)), float)
        assert 0.9 < np.linalg.norm(with_all - without) < 1 + 2e-3


@jax.jit
def _clip_scaled(x, slope):
    loss_fn = lambda w, x: jnp.sum(x @ w, axis=(1, 2)) * slope
    return ghost.clipped_gradient_sum(loss_fn, jnp.ones((16, 9)), x, 1e-3)


@pytest.mark.parametrize(
    ("inputs", "slope"), [(1e-19, 1e18), (1e20, 1e-19), (1.0, 1.0)]
)
@pytest.mark.parametrize("rows", [1, 2])
def test_factors_whose_squares_vanish_or_overflow_are_clipped_all_the_same(
    inputs, slope, rows
):
    x = np.full((1, rows, 16), inputs, np.float32)
    total, info = _clip_scaled(x, np.float32(slope))
    # Every entry is rows * inputs * slope, and there are 16 * 9 entries.
    np.testing.assert_allclose(info.norms, [12 * rows * inputs * slope], rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(total.value), 1e-3, rtol=1e-4)


@jax.jit
def _clip_difference(w, x):
    signs = jnp.array([1.0, -1.0])[None, :, None]
    loss_fn = lambda w, x: jnp.sum((x @ w) * signs, axis=(1, 2))
    return value(loss_fn, w, x, 1e-3)


@pytest.mark.parametrize("closeness", [1e-2, 1e-3, 1e-4, 1e-6])
def test_rows_that_cancel_do_not_hide_what_is_left(closeness):
    rng = np.random.default_rng(3)
    row = rng.normal(size=32)
    rows = np.stack([row, row * (1 + closeness * rng.normal(size=32))])
    total = _clip_difference(np.ones((32, 24), np.float32), np.float32(rows[None]))
    assert np.linalg.norm(np.asarray(total, float)) <= 1e-3 * (1 + 1e-4)


def test_float16_norms_do_not_overflow():
    # 300² overflows float16; the norm is 300 √2.
    x = jnp.full((1, 2), 300.0, jnp.float16)
    total, info = ghost.clipped_gradient_sum(linear, jnp.ones(2, jnp.float16), x, 1.0)
    np.testing.assert_allclose(info.norms, [300 * 2**0.5], rtol=1e-3)
    np.testing.assert_allclose(total.value, [0.5**0.5] * 2, rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (lambda w, x: jnp.mean(x @ w), 1.0),
            ValueError,
            r"float\[B\].*got shape \(\)",
        ),
        ((linear, 0.0), ValueError, "clip_norms must be > 0, got 0.0"),
        ((linear, {"a": 1.0}), ValueError, "clip_norms must be a tree prefix"),
    ],
)
def test_says_what_was_wrong(arguments, error, message):
    loss_fn, clip_norms = arguments
    with pytest.raises(error, match=message):
        ghost.clipped_gradient_sum(loss_fn, jnp.ones(2), LINEAR, clip_norms)


def test_says_what_was_wrong_with_arrays():
    run = ghost.clipped_gradient_sum
    ones = jnp.ones(2)
    with pytest.raises(TypeError, match="params must be real floating.*int32"):
        run(linear, jnp.ones(2, jnp.int32), LINEAR, 1.0)
    with pytest.raises(
        ValueError, match=r"batch.*one B, got shapes \[\(3, 2\), \(2,\)"
    ):
        run(linear, ones, (LINEAR, ones), 1.0)
    with pytest.raises(TypeError, match="mask must be bool, got dtype float32"):
        run(linear, ones, LINEAR, 1.0, mask=jnp.ones(3))
    with pytest.raises(
        ValueError, match=r"mask must be bool\[3\], .* got shape \(2,\)"
    ):
        run(linear, ones, LINEAR, 1.0, mask=jnp.ones(2, bool))
