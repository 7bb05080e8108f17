"""Laplace noise on a grid: always on the grid, and private to the last digit."""

import fractions
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxanon.kernels import mechanisms
from jaxanon.kernels.mechanisms import cases, grid, reference

NUM = 4000


def _key():
    """Returns the same key, new for each use."""
    return jax.random.key(3)


def _law(scale):
    """Returns exact P(z) of the digits' thresholds, for all |z| - 1."""
    first, *digits = [(hi << 32) + lo for hi, lo in grid.thresholds(scale)]
    sizes = [fractions.Fraction(1)]
    for digit in digits[::-1]:  # From the lowest, so index is the number.
        one = fractions.Fraction(digit, 2**64)
        sizes = [p * (1 - one) for p in sizes] + [p * one for p in sizes]
    nonzero = fractions.Fraction(first, 2**64)
    return [1 - nonzero] + [nonzero * p / 2 for p in sizes]


@pytest.mark.parametrize("scale", [1, 2, 7, 20])
def test_digits_give_the_discrete_laplace_law(scale):
    law = np.array([float(p) for p in _law(scale)])
    expected = stats.dlaplace(1 / scale).pmf(np.arange(len(law)))
    np.testing.assert_allclose(law, expected, rtol=1e-9, atol=2.0**-60)
    ours = [reference.discrete_laplace_probability(z, scale) for z in range(9)]
    np.testing.assert_allclose(law[:9], ours, rtol=1e-12)
    assert sum(_law(scale)) * 2 - _law(scale)[0] == 1  # Both signs, zero once.


def _counts(drawn, most):
    return np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)


def _expected(scale, most):
    """Returns probabilities of -most..most with both tails folded in."""
    law = stats.dlaplace(1 / scale)
    p = law.pmf(np.arange(-most, most + 1))
    p[0], p[-1] = law.cdf(-most), law.sf(most - 1)
    return p


@pytest.mark.parametrize("scale", [1, 6])
def test_noise_and_the_reference_follow_it_and_wrong_scales_are_rejected(scale):
    most = 3 * scale
    drawn = np.asarray(mechanisms.discrete_laplace_noise(_key(), (NUM,), scale))
    rng = np.random.default_rng(0)
    loops = np.array([reference.discrete_laplace(rng, scale) for _ in range(NUM)])
    for sample in (drawn, loops):
        counts = _counts(sample, most)
        assert stats.chisquare(counts, NUM * _expected(scale, most)).pvalue > 0.01
        for wrong in (2 / 3, 3 / 2):
            expected = NUM * _expected(scale * wrong, most)
            assert stats.chisquare(counts, expected).pvalue < 1e-9


def test_large_scales_follow_the_continuous_law():
    # At scale 2^19 a step is 2e-6 scales; all 25 digits take part.
    drawn = np.asarray(mechanisms.discrete_laplace_noise(_key(), (NUM,), 1 << 19))
    law = stats.laplace(scale=1 << 19)
    assert stats.kstest(drawn + 0.0, law.cdf).pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * drawn, law.cdf).pvalue < 1e-9
    # No digit is constant: the lowest ones are fair coins.
    for place in range(8):
        ones = np.sum((np.abs(drawn) >> place) & 1)
        assert stats.binomtest(int(ones), NUM).pvalue > 1e-3


def _release(case, x, seed=0, **options):
    bounded = mechanisms.clip_to_range(x, case.low, case.high)
    options = {"max_magnitude": max(-case.low, case.high)} | options
    return mechanisms.grid_laplace_mechanism(
        jax.random.key(seed), bounded, case.epsilon, **options
    )


