"""Noise for vectors: its distribution, its privacy by counts, and its error."""

import functools
import math
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optimized import optimized
from scipy import stats

from jaxanon.kernels import mechanisms
from jaxanon.kernels.mechanisms import reference, sphere

pytestmark = pytest.mark.slow

NUM = 200_000
NORMS = {"l2": lambda z: np.linalg.norm(z, axis=-1), "linf": lambda z: abs(z).max(-1)}
each_norm = pytest.mark.parametrize("norm", sorted(NORMS))


def keys(count=NUM, seed=0):
    return jax.random.split(jax.random.key(seed), count)


def noise(norm, size, epsilon=2.0, count=NUM, seed=0):
    """Draws noise for a value with sensitivity 1 in that norm."""
    bounded = mechanisms.bounded_value(jnp.zeros(size), **{norm: 1.0})
    one = lambda key: mechanisms.norm_mechanism(key, bounded, epsilon, norm=norm)
    return np.asarray(optimized(jax.vmap(one))(keys(count, seed)))


@each_norm
def test_noise_follows_the_reference_and_not_one_of_another_size(norm):
    rng = np.random.default_rng(0)
    loops = np.array([reference.norm_noise(rng, 3, 0.5, norm) for _ in range(20_000)])
    drawn = noise(norm, 3)
    for read in (NORMS[norm], lambda z: z[:, 0], lambda z: z[:, 0] * z[:, 2]):
        assert stats.ks_2samp(read(drawn), read(loops)).pvalue > 0.01
        assert stats.ks_2samp(1.1 * read(drawn), read(loops)).pvalue < 1e-3


@each_norm
def test_its_length_is_of_gamma_s_law(norm):
    drawn = noise(norm, 7)
    assert stats.kstest(NORMS[norm](drawn), stats.gamma(7, scale=0.5).cdf).pvalue > 0.01
    wrong = stats.gamma(8, scale=0.5).cdf
    assert stats.kstest(NORMS[norm](drawn), wrong).pvalue < 1e-9


@each_norm
def test_of_one_number_it_is_laplace_s(norm):
    law = stats.laplace(scale=0.5)
    assert stats.kstest(noise(norm, 1)[:, 0], law.cdf).pvalue > 0.01


@each_norm
def test_counts_of_neighbours_differ_by_the_budget_at_most(norm):
    """Counts cells of the plane; the same counts detect half the noise."""
    far = {"l2": [0.6, 0.8], "linf": [1.0, 1.0]}[norm]  # At a distance of 1.
    edges = np.arange(-3.25, 3.5, 0.5)
    one, other = (noise(norm, 2, 1.0, 2 * NUM, seed) for seed in (0, 1))
    for scale, most in ((1.0, 1.0), (0.5, 2.0)):
        count = lambda z: np.histogramdd(z, [edges, edges])[0]
        first, second = count(scale * one), count(scale * other + np.array(far))
        often = (first > 1_000) & (second > 1_000)
        slack = 4 * math.sqrt(2 / 1_000)  # Four standard deviations of a log ratio.
        worst = np.abs(np.log(first[often] / second[often])).max()
        assert worst <= most + slack
        assert (worst > 1.0 + slack) == (scale < 1)


def test_for_a_range_linf_and_for_a_ball_l2_need_the_least_noise():
    size = (
        # Mean of the sum of |z| over 7 numbers in [0, 1]: 7/ε for Laplace, (7 + 1)/2ε
        # here.
        7
    )
    box = mechanisms.clip_to_range(jnp.zeros(size), 0.0, 1.0)
    one = lambda key: mechanisms.norm_mechanism(key, box, 1.0, norm="linf")
    drawn = np.abs(jax.jit(jax.vmap(one))(keys(50_000)))
    np.testing.assert_allclose(drawn.mean(), 4.0, rtol=0.02)
    # If a vector moves by 1 in L2, E‖z‖ is 7/ε; Laplace needs a scale of √7/ε each.
    lengths = np.linalg.norm(noise("l2", size, 1.0, 50_000), axis=1)
    np.testing.assert_allclose(lengths.mean(), 7.0, rtol=0.02)
    ball = mechanisms.bounded_value(jnp.zeros(size), l2=1.0)
    assert ball.l1_sensitivity == pytest.approx(math.sqrt(7))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
