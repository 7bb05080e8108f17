"""Sensitivities along secret directions against linear programs and by hand."""

import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, spatial

from jaxanon.kernels import mechanisms, orthogonal
from jaxanon.kernels.orthogonal import cases, reference

pytestmark = pytest.mark.slow

SPANS = pytest.mark.parametrize("name", cases.SPANS)


_along = jax.jit(orthogonal.relaxed_sensitivity)


def _directions(name, seed=0):
    return np.random.default_rng(seed).normal(size=cases.SPANS[name])


def _by_linear_programs(directions, width):
    """Returns max ‖Cα‖₁ in the box: the best linear program over all sign patterns."""
    columns, most = directions.T, 0.0
    d, r = columns.shape
    for signs in itertools.product((1.0, -1.0), repeat=d - 1):
        goal = np.array((1.0, *signs)) @ columns
        found = optimize.linprog(
            -goal,
            A_ub=np.concatenate([columns, -columns]),
            b_ub=np.full(2 * d, width),
            bounds=[(None, None)] * r,
        )
        most = max(most, -found.fun)
    return most


def test_one_direction_by_hand_and_its_bounds():
    # ‖c‖₁ = 7, ‖c‖₂ = 5, ‖c‖_∞ = 4; ΔQ = 2.
    got = _along(jnp.array([4.0, 0.0, -3.0]), 2.0)
    np.testing.assert_allclose(got, [3.5, 2.5, 3.5 / 3], rtol=1e-6)
    # Equal changes everywhere: no gain over arbitrary changes, d ΔQ and √d ΔQ.
    got = _along(jnp.array([1.0, -1.0, 1.0, 1.0]), 3.0)
    np.testing.assert_allclose(got, [12, 6, 3])
    # The length of c does not matter, even if its square overflows.
    huge = _along(np.float32([3e38, 1.5e38]), 1.0)
    np.testing.assert_allclose(huge, [1.5, np.sqrt(1.25), 0.75], rtol=1e-6)
    assert not np.any(_along(np.zeros(3, np.float32), 1.0))


def test_one_direction_of_a_window_costs_a_third_on_average():
    # Random c in 30 dimensions: 0.35 ΔQ on average.
    c = np.random.default_rng(0).normal(size=(2000, 30)).astype(np.float32)
    got = jax.jit(jax.vmap(lambda c: _along(c, 1.0)))(c)
    assert np.mean(got.per_input) == pytest.approx(0.35, abs=0.01)
    assert np.all(np.asarray(got.per_input) <= 1)


def test_one_direction_under_transformations():
    fn = jax.jit(chex.assert_max_traces(orthogonal.relaxed_sensitivity, n=1))
    fn(jnp.ones(2), 1.0)
    c = jnp.array([1.0, -4.0])
    assert fn(c, 2.0).l1 == 2.5
    # l1 = 1 + |c₀| / |c₁|, so d/dc₀ = 1/4 and d/dc₁ = 1/16; l2 = √(1 + 1/16) as well.
    slope = jax.jit(jax.grad(lambda c: _along(c, 1.0).l1))
    np.testing.assert_allclose(slope(c), [0.25, 1 / 16], rtol=1e-6)
    slope = jax.jit(jax.grad(lambda c: _along(c, 1.0).l2))
    assert jnp.all(jnp.isfinite(slope(jnp.zeros(2))))
    half = _along(np.full(1000, 0.1, jnp.bfloat16), 1.0)
    assert (
        half.l1 == 1000 and half.l1.dtype == jnp.float32
    )  # bfloat16 would stop at 256.
    with jax.enable_x64():
        wide = _along(np.ones(3) / 3, 1.0)
        assert wide.l1.dtype == jnp.float64


def test_two_directions_by_hand():
    # α in the square |α₁|, |α₂| <= 1 and |α₁ + α₂| <= 2: the corner (1, 1) gives 1 + 1
    # + 1 with the third input (α₁ + α₂) / 2.
    got = orthogonal.relaxed_span_sensitivity([[1, 0, 0.5], [0, 1, 0.5]], 2.0)
    assert got.l1 == pytest.approx(6) and got.per_input == pytest.approx(2)
    assert got.l2 == pytest.approx(2 * math.sqrt(3))
    # |α₁ + α₂| <= 1 now cuts that corner off: (1, 0) gives 1 + 0 + 1.
    got = orthogonal.relaxed_span_sensitivity([[1, 0, 1], [0, 1, 1]], 1.0)
    assert got.l1 == pytest.approx(2) and got.l2 == pytest.approx(math.sqrt(2))


