"""Sums of the k smallest: search against sort and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxanon import kernels
from jaxanon.kernels import selection

by_search, by_sort = jax.jit(selection.by_search), jax.jit(selection.by_sort)
# Few sizes, so that few programs compile. Includes ties, infinities, zeros of both
# signs, and subnormal numbers, whose order alone is tested because a CPU may flush them
# to 0.
SIZES = st.sampled_from([1, 2, 9, 24])
NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, 3e-39, -3e-39]),
    st.floats(-1e6, 1e6, width=32),
)


@settings(max_examples=60, deadline=None)
@given(st.data())
@example(None)
def test_the_search_finds_what_a_sort_finds(data):
    if data is None:  # Twice the width, and more: several blocks and padding.
        x = np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)
        first, last = 3, 20
    else:
        size = data.draw(SIZES)
        column = st.lists(NUMBERS, min_size=size, max_size=size)
        x = np.array([data.draw(column) for _ in range(3)], np.float32).T
        first, last = (data.draw(st.integers(0, size)) for _ in range(2))
    kept = np.sort(x, axis=0)[first:last].astype(float)
    with np.errstate(invalid="ignore"):  # Sum of both infinities.
        expected = kept.sum(axis=0)
    for found in (by_search(x, first, last), by_sort(x, first, last)):
        largest = np.abs(np.where(np.isinf(kept), 0, kept)).max(initial=0)
        np.testing.assert_allclose(
            found, expected, rtol=1e-5, atol=1e-6 * len(x) * largest + 1e-38
        )


def test_one_place_is_found_to_the_last_bit():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(25, 3, 2)) * 10.0 ** rng.integers(-30, 30, (25, 3, 2))
    x[3:7] = x[2]  # Ties.
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype == np.float64):
            cast = x.astype(dtype)
            ascending = np.sort(cast, axis=0)
            for place in (0, 1, 12, 24):
                found = by_search(cast, place, place + 1)
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, ascending[place])
            # In parallel, each at separate positions: a median, and most of a column.
            first, last = np.array([12, 2]), np.array([13, 24])
            both = jax.jit(jax.vmap(selection.by_search))(
                np.stack([cast, cast]), first, last
            )
            np.testing.assert_array_equal(both[0], ascending[12])
            np.testing.assert_allclose(both[1], ascending[2:24].sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("columns", [4, selection.SMALL])
def test_the_median_is_exact_by_either_way_and_has_the_sorts_gradient(columns):
    x = np.random.default_rng(2).normal(size=(6, columns)).astype(np.float32)
    there = np.array([True, True, False, True, True, True])
    median = jax.jit(lambda x: kernels.coordinate_median(x, mask=there))
    np.testing.assert_array_equal(median(x), np.median(x[there], axis=0))
    grad = jax.jit(jax.grad(lambda x: jnp.sum(median(x))))(x)
    chosen = x == np.median(x[there], axis=0)
    np.testing.assert_array_equal(grad, chosen)


def test_slopes_of_slopes_are_the_sorts():
    x = np.random.default_rng(3).normal(size=(5, selection.SMALL // 4))
    x, slope = x.astype(np.float32), np.ones_like(x, np.float32)

    def bent(sum_of):
        grad = jax.grad(lambda x: jnp.sum(sum_of(x, 1, 4) ** 2))
        return jax.jit(lambda x: jax.jvp(grad, (x,), (slope,)))(x)

    found, expected = bent(selection.sum_of_places), bent(selection.by_sort)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
        found,
        expected,
    )


def test_a_large_leaf_is_searched_on_a_cpu_and_sorted_elsewhere():
    def sorts(columns, platform):
        shape = jax.ShapeDtypeStruct((8, columns), jnp.float32)
        traced = jax.jit(lambda x: selection.sum_of_places(x, 1, 2)).trace(shape)
        return (
            "stablehlo.sort" in traced.lower(lowering_platforms=(platform,)).as_text()
        )

    assert sorts(selection.SMALL // 8, "cpu")
    assert not sorts(selection.SMALL // 8 + 1, "cpu")
    assert sorts(selection.SMALL // 8 + 1, "cuda")


def test_called_by_itself_it_compiles_once_and_meets_no_nan(caplog):
    x = np.random.default_rng(4).normal(size=(8, selection.SMALL // 8 + 1))
    x = jnp.asarray(x, jnp.float32)
    kernels.coordinate_median(x)
    with jax.debug_nans(True), jax.log_compiles():
        caplog.clear()
        np.testing.assert_array_equal(
            kernels.coordinate_median(x), np.median(x, axis=0)
        )
    assert not [record for record in caplog.records if "Compiling" in record.message]