@each_norm
def test_no_sensitivity_or_no_privacy_adds_nothing(norm, dtype):
    value = jnp.asarray([[0.5, -2.0]], dtype)
    still = mechanisms.bounded_value(value, l1=0.0)
    moved = mechanisms.bounded_value(value, l1=1.0)
    empty = mechanisms.clip_to_range(jnp.zeros((0, 3)), 0.0, 1.0)
    cases = (still, 0.1), (moved, jnp.inf), (empty, 1.0)
    for key, (bounded, epsilon) in zip(keys(3), cases, strict=True):
        got = mechanisms.norm_mechanism(key, bounded, epsilon, norm=norm)
        chex.assert_trees_all_equal(got, bounded.value)
        assert got.dtype == bounded.value.dtype


def test_norm_mechanism_refuses():
    bounded = mechanisms.bounded_value(jnp.zeros(2), l1=1.0)
    key = jax.random.key(0)  # Used only at the end.
    with pytest.raises(ValueError, match=r"norm must be one of \('l2', 'linf'\), got"):
        mechanisms.norm_mechanism(key, bounded, 1.0, norm="l1")
    with pytest.raises(ValueError, match="epsilon must be > 0, got 0.0"):
        mechanisms.norm_mechanism(key, bounded, 0.0, norm="l2")
    with pytest.raises(TypeError, match="bounded must be a BoundedValue"):
        mechanisms.norm_mechanism(key, jnp.zeros(2), 1.0, norm="l2")
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        mechanisms.norm_mechanism(jax.random.PRNGKey(0), bounded, 1.0, norm="l2")
    traced = mechanisms.norm_mechanism(key, bounded, jnp.float32(-1.0), norm="l2")
    assert jnp.isnan(traced).all()


SIZES = pytest.mark.parametrize(("size", "epsilon"), [(3, 1.0), (8, 5.0), (8, 20.0)])


def share(size, height):
    """Returns the fraction of the sphere above a height, as a Beta tail."""
    half = (size - 1) / 2
    return stats.beta.sf((1 + height) / 2, half, half)


@SIZES
def test_inside_over_outside_of_the_cap_is_the_budget(size, epsilon):
    cap = mechanisms.priv_unit_cap(size, epsilon)
    assert cap.fraction == pytest.approx(share(size, cap.height), rel=1e-9)
    inside = cap.probability / share(size, cap.height)
    outside = (1 - cap.probability) / (1 - share(size, cap.height))
    assert math.log(inside / outside) == pytest.approx(epsilon, abs=1e-8)


@pytest.mark.parametrize("size", [95, 96, 520, 100_000])
@pytest.mark.parametrize("epsilon", [0.1, 5.0, 300.0, 1e5])
def test_large_spheres_have_caps_too(size, epsilon):
    cap = mechanisms.priv_unit_cap(size, epsilon)
    assert 0 < cap.mean <= 1 and 0 < cap.height < 1 and 0 < cap.probability <= 1
    if cap.fraction > 1e-290:
        inside = cap.probability / share(size, cap.height)
        rest = -(math.expm1(math.log(cap.probability)))
        if rest > 1e-6:
            outside = rest / (1 - share(size, cap.height))
            assert math.log(inside / outside) == pytest.approx(epsilon, abs=1e-6)
        # All vectors in the cap lean by its height at least, and by less for smaller
        # budgets.
        assert cap.mean >= cap.height * (2 * cap.probability - 1) * (1 - 1e-9)
    # Up to the finest cap, which both may select at the largest budget.
    for other in ((size, epsilon / 2), (10 * size, epsilon)):
        assert cap.mean > mechanisms.priv_unit_cap(*other).mean - 1e-4 * (epsilon > 1e4)


def test_a_thousand_numbers_are_right_on_average():
    vector = np.zeros(1000, np.float32)
    vector[:2] = 0.6, -0.3
    one = lambda key: mechanisms.priv_unit(key, jnp.array(vector), 1.0, 300.0)[:2]
    sent = np.asarray(optimized(jax.vmap(one))(keys()[:2000]))
    error = sent.std(0) / math.sqrt(len(sent))
    assert np.all(np.abs(sent.mean(0) - vector[:2]) < 4 * error) and error.max() < 0.01


