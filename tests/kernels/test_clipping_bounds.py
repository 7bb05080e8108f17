"""The bound holds for any row values, and for any weight."""

import functools

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels import clipping
from jaxanon.kernels.clipping import factors

HALF = (jnp.bfloat16, jnp.float16)


def _norm(x):
    """Returns the L2 norm of each row in float64, for any dtype."""
    flat = np.asarray(x, np.float64).reshape(len(x), -1)
    return np.sqrt(np.sum(np.square(flat / 1e3), axis=1)) * 1e3


@functools.cache
def _jitted(fn):
    return jax.jit(fn)


def _any_float(dtype):
    info = jnp.finfo(dtype)
    special = st.sampled_from(
        [
            *(0.0, -0.0, np.inf, -np.inf, np.nan, float(info.max), -float(info.max)),
            *(float(info.tiny), float(info.tiny) / 8),
        ]
    )
    ordinary = st.floats(-4, 4, width=32)
    power = st.integers(-40, 38).map(lambda e: 10.0**e)
    return special | ordinary | power


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@hypothesis.settings(deadline=None, max_examples=60, derandomize=True)
@hypothesis.given(data=st.data())
def test_bound_holds_for_any_row_and_a_row_within_it_is_untouched(dtype, data):
    entries = hnp.arrays(np.float64, (3, 5), elements=_any_float(dtype))
    with np.errstate(over="ignore"):
        x = data.draw(entries).astype(dtype)
    bounds = st.sampled_from([1e-20, 1e-12, 1e-6, 0.3, 1.0, 60_000.0, 1e18, 1e30])
    bound = np.float32(data.draw(bounds))
    clipped = np.asarray(_jitted(clipping.clip_rows)(x, bound))
    slack = 1 if dtype in HALF else 1 + 1e-6
    before, after = _norm(x), _norm(clipped)
    assert np.isfinite(clipped.astype(np.float64)).all()
    assert (after <= np.float64(bound) * slack).all()
    untouched = (before <= np.float64(bound) * (1 - 1e-6)) & (before < 1e19)
    if bound >= 1e-12:
        for row, same in zip(range(3), untouched, strict=True):
            assert not same or clipped[row].tobytes() == x[row].tobytes()
        # A row over the bound is clipped to it, not below it, as far as its dtype
        # allows.
        cut = (before > bound * (1 + 1e-6)) & (before < 1e19) & (bound >= 0.3)
        eps = 2 * float(jnp.finfo(dtype).eps) + 1e-6
        assert (after[cut] >= bound * (1 - eps)).all()
    total = _jitted(clipping.clipped_sum)(x, bound)
    assert _norm(total.value[None])[0] <= 3 * np.float64(bound) * (1 + 1e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_hostile_rows_by_name(dtype):
    top, tiny = float(jnp.finfo(dtype).max), float(jnp.finfo(dtype).tiny)
    x = [[top, top], [tiny / 4, 0], [np.inf, 1], [np.nan, 0], [-0.0, 0], [3, 4]]
    x = np.array(x).astype(dtype)
    got = np.asarray(jax.jit(clipping.clip_rows)(x, 1.0))
    if dtype == jnp.float16:  # 65504^2 overflows float16 but not float32.
        np.testing.assert_allclose(got[0].astype(float), 0.5**0.5, rtol=2e-3)
    else:
        assert not got[0].any()
    assert got[1].tobytes() == x[1].tobytes() and x[1].any()
    assert not got[2:4].any()
    assert got[4].tobytes() == x[4].tobytes()
    np.testing.assert_allclose(got[5].astype(float), [0.6, 0.8], rtol=2e-2)


def test_a_bad_group_leaves_the_others_alone():
    rows = {
        "a": jnp.array([[jnp.nan, 1.0], [3.0, 4.0]]),
        "b": jnp.array([2.0, jnp.inf]),
    }
    got = _jitted(clipping.clip_rows)(rows, {"a": 2.5, "b": 1.0})
    expected = {"a": jnp.array([[0.0, 0.0], [1.5, 2.0]]), "b": jnp.array([1.0, 0.0])}
    chex.assert_trees_all_equal(got, expected)
    total = _jitted(clipping.clipped_sum)(rows, {"a": 2.5, "b": 1.0})
    expected = {"a": jnp.array([1.5, 2.0]), "b": jnp.array(1.0)}
    chex.assert_trees_all_equal(total.value, expected)
    # One bound for both: both rows are dropped entirely.
    assert not any(leaf.any() for leaf in clipping.clip_rows(rows, 1.0).values())


def test_weights_stay_within_what_the_bound_allows():
    rows = jnp.array([[1.0], [1.0], [1.0], [1.0], [jnp.nan], [1.0]])
    weights = jnp.array([0.25, 7.0, -3.0, jnp.nan, 0.0, jnp.inf])
    summed = jax.jit(lambda rows, w: clipping.clipped_sum(rows, 1.0, weights=w))
    total = summed(rows, weights)
    np.testing.assert_array_equal(total.value, [0.25 + 1 + 1])
    np.testing.assert_array_equal(total.squared_weights, 1 / 16 + 1 + 1)
    mask = jnp.array([True, False, True, False, False, False])
    np.testing.assert_array_equal(summed(rows, mask).value, [2.0])


def test_no_rows_and_only_padding_sum_to_zero():
    for rows, weights in [(jnp.ones((0, 3)), None), (jnp.ones((4, 3)), jnp.zeros(4))]:
        total = clipping.clipped_sum(rows, 1.0, weights=weights)
        np.testing.assert_array_equal(total.value, jnp.zeros(3))
        assert total.squared_weights == 0
    assert clipping.clip_rows(jnp.ones((0, 3)), 1.0).shape == (0, 3)


def test_a_traced_bound_of_zero_or_less_gives_zeros():
    x = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    for bound in (0.0, -1.0, jnp.nan, 1e-15):
        assert not _jitted(clipping.clip_rows)(x, jnp.float32(bound)).any()
        assert not _jitted(clipping.clipped_sum)(x, jnp.float32(bound)).value.any()


def test_norms_do_not_stall_over_many_entries():
    # Sequential summation in float32 would stop at 2^24.
    x = jnp.ones((1, 1 << 25))
    factor = jax.jit(lambda x: clipping.clip_rows(x, 2.0**11.5)[0, 0])(x)
    np.testing.assert_allclose(factor, 0.5, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "least"), [("float32", -43), ("float64", -491)])
