"""Window statistics against loops, NumPy, SciPy and properties."""

import functools

import chex
import hypothesis
import hypothesis.extra.numpy as arrays
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies
from jax.test_util import check_grads
from scipy import stats

from jaxanon.kernels import signals, sorting
from jaxanon.kernels.signals import reference


@pytest.fixture(scope="module")
def described():
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(3, 4, 25, 2)) - 1.5 + 5 * rng.normal(size=(3, 4, 1, 2))
    with jax.enable_x64(True):
        return x, jax.jit(signals.window_statistics)(x)


def test_statistics_are_numpys_and_scipys(described):
    x, found = described
    axis = {"axis": -2}
    low, high = np.percentile(x, [25, 75], **axis)
    expected = signals.WindowStatistics(
        mean=x.mean(**axis),
        std=x.std(**axis),
        variance=x.var(**axis),
        minimum=x.min(**axis),
        maximum=x.max(**axis),
        median=np.median(x, **axis),
        interquartile_range=stats.iqr(x, **axis),
        skewness=stats.skew(x, **axis),
        kurtosis=stats.kurtosis(x, **axis),
        energy=np.sum(x**2, **axis),
        rms=np.sqrt(np.mean(x**2, **axis)),
        zero_crossings=np.sum(np.diff(x < 0, **axis), **axis).astype(np.int32),
    )
    np.testing.assert_allclose(high - low, expected.interquartile_range)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, expected)
    chex.assert_trees_all_close(found, expected, rtol=1e-12, atol=1e-12)


def test_statistics_are_those_of_the_loops_whatever_is_masked():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 12, 2))
    mask = rng.random((40, 12)) < rng.random((40, 1))
    mask[0], mask[1] = False, True
    mask[2] = np.arange(12) == 5
    tainted = np.where(mask[..., None], x, np.nan)
    with jax.enable_x64(True):
        found = jax.jit(signals.window_statistics)(tainted, mask)
    for name, values in found._asdict().items():
        for i in range(40):
            real = x[i, mask[i]]
            if name == "zero_crossings":  # Neighbours in time, not in the list.
                below, both = x[i] < 0, mask[i, 1:] & mask[i, :-1]
                loops = np.sum((below[1:] != below[:-1]) & both[:, None], axis=0)
            elif len(real):
                loops = [reference.window_statistics(list(c))[name] for c in real.T]
            else:
                loops = 0
            np.testing.assert_allclose(values[i], loops, rtol=1e-10, atol=1e-12)
    crossings = reference.window_statistics(list(x[1, :, 0]))["zero_crossings"]
    assert found.zero_crossings[1, 0] == crossings


@pytest.mark.parametrize("value", [0.0, 0.1, -1e4, 1e-40, 3e38])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_constant_windows(value, dtype):
    x = jnp.full((7, 1), value, dtype)
    found = jax.jit(signals.window_statistics)(x)
    zero = ("std", "variance", "skewness", "kurtosis", "interquartile_range")
    for name in (*zero, "zero_crossings"):
        assert getattr(found, name) == 0, name
    for name in ("mean", "median", "minimum", "maximum"):
        assert getattr(found, name) == x[0].astype(jnp.float32), name


def test_moments_survive_offset_and_scale():
    x = np.random.default_rng(0).gamma(2.0, size=(100, 1))
    run = jax.jit(signals.window_statistics)
    for scale, offset, rtol in ((1e-25, 0, 1e-5), (1e25, 0, 1e-5), (1, 1e3, 1e-3)):
        shifted = (scale * x + offset).astype(np.float32)
        found = run(shifted)
        exact = shifted.astype(np.float64)
        np.testing.assert_allclose(found.skewness, stats.skew(exact), rtol=rtol)
        np.testing.assert_allclose(found.kurtosis, stats.kurtosis(exact), rtol=rtol)
        np.testing.assert_allclose(found.std, exact.std(axis=0), rtol=1e-5)
        rms = np.sqrt(np.mean(exact**2, axis=0))
        np.testing.assert_allclose(found.rms, rms, rtol=1e-5)


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(
    arrays.arrays(np.float32, (9, 1), elements=strategies.floats(-64, 64, width=16)),
    strategies.sampled_from([-4.0, 0.5, 2.0]),
)
def test_how_statistics_follow_a_scale(x, scale):
    run = jax.jit(signals.window_statistics)
    one, other = run(x), run(scale * x)
    sign = np.sign(scale)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    close(other.mean, scale * one.mean, atol=1e-4)
    close(other.std, abs(scale) * one.std)
    close(other.rms, abs(scale) * one.rms)
    close(other.energy, scale**2 * one.energy)
    close(other.median, scale * one.median)
    close(other.interquartile_range, abs(scale) * one.interquartile_range)
    close(other.skewness, sign * one.skewness)
    close(other.kurtosis, one.kurtosis)
    assert one.minimum <= one.median <= one.maximum and one.std <= one.rms + 1e-4
    assert one.kurtosis >= one.skewness**2 - 2 - 1e-3 or one.std == 0