def test_whole_numbers_are_sent_as_fractions():
    whole, real = jnp.array([1, 0, 0]), jnp.array([1.0, 0.0, 0.0])
    for x in (whole, whole == 1, real):
        sent = mechanisms.priv_unit(jax.random.key(0), x, 4.0, 5.0)
        assert sent.dtype == jnp.float32
        np.testing.assert_array_equal(
            sent, mechanisms.priv_unit(jax.random.key(0), real, 4.0, 5.0)
        )


def test_a_budget_beyond_all_bounds_sends_the_vector_itself():
    cap = mechanisms.priv_unit_cap(8, 1e4)
    assert cap.probability == 1 and cap.mean == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("dtype", "most"), [("bfloat16", 62.0), ("float32", 62.0), ("float64", 80.0)]
)
def test_a_budget_at_which_the_rest_is_never_sent_is_refused(dtype, most):
    """Beyond the bound on 8 numbers, every uniform number is below the probability."""
    with jax.enable_x64(dtype == "float64"):
        x, drawn = jnp.ones(7, dtype), "float64" if dtype == "float64" else "float32"
        send = functools.partial(mechanisms.priv_unit, jax.random.key(0), x, 1.0)
        assert jnp.isfinite(send(most)).all()
        largest = 1 - float(jnp.finfo(drawn).eps)  # The largest uniform number.
        assert mechanisms.priv_unit_cap(8, most).probability <= largest
        with pytest.raises(ValueError, match=f"epsilon must .* to 1 in {drawn}; use"):
            send(1.1 * most)
    assert mechanisms.priv_unit_cap(8, 1.1 * most).probability > largest


def test_the_rest_of_the_sphere_is_never_less_likely_than_the_budget_asks_for():
    """Two of 2**23 uniform numbers exceed 1 - 1.6 * 2**-23; the lower is drawn."""
    probability = 1 - 1.6 * 2.0**-23
    cap = mechanisms.priv_unit_cap(8, 60.0)._replace(probability=probability)
    draw = jax.random.uniform
    lower = lambda key, shape, dtype: draw(key, shape, dtype) if shape else 1 - 2.0**-22
    with mock.patch.object(jax.random, "uniform", lower):
        sent = sphere._lean(jax.random.key(0), jnp.eye(8)[0], cap)
    assert float(sent[0]) < cap.height


@SIZES
def test_no_other_height_leans_more(size, epsilon):
    """Compares the mean of <v, u> under Beta's distribution with that of other caps."""
    cap = mechanisms.priv_unit_cap(size, epsilon)
    half = (size - 1) / 2

    def mean(height):
        q = share(size, height)
        odds = math.exp(epsilon) * q / (1 - q)
        p = odds / (1 + odds)
        mesh = np.linspace(height, 1, 10_001)
        density = stats.beta.pdf((1 + mesh) / 2, half, half) / 2
        lean = np.trapezoid(density * mesh, mesh)
        return lean * (p / q - (1 - p) / (1 - q))

    assert cap.mean == pytest.approx(mean(cap.height), rel=1e-3)
    others = [mean(height) for height in np.linspace(0.0, 0.995, 100)]
    assert cap.mean > max(others) * (1 - 1e-4)