def _grid(case, dtype=jnp.float32):
    size = math.prod(case.shape)
    l1 = size * (case.high - case.low)
    most = max(-case.low, case.high)
    return mechanisms.laplace_grid(l1, case.epsilon, size, most, dtype)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("number", jnp.float32),
        ("features", jnp.bfloat16),
        ("window", jnp.float32),
        ("window", jnp.float64),
    ],
)
def test_every_release_is_on_the_grid(name, dtype):
    case = cases.CASES[name]
    with jax.enable_x64(dtype == jnp.float64):
        step = _grid(case, dtype).step
        assert math.frexp(step)[0] == 0.5  # A power of two.
        x = jax.random.normal(_key(), (20, *case.shape), dtype)
        release = jax.jit(jax.vmap(lambda x: _release(case, x)))
        noisy = release(x)
        wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
        assert noisy.dtype == wide
        steps = np.asarray(noisy, np.float64) / step
        np.testing.assert_array_equal(steps, np.rint(steps))
        assert np.max(np.abs(steps)) <= _grid(case, dtype).limit


def test_scale_is_that_of_the_reference_and_wrong_ones_are_rejected():
    case = cases.CASES["features"]._replace(shape=(1,))
    x = jnp.full((NUM, 1), 0.375)
    keys = jax.random.split(_key(), NUM)
    release = lambda key, x: mechanisms.grid_laplace_mechanism(
        key, mechanisms.clip_to_range(x, 0.0, 1.0), case.epsilon, max_magnitude=1.0
    )
    noisy = np.asarray(jax.jit(jax.vmap(release))(keys, x)).ravel() - 0.375
    loops = reference.grid_laplace(
        np.random.default_rng(1), np.asarray(x).ravel(), _grid(case)
    )
    assert stats.ks_2samp(noisy, loops - 0.375).pvalue > 0.01
    law = stats.laplace(scale=1 / case.epsilon)
    assert stats.kstest(noisy, law.cdf).pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * noisy, law.cdf).pvalue < 1e-9


def test_values_are_rounded_clamped_and_nan_is_zero():
    # The same key gives the same noise, so only rounding makes a difference.
    x = jnp.array([0.3, -0.3, 9.0, -jnp.inf, jnp.nan, 0.0, 1e-30])
    release = jax.jit(
        lambda x: mechanisms.grid_laplace_mechanism(
            _key(), mechanisms.bounded_value(x, l1=2.0**-30), 1e9, max_magnitude=1.0
        )
    )
    got = np.asarray(release(x), np.float64) - np.asarray(release(0 * x), np.float64)
    # The range of 1 and the noise need slightly more than 2^24 steps of 2^-24.
    step = mechanisms.laplace_grid(2.0**-30, 1e9, 7, 1.0).step
    assert step == 2.0**-23
    near = round(float(x[0]) / step) * step
    np.testing.assert_array_equal(got, [near, -near, 1.0, -1.0, 0.0, 0.0, 0.0])


def test_results_stay_within_the_limit():
    # A clamp at the limit, with noise of a 32nd of it on top.
    chosen = mechanisms.LaplaceGrid(1.0, 1 << 19, 1 << 24, 1 << 24)
    noise = mechanisms.discrete_laplace_noise(_key(), (64,), chosen.scale)
    assert jnp.max(noise) > 0  # So that some values are clipped.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "laplace_grid", lambda *_: chosen)
        bounded = mechanisms.bounded_value(jnp.full(64, 1e9), l1=1.0)
        got = mechanisms.grid_laplace_mechanism(_key(), bounded, 1.0, max_magnitude=1.0)
    expected = jnp.minimum((1 << 24) + noise, 1 << 24)
    np.testing.assert_array_equal(got, expected)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3),
    st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3),
    st.floats(0.05, 20),
    st.floats(0.01, 100),
)
def test_rounded_neighbours_are_within_the_enlarged_sensitivity(a, b, epsilon, spread):
    a, b = (np.float64(np.float32(spread)) * np.array(v) for v in (a, b))
    l1 = float(np.abs(a - b).sum())
    chosen = mechanisms.laplace_grid(l1, epsilon, 3, max(spread, 1e-3))
    rounded = [
        np.rint(np.clip(v / chosen.step, -chosen.clamp, chosen.clamp)) for v in (a, b)
    ]
    moved = int(np.abs(rounded[0] - rounded[1]).sum())
    # Scale · ε bounds the L1 distance in steps, so the density ratio is at most e^ε.
    assert moved <= chosen.scale * fractions.Fraction(epsilon)
    # The clamp range and 32 scales of noise fit below the limit.
    assert chosen.clamp + 32 * chosen.scale <= chosen.limit + 64
    # Rounding enlarged the noise by at most 3 steps' worth, plus one.
    assert chosen.scale <= (l1 / chosen.step + 3) / epsilon + 1


