"""Orthonormal rows against SciPy's polar factor, and derivatives at any point."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon.kernels import orthogonal
from jaxanon.kernels.orthogonal import cases, reference

ALL = pytest.mark.parametrize("implementation", ["eigh", "newton_schulz"])
SMALL = ["deeprotect", "square", "one_row", "stacked"]


@functools.cache
def _fast(implementation, num_iterations=30):
    return jax.jit(
        lambda w: orthogonal.orthonormal_rows(
            w, implementation=implementation, num_iterations=num_iterations
        )
    )


_residual = jax.jit(orthogonal.orthonormality_residual)


def _polar(w):
    """Returns SciPy's factor, by a singular value decomposition in float64."""
    flat = w.reshape(-1, *w.shape[-2:]).astype(np.float64)
    return np.stack([scipy.linalg.polar(m, side="left")[0] for m in flat]).reshape(
        w.shape
    )


@ALL
@pytest.mark.parametrize("name", SMALL)
def test_is_the_polar_factor_of_scipy_and_of_the_reference(implementation, name):
    w = cases.matrix(cases.CASES[name])
    got = _fast(implementation)(w)
    np.testing.assert_allclose(got, _polar(w), atol=1e-5)
    one = w.reshape(-1, *w.shape[-2:])[0]
    np.testing.assert_allclose(_polar(one), reference.orthonormal_rows(one), atol=1e-9)
    assert got.dtype == jnp.float32
    residual = _residual(got)
    assert residual.shape == w.shape[:-2] and jnp.all(residual < 3e-6)


@pytest.mark.parametrize("condition", [1e3, 1e4, 1e5])
def test_rounding_of_ill_conditioned_rows_is_repaired(condition):
    # W Wᵀ has condition 1e6 to 1e10: its inverse root retains no correct digit.
    case = cases.CASES["ill_conditioned"]._replace(condition=condition)
    w = cases.matrix(case)
    got = _fast("eigh")(w)
    assert _residual(got) < 3e-6
    if condition <= 1e3:
        np.testing.assert_allclose(got, _polar(w), atol=1e-3)
    # The rows still span what those of W span.
    lost = w - w @ got.T @ got
    assert np.abs(lost).max() < 1e-5


def test_newton_schulz_needs_its_iterations():
    w = cases.matrix(cases.CASES["ill_conditioned"])  # 1e4: 1.5^23 lifts it to 1.
    assert _residual(_fast("newton_schulz")(w)) < 1e-5
    assert _residual(_fast("newton_schulz", 15)(w)) > 0.1


@ALL
def test_float64_is_exact_to_its_own_rounding(implementation):
    with jax.enable_x64():
        w = cases.matrix(cases.CASES["deeprotect"], dtype=np.float64)
        got = _fast(implementation)(w)
        np.testing.assert_allclose(got, _polar(w), atol=1e-13)
        assert _residual(got) < 1e-14


@ALL
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_rounded_once_at_the_end(implementation, dtype):
    w = jnp.asarray(cases.matrix(cases.CASES["square"]), dtype)
    got = _fast(implementation)(w)
    wide = _fast(implementation)(w.astype(jnp.float32))
    assert got.dtype == dtype
    chex.assert_trees_all_equal(got, wide.astype(dtype))
    assert _residual(got).dtype == jnp.float32


@ALL
@pytest.mark.parametrize("scale", [1e-30, 3e38, -3.0])
def test_scale_does_not_matter_and_nothing_overflows(implementation, scale):
    w = cases.matrix(cases.CASES["square"])
    got = _fast(implementation)(np.float32(scale) * w)
    np.testing.assert_allclose(got, np.sign(scale) * _polar(w), atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(1, 100))
def test_nearest_and_symmetric(seed, condition):
    w = cases.matrix(cases.CASES["square"]._replace(condition=condition), seed)
    q = np.asarray(_fast("eigh")(w), np.float64)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=3e-6)
    # W Qᵀ is symmetric positive semidefinite only for the polar factor.
    stretch = w @ q.T
    np.testing.assert_allclose(stretch, stretch.T, atol=1e-5)
    assert np.linalg.eigvalsh(stretch).min() > 0
    # A second application changes nothing.
    np.testing.assert_allclose(_fast("eigh")(jnp.float32(q)), q, atol=1e-6)


def _differences(fn, w, direction, step=1e-6):
    return (fn(w + step * direction) - fn(w - step * direction)) / (2 * step)


POINTS = {
    "general": lambda rng: rng.normal(size=(3, 5)),
    # W Wᵀ = I: the derivatives of the eigenvectors are 0/0 here.
    "orthonormal": lambda rng: np.linalg.qr(rng.normal(size=(5, 3)))[0].T,
    "two_alike": lambda rng: np.diag([2.0, 2.0, 0.5]) @ np.eye(3, 5),
    "square": lambda rng: rng.normal(size=(4, 4)),
}


@ALL
@pytest.mark.parametrize("name", POINTS)
def test_gradients_are_finite_differences_even_at_equal_eigenvalues(
    implementation, name
):
    rng = np.random.default_rng(0)
    w = POINTS[name](rng)
    direction, weights = rng.normal(size=(2, *w.shape))
    with jax.enable_x64():
        fn = _fast(implementation)
        expected = _differences(_polar, w, direction)

        @jax.jit
        def both_ways(w):
            _, forward = jax.jvp(fn, (w,), (direction,))
            return forward, jax.vjp(fn, w)[1](jnp.asarray(weights))[0]

        along, slope = both_ways(w)
        np.testing.assert_allclose(along, expected, rtol=1e-6, atol=1e-8)
        slope = np.vdot(slope, direction)
        np.testing.assert_allclose(slope, np.sum(weights * expected), rtol=1e-6)