@SIZES
def test_directions_follow_their_law_and_the_reference(size, epsilon):
    cap = mechanisms.priv_unit_cap(size, epsilon)
    unit = np.linspace(1, 2, size)
    unit = np.float32(unit / np.linalg.norm(unit))
    lean = jax.jit(jax.vmap(lambda key: sphere._lean(key, unit, cap)))
    drawn = np.asarray(lean(keys(seed=2)))
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, rtol=1e-5)

    def law(height):
        below = 1 - share(size, height)
        inside = np.maximum(below - (1 - cap.fraction), 0) / cap.fraction
        outside = np.minimum(below, 1 - cap.fraction) / (1 - cap.fraction)
        return cap.probability * inside + (1 - cap.probability) * outside

    assert stats.kstest(drawn @ unit, law).pvalue > 0.001
    if epsilon < 20:  # The loops would draw a million times each.
        rng = np.random.default_rng(0)
        where = unit, cap.height, cap.probability
        loops = np.array(
            [reference.priv_unit_direction(rng, *where) for _ in range(3_000)]
        )
        for read in (lambda v: v @ unit, lambda v: v[:, 0], lambda v: v[:, -1]):
            assert stats.ks_2samp(read(drawn), read(loops)).pvalue > 0.001
    cap = mechanisms.priv_unit_cap(size, 1.2 * epsilon)
    assert stats.kstest(drawn @ unit, law).pvalue < 1e-9


@pytest.mark.parametrize("vector", [[0.5], [0.6, 0.0, -0.3], [3.0, 4.0]])
def test_priv_unit_is_right_on_average(vector):
    one = lambda key: mechanisms.priv_unit(key, jnp.array(vector), 2.0, 3.0)
    sent = np.asarray(optimized(jax.vmap(one))(keys()))
    want = np.array(vector) * min(1, 2 / np.linalg.norm(vector))
    error = sent.std(0) / math.sqrt(NUM)
    assert np.all(np.abs(sent.mean(0) - want) < 4 * error)
    assert np.all(np.abs(sent.mean(0) - 1.1 * want)[want != 0] > 4 * error[want != 0])
    # All sent vectors have one length, on a sphere with one number left out.
    size = max(3, len(vector) + 1)
    most = 2 / mechanisms.priv_unit_cap(size, 3.0).mean
    assert np.linalg.norm(sent, axis=1).max() <= most * (1 + 1e-5)


def test_opposite_vectors_are_told_apart_by_the_budget_and_no_more():
    """Tests one vector's cap, where the ratio is largest; the other's lies outside."""
    cap = mechanisms.priv_unit_cap(3, 3.0)
    at = lambda value: jnp.array([value, 0.0])

    def met(value):
        one = lambda key: mechanisms.priv_unit(key, at(value), 1.0, 3.0)
        sent = np.asarray(optimized(jax.vmap(one))(keys(5 * NUM, seed=3)))
        return np.sum(sent[:, 0] * cap.mean >= cap.height)

    one, other = met(1.0), met(-1.0)
    slack = 4 * math.sqrt(1 / one + 1 / other)
    assert abs(math.log(one / other) - 3.0) < slack < 0.1


def test_priv_unit_sends_less_noise_than_is_added_at_a_large_budget():
    """DEEProtect's 7 features at ε = 5, in a ball of radius 1 and diameter 2."""
    error = 1 / mechanisms.priv_unit_cap(8, 5.0).mean ** 2 - 1
    # E‖z‖² of the L2 mechanism, by the Gamma distribution.
    added = 7 * 8 * (2 / 5.0) ** 2
    laplace = 7 * 2 * (2 * math.sqrt(7) / 5.0) ** 2
    assert error < added / 4 < laplace / 4


def test_priv_unit_refuses():
    key, x = jax.random.key(0), jnp.zeros(3)
    with pytest.raises(ValueError, match=r"x must be float\[n\] .* got shape \(2, 2\)"):
        mechanisms.priv_unit(key, jnp.zeros((2, 2)), 1.0, 1.0)
    with pytest.raises(ValueError, match="radius must be > 0, got 0.0"):
        mechanisms.priv_unit(key, x, 0.0, 1.0)
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
            mechanisms.priv_unit(key, x, 1.0, wrong)
    with pytest.raises(TypeError, match="epsilon must be known when"):
        jax.jit(lambda e: mechanisms.priv_unit(key, x, 1.0, e))(1.0)
    with pytest.raises(ValueError, match="size must be >= 3, got 2"):
        mechanisms.priv_unit_cap(2, 1.0)
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        mechanisms.priv_unit(jax.random.PRNGKey(0), x, 1.0, 1.0)
    sent = mechanisms.priv_unit(key, jnp.array([jnp.nan, jnp.inf]), 1.0, 1.0)
    assert jnp.isfinite(sent).all()