def test_bounds_too_small_for_squares_drop_every_row(dtype, least):
    with jax.enable_x64(dtype == "float64"):
        rows = jnp.array([[3.0, 4.0], [0.0, 0.0]], dtype)
        clip = _jitted(clipping.clip_rows)
        kept = clip(rows, jnp.asarray(2.0**least, dtype))
        np.testing.assert_allclose(kept[0] / 2.0**least, [0.6, 0.8], rtol=1e-6)
        assert not clip(rows, jnp.asarray(0.99 * 2.0**least, dtype)).any()


@pytest.mark.parametrize(("dtype", "most"), [("float32", 64), ("float64", 512)])
def test_rows_whose_squares_overflow_are_dropped(dtype, most):
    with jax.enable_x64(dtype == "float64"):
        rows = jnp.array([[2.0**most], [0.99 * 2.0**most]], dtype)
        clipped = _jitted(clipping.clip_rows)(rows, jnp.ones((), dtype))
        np.testing.assert_allclose(clipped[:, 0], [0, 1], rtol=1e-6)


def test_what_may_not_be_used_is_multiplied_by_zero():
    # Programs that sum rows rely on it: they use only the factor.
    squares = jnp.array([np.nan, np.inf, 4.0, 0.0])
    scale = factors.scale(squares, jnp.float32(1))
    assert scale.real.tolist() == [False, False, True, True]
    assert scale.factor.tolist() == [0, 0, 0.5, 1]