@ALL
def test_derivative_at_orthonormal_rows_by_hand(implementation):
    # At W = [I 0], dQ is the antisymmetric part of the left block, and the right block.
    w = jnp.eye(2, 3)
    change = jnp.array([[1.0, 2.0, 5.0], [4.0, 3.0, 7.0]])
    _, got = jax.jvp(_fast(implementation), (w,), (change,))
    np.testing.assert_allclose(got, [[0, -1, 5], [1, 0, 7]], atol=1e-5)


@ALL
def test_second_derivatives_at_equal_eigenvalues(implementation):
    rng = np.random.default_rng(1)
    w = np.eye(2, 3)
    direction, weights = rng.normal(size=(2, 2, 3))
    with jax.enable_x64():
        slope = jax.jit(jax.grad(lambda w: jnp.sum(weights * _fast(implementation)(w))))
        twice = jax.jit(jax.grad(lambda w: jnp.sum(slope(w) * direction)))
        expected = _differences(slope, w, direction)
        np.testing.assert_allclose(twice(w), expected, rtol=1e-5, atol=1e-7)


def _deficient():
    """Returns a matrix of rank 2 of 3 and its two directions; row 3 is a mean."""
    w = np.array([[1.0, 0, 0, 2], [0, 3, 0, 1], [0, 0, 0, 0]], np.float32)
    w[2] = (w[0] + w[1]) / 2
    return w


def test_lost_rank_gives_a_partial_isometry_and_says_so():
    w = _deficient()
    q = np.asarray(_fast("eigh")(w))
    values = np.linalg.svd(q, compute_uv=False)
    np.testing.assert_allclose(values, [1, 1, 0], atol=1e-4)
    residual = _residual(q)
    np.testing.assert_allclose(residual, 1, atol=1e-4)  # √(3 - 2).
    left, _, right = np.linalg.svd(w)
    np.testing.assert_allclose(q, left[:, :2] @ right[:2], atol=5e-4)
    # Newton-Schulz is never longer than an isometry either, and the residual shows it.
    q = np.asarray(_fast("newton_schulz")(w))
    assert np.linalg.norm(q, 2) < 1 + 1e-5
    assert _residual(q) > 0.5


@ALL
def test_zero_and_lost_rank_have_finite_gradients(implementation):
    fn = lambda w: jnp.sum(jnp.sin(_fast(implementation)(w)))
    for w in (np.zeros((2, 3), np.float32), _deficient()):
        assert jnp.all(jnp.isfinite(jax.jit(jax.grad(fn))(w)))
    assert not jnp.any(_fast(implementation)(np.zeros((2, 3), np.float32)))
    empty = jnp.zeros((0, 4))
    assert _fast(implementation)(empty).shape == (0, 4)
    assert _residual(empty) == 0


def test_residual_by_hand_bounds_the_largest_singular_value():
    # Rows of length 2 and 1 at right angles: W Wᵀ - I = diag(3, 0).
    w = jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    assert _residual(w) == 3
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=(3, 6))
        bound = np.sqrt(1 + _residual(w))
        assert np.linalg.norm(w, 2) <= bound * (1 + 1e-6)
    slope = jax.jit(jax.grad(_residual))
    assert not jnp.any(slope(jnp.eye(2, 3)))
    # d/dw |w² - 1| = 2 w.
    np.testing.assert_allclose(slope(jnp.array([[2.0]])), [[4.0]])


@ALL
def test_vmap_shard_map_and_one_compilation(implementation, traced_once, over_a_mesh):
    fn = lambda w: orthogonal.orthonormal_rows(w, implementation=implementation)
    batch = cases.matrix(cases.CASES["stacked"])
    traced = jax.jit(jax.vmap(traced_once(fn)))
    traced(2 * batch)
    expected = traced(batch)
    np.testing.assert_allclose(expected, _fast(implementation)(batch), atol=1e-6)
    np.testing.assert_allclose(over_a_mesh(fn)(batch), expected, atol=1e-6)


def test_says_what_was_wrong():
    with pytest.raises(ValueError, match=r"k <= d, got shape \(3, 2\); transpose"):
        orthogonal.orthonormal_rows(jnp.ones((3, 2)))
    with pytest.raises(
        ValueError, match=r"got shape \(3,\); a single row is w\[None\]"
    ):
        orthogonal.orthonormality_residual(jnp.ones(3))
    with pytest.raises(ValueError, match="implementation must be one of .*, got 'svd'"):
        orthogonal.orthonormal_rows(jnp.ones((1, 2)), implementation="svd")
    with pytest.raises(ValueError, match="num_iterations must be >= 1, got 0"):
        orthogonal.orthonormal_rows(jnp.ones((1, 2)), num_iterations=0)


def test_a_matrix_that_is_not_finite_has_no_residual():
    w = jnp.eye(2, 3).at[0, 2].set(jnp.nan)
    assert np.isnan(orthogonal.orthonormality_residual(w))


def test_whole_numbers_are_refused_rather_than_cut_off():
    # Entries of the result lie between -1 and 1; rounding would return 0.
    w = jnp.array([[3, 4, 0], [0, 0, 2]])
    for call in (orthogonal.orthonormal_rows, orthogonal.orthonormality_residual):
        with pytest.raises(TypeError, match="w must hold floats, got int32; .*astype"):
            call(w)


def test_what_is_static_may_come_from_numpy_and_not_from_a_trace():
    w = jnp.array([[3.0, 4.0]])
    run = lambda num: orthogonal.orthonormal_rows(
        w, implementation="newton_schulz", num_iterations=num
    )
    np.testing.assert_allclose(run(np.int64(30)), [[0.6, 0.8]], rtol=1e-5)
    with pytest.raises(TypeError, match="num_iterations must be known when .* static"):
        jax.jit(run)(30)