def test_energy_of_a_table_that_was_published():
    # Mean .28 and std .12 over windows of 125 samples, energy 12.11 (GEN).
    energy = 125 * (0.28**2 + 0.12**2)
    assert abs(energy / 12.11 - 1) < 0.05
    x = 0.28 + 0.12 * np.sqrt(2) * np.sin(2 * np.pi * np.arange(125) / 25)
    found = jax.jit(signals.window_statistics)(x[:, None].astype(np.float32))
    np.testing.assert_allclose(found.energy, energy, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sorting_by_bits_is_sorting(dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3, 50)) * 10.0 ** rng.integers(-30, 30, (3, 50))).astype(
        dtype
    )
    tiny = np.finfo(dtype).tiny / 4
    x[:, :8] = 0.0, -0.0, np.inf, -np.inf, tiny, -tiny, 1.0, 1.0
    with jax.enable_x64(True):
        ascending = jax.jit(sorting.in_order)(x)
    assert ascending.dtype == dtype
    np.testing.assert_array_equal(ascending, np.sort(x))


def test_nothing_to_describe_is_zero_and_a_nan_is_not_hidden():
    run = jax.jit(signals.window_statistics)
    mask = np.arange(5)[None] < np.array([[0], [2]])
    x = np.where(mask[..., None], [[[1.0, np.nan]]], np.nan).astype(np.float32)
    empty, found = run(np.ones((2, 0, 3), np.float32)), run(x, mask)
    for name, values in found._asdict().items():
        assert not values[0].any(), name
        if name != "zero_crossings":
            assert not jnp.isnan(values[1, 0]) and jnp.isnan(values[1, 1]), name
    for name, values in empty._asdict().items():
        assert values.shape == (2, 3) and not values.any(), name


def test_statistics_have_gradients_and_zero_where_constant():
    x = np.random.default_rng(0).normal(size=(2, 9, 1))
    mask = np.arange(9)[None] < np.array([[9], [6]])

    def smooth(x):
        found = signals.window_statistics(x, mask)._asdict()
        return jnp.stack([v for k, v in found.items() if k != "zero_crossings"])

    with jax.enable_x64(True):
        check_grads(jax.jit(smooth), (x,), 1, modes=["rev"], atol=1e-6)
        jacobian = jax.jit(jax.jacrev(smooth))
        assert not jacobian(x)[..., 1, 6:, :].any()
        still = jacobian(np.ones_like(x))
    assert np.isfinite(still).all()
    for index in (1, 2, 7, 8):  # Standard deviation, variance, skewness, kurtosis.
        assert not still[index].any()
    np.testing.assert_allclose(still[0, 0, 0, 0], 1 / 9)


def test_statistics_of_half_precision_vmap_and_a_mesh(traced_once, over_a_mesh):
    x = np.random.default_rng(0).normal(size=(4, 300, 2)) + 30
    # The squares sum to 270,000: beyond float16, and beyond bfloat16's 8 bits.
    wide = jax.jit(signals.window_statistics)
    narrow = jnp.asarray(x, jnp.float16)
    run = jax.jit(jax.vmap(traced_once(signals.window_statistics)))
    run(narrow + 1)
    found = run(narrow)
    assert found.energy.dtype == jnp.float32
    chex.assert_trees_all_close(found, wide(narrow.astype(jnp.float32)), rtol=1e-6)
    narrow = jnp.asarray(x, jnp.bfloat16)
    found = over_a_mesh(signals.window_statistics)(narrow)
    chex.assert_trees_all_close(found, wide(narrow.astype(jnp.float32)), rtol=1e-6)


def test_says_what_was_wrong():
    x = jnp.ones((4, 9, 2))
    with pytest.raises(ValueError, match=r"windows must be float.* use windows"):
        signals.window_statistics(x[0, 0])
    for mask in (jnp.ones((4, 9)), jnp.ones((4, 9, 2), bool)):
        with pytest.raises(
            ValueError, match=r"mask must be bool\[\.\.\., time\] of sh"
        ):
            signals.window_statistics(x, mask)


@pytest.mark.parametrize("scale", [1e38, 2.0**126, 1e-33])
def test_values_near_the_ends_of_a_float_have_all_that_it_can_hold(scale):
    # Their sums, squares, and the reciprocal of the largest overflow.
    x = (scale * np.random.default_rng(1).uniform(-1, 2, (50, 1))).astype(np.float32)
    found = jax.jit(signals.window_statistics)(x)
    exact = x.astype(np.float64)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5)
    close(found.mean, exact.mean(axis=0))
    close(found.std, exact.std(axis=0))
    close(found.rms, np.sqrt(np.mean(exact**2, axis=0)))
    close(found.median, np.median(exact, axis=0))
    quartiles = np.percentile(exact, [25, 75], axis=0)
    close(found.interquartile_range, quartiles[1] - quartiles[0])
    close(found.skewness, stats.skew(exact), rtol=1e-4)
    close(found.kurtosis, stats.kurtosis(exact), rtol=1e-4)
    assert found.energy == (np.inf if scale > 1 else 0)  # It overflows every float.


def test_a_huge_value_takes_nothing_from_the_small_ones_that_are_in_order():
    x = jnp.array([[1e38], [0.1], [0.25], [0.1]])
    found = jax.jit(signals.window_statistics)(x)
    small = (found.minimum, found.median, found.maximum)
    np.testing.assert_allclose(small, [[0.1], [0.175], [1e38]], rtol=1e-6)
    endless = jax.jit(signals.window_statistics)(x.at[0].set(jnp.inf))
    assert endless.mean == endless.maximum == jnp.inf and endless.minimum == x[1]


def test_quantiles_of_huge_values_of_two_signs():
    found = jax.jit(signals.window_statistics)(jnp.array([[-3e38], [3e38]]))
    assert found.median == 0
    np.testing.assert_allclose(found.interquartile_range, 3e38, rtol=1e-6)