@SPANS
@pytest.mark.parametrize("seed", [0, 1])
def test_span_agrees_with_linear_programs_and_the_reference(name, seed):
    directions = _directions(name, seed)
    got = orthogonal.relaxed_span_sensitivity(directions, 1.5)
    l1, l2 = reference.relaxed_span_sensitivity(directions, 1.5)
    assert got.l1 == pytest.approx(l1, rel=1e-9)
    assert got.l2 == pytest.approx(l2, rel=1e-9)
    if seed == 0:
        assert got.l1 == pytest.approx(_by_linear_programs(directions, 1.5), rel=1e-7)
    assert got.per_input == got.l1 / directions.shape[1]


@pytest.mark.parametrize("shape", [(3, 30), (5, 14)])
def test_span_of_a_window_agrees_with_qhull(shape):
    # A vertex is a facet's normal of the hull of ±c_j, over its distance.
    directions = np.random.default_rng(3).normal(size=shape)
    points = directions.T
    hull = spatial.ConvexHull(np.concatenate([points, -points]))
    vertices = hull.equations[:, :-1] / -hull.equations[:, -1:]
    inside = vertices @ directions
    assert np.abs(inside).max() == pytest.approx(1)
    got = orthogonal.relaxed_span_sensitivity(directions, 1.0)
    assert got.l1 == pytest.approx(np.abs(inside).sum(axis=1).max(), rel=1e-9)
    assert got.l2 == pytest.approx(np.linalg.norm(inside, axis=1).max(), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 8))
def test_no_point_of_the_box_does_better(seed, rank, d):
    rng = np.random.default_rng(seed)
    # Small integers often give ties, parallel inputs, zero inputs and rank deficiency.
    directions = rng.integers(-2, 3, size=(rank, d)).astype(float)
    got = orthogonal.relaxed_span_sensitivity(directions, 1.0)
    points = rng.normal(size=(300, rank)) @ directions
    largest = np.abs(points).max(axis=1, keepdims=True)
    points = points / np.where(largest > 0, largest, 1)
    assert np.abs(points).sum(axis=1).max() <= got.l1 * (1 + 1e-9)
    assert np.linalg.norm(points, axis=1).max() <= got.l2 * (1 + 1e-9)
    assert got.l1 <= d * (1 + 1e-12)
    if np.linalg.matrix_rank(directions) == rank:
        expected = reference.relaxed_span_sensitivity(directions, 1.0)
        np.testing.assert_allclose((got.l1, got.l2), expected, rtol=1e-9)


def test_span_of_one_of_dependent_and_of_all():
    c = np.array([[4.0, 0.0, -3.0]])
    one = _along(c[0], 2.0)
    for same in (c, np.concatenate([c, -2 * c]), np.concatenate([c, 0 * c])):
        got = orthogonal.relaxed_span_sensitivity(same, 2.0)
        np.testing.assert_allclose(got, one, rtol=1e-6)
    # The span of the whole space does not restrict anything: d ΔQ.
    every = orthogonal.relaxed_span_sensitivity(np.eye(4) + 0.1, 2.0)
    np.testing.assert_allclose(every, [8, 4, 2])
    # A larger span cannot have a smaller sensitivity.
    more = orthogonal.relaxed_span_sensitivity([[4, 0, -3.0], [0, 1, 0]], 2.0)
    assert more.l1 > one.l1
    assert not any(orthogonal.relaxed_span_sensitivity(np.zeros((2, 3)), 1.0))
    assert not any(orthogonal.relaxed_span_sensitivity(np.zeros((0, 3)), 1.0))
    assert not any(orthogonal.relaxed_span_sensitivity(np.eye(3), 0.0))


def test_published_feature_scales():
    # k = 7 features of d = 30 inputs, ΔQ = 1: the paper's scale, and valid smaller
    # ones.
    any_change = math.sqrt(30)
    assert round(orthogonal.deeprotect_feature_sensitivity(7, 30, 1.0), 1) == 79.4
    assert round(orthogonal.feature_sensitivity(7, any_change, 1), 2) == 3.62
    assert round(orthogonal.feature_sensitivity(7, any_change, 2), 3) == 0.906
    # For any input, 7 features in (0, 1) differ by at most 7.
    assert orthogonal.feature_sensitivity(7, 1e9, 1) == 7
    # Linear features have no such limit.
    assert orthogonal.feature_sensitivity(4, 50.0, 0) == 100
    traced = jax.jit(lambda l2: orthogonal.feature_sensitivity(7, l2, 1))
    np.testing.assert_allclose(traced(any_change), 3.6228, rtol=1e-4)
    assert traced(1e9) == 7