def test_probabilities_of_neighbours_differ_by_no_more_than_epsilon():
    # One number of range 1 on a coarse grid of 1/4, with an exact distribution: ε' = (4
    # + 1) / scale, and the releases of 0 and of 1 are 4 steps apart.
    epsilon = 0.5
    scale = math.ceil(5 / epsilon)
    law = _law(scale)
    p = lambda z: law[abs(z)]
    ratios = [float(p(z) / p(z - 4)) for z in range(-100, 100)]
    assert max(ratios) <= math.exp(epsilon) and max(1 / r for r in ratios) <= math.exp(
        epsilon
    )
    # Two thirds of the scale would violate the guarantee.
    law = _law(math.ceil(scale * 2 / 3))
    assert max(float(p(z) / p(z - 4)) for z in range(-20, 20)) > math.exp(epsilon)


def test_sensitivity_that_was_traced_is_refused_and_inside_it_is_not():
    case = cases.CASES["features"]
    x = jnp.zeros(case.shape)
    bounded = mechanisms.clip_to_range(x, 0.0, 1.0)
    outside = jax.jit(
        lambda key, b: mechanisms.grid_laplace_mechanism(key, b, 1.0, max_magnitude=1.0)
    )
    with pytest.raises(TypeError, match="l1 must be known when the program is traced"):
        outside(_key(), bounded)
    inside = jax.jit(chex.assert_max_traces(lambda x, s: _release(case, x, s), n=1))
    assert jnp.any(inside(x, 0) != inside(x, 1))
    zero = jax.grad(lambda x: jnp.sum(_release(case, x)))(x)
    assert not jnp.any(zero)


def test_empty_is_empty():
    bounded = mechanisms.clip_to_range(jnp.zeros((0, 2)), 0.0, 1.0)
    got = mechanisms.grid_laplace_mechanism(_key(), bounded, 1.0, max_magnitude=1.0)
    assert got.shape == (0, 2)


def test_says_what_was_wrong():
    with pytest.raises(ValueError, match="epsilon must be >= .* for 1000000 numbers"):
        mechanisms.laplace_grid(1.0, 1.0, 10**6, 1.0)
    assert mechanisms.laplace_grid(1.0, 1.0, 10**6, 1.0, jnp.float64).limit == 2**29
    with pytest.raises(ValueError, match="that float32 can hold, got .*; rescale"):
        mechanisms.laplace_grid(1.0, 1.0, 1, 1e38)
    with pytest.raises(ValueError, match="that float32 can hold, got .*; rescale"):
        mechanisms.laplace_grid(1e-44, 1.0, 1, 1e-44)
    with pytest.raises(ValueError, match="max_magnitude must be > 0, got 0.0"):
        mechanisms.laplace_grid(1.0, 1.0, 1, 0.0)
    with pytest.raises(ValueError, match="epsilon must be finite, got inf"):
        mechanisms.laplace_grid(1.0, math.inf, 1, 1.0)
    for scale, error, message in (
        (0, ValueError, "scale must be >= 1, got 0"),
        ((1 << 24) + 1, ValueError, r"scale must be in \[1, 16777216\], got 167772"),
        (2.5, TypeError, "scale must be a Python int, got 2.5"),
    ):
        with pytest.raises(error, match=message):
            mechanisms.discrete_laplace_noise(_key(), (2,), scale)