def test_published_noise_scales_through_the_mechanism():
    # ε = 5: 15.9 for the paper's, 1.4 without assumptions, 0.18 with two layers.
    scales = [
        orthogonal.deeprotect_feature_sensitivity(7, 30, 1.0),
        orthogonal.feature_sensitivity(7, math.inf, 1),
        orthogonal.feature_sensitivity(7, math.sqrt(30), 2),
    ]
    assert [round(scale / 5, 2) for scale in scales] == [15.87, 1.4, 0.18]
    bounded = mechanisms.bounded_value(jnp.zeros(7), l1=scales[2])
    got = mechanisms.laplace_mechanism(jax.random.key(0), bounded, 5.0)
    noise = mechanisms.laplace_noise(jax.random.key(0), (7,), scales[2] / 5)
    np.testing.assert_allclose(got, noise, rtol=1e-6)


def test_features_of_neighbours_stay_within_the_bound():
    rng = np.random.default_rng(0)
    c = rng.normal(size=30)
    relaxed = orthogonal.relaxed_span_sensitivity(c[None], 1.0)
    first, second = (
        reference.orthonormal_rows(rng.normal(size=shape))
        for shape in ((12, 30), (7, 12))
    )
    x = rng.normal(size=(500, 30))
    other = x + rng.uniform(-1, 1, size=(500, 1)) * c / np.abs(c).max()
    layer = lambda w, x: 1 / (1 + np.exp(-x @ np.asarray(w).T))
    for layers, features in (
        (1, lambda x: layer(first[:7], x)),
        (2, lambda x: layer(second, layer(first, x))),
    ):
        moved = np.abs(features(x) - features(other)).sum(axis=1).max()
        bound = orthogonal.feature_sensitivity(7, relaxed.l2, layers)
        assert moved <= bound
        # Layers with a total stretch of 2 double it, up to the limit of 7.
        told = orthogonal.feature_sensitivity(7, relaxed.l2, layers, gain=2.0)
        assert told == pytest.approx(min(7, 2 * bound))
    linear = np.abs((x - other) @ np.asarray(first[:7]).T).sum(axis=1).max()
    assert linear <= orthogonal.feature_sensitivity(7, relaxed.l2, 0)


def test_says_what_was_wrong():
    with pytest.raises(ValueError, match=r"direction must be float\[d\] .* \(2, 3\)"):
        orthogonal.relaxed_sensitivity(jnp.ones((2, 3)), 1.0)
    with pytest.raises(ValueError, match="width must be >= 0, got -1.0"):
        orthogonal.relaxed_sensitivity(jnp.ones(3), -1.0)
    with pytest.raises(ValueError, match=r"one direction per row, got shape \(3,\)"):
        orthogonal.relaxed_span_sensitivity(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="directions must be finite, got NaN"):
        orthogonal.relaxed_span_sensitivity([[1.0, np.nan]], 1.0)
    with pytest.raises(ValueError, match=r"rank 5 in 200 inputs .* d \* width = 200.0"):
        orthogonal.relaxed_span_sensitivity(np.eye(5, 200), 1.0)
    with pytest.raises(TypeError, match="relaxed_span_sensitivity outside jit"):
        jax.jit(orthogonal.relaxed_span_sensitivity)(np.eye(2), 1.0)
    with pytest.raises(ValueError, match="num_layers must be >= 0, got -1"):
        orthogonal.feature_sensitivity(7, 1.0, -1)
    with pytest.raises(ValueError, match="num_inputs must be >= 0, got -30"):
        orthogonal.deeprotect_feature_sensitivity(7, -30, 1.0)


@pytest.mark.parametrize("length", [1e-17, 1.0, 1e20])
def test_how_long_a_direction_is_changes_nothing_of_its_span(length):
    # With (0, 1, 1) free, all three inputs can move by the whole width.
    found = orthogonal.relaxed_span_sensitivity([[length, 0, 0], [0, 1, 1]], 1.0)
    np.testing.assert_allclose([found.l1, found.l2], [3, 3**0.5], rtol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_has_no_sensitivity(bad):
    found = orthogonal.relaxed_sensitivity(jnp.array([1.0, bad]), 1.0)
    assert all(np.isnan(value) for value in found)
