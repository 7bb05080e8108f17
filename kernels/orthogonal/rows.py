"""Orthonormalisation of rows, with stable gradients at repeated singular values."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import as_array, floating, one_of, whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.scaling import near_one

IMPLEMENTATIONS = ("eigh", "newton_schulz")
POLISH = 2  # Each iteration squares the rounding error of W Wᵀ - I; one is too few.


def orthonormal_rows(w, *, implementation=None, num_iterations=30):
    """Returns ``(W Wᵀ)^(-1/2) W``, the nearest matrix to W with orthonormal rows.

    ``"eigh"`` decomposes W Wᵀ twice, the second time with small eigenvalues lifted.
    In float32 the result is accurate to rounding for condition numbers up to 1e5. Its
    derivatives, of any order, solve the Sylvester equation of the polar factors. This
    divides by sums of singular values, not by differences, so derivatives are correct
    if W is already orthonormal. ``"newton_schulz"`` uses matrix products only and is
    differentiated step by step. Each iteration multiplies a small singular value by
    1.5, so 30 iterations suffice for condition numbers up to 1e4.

    If W has rank r < k, the matrix does not exist. In float32, singular values below
    about ``1e-7 k`` of the largest count as zero. ``"eigh"`` then returns a partial
    isometry with the r remaining directions and zero gradient for the others. The norm
    of ``Q x`` never exceeds that of x, but ``orthonormality_residual`` is √(k - r).
    ``"newton_schulz"`` leaves those singular values between 0 and 1. The zero matrix
    stays zero.

    Args:
      w: ``float[..., k, d]`` with k <= d. Half precision is computed in float32. After
        rounding back, rows are orthonormal to half precision only.
      implementation: ``"eigh"`` or ``"newton_schulz"``. None is ``"eigh"``.
      num_iterations: iterations of ``"newton_schulz"``, a Python int >= 1.

    Returns:
      ``float[..., k, d]`` in the dtype of ``w``.

    Raises:
      TypeError: if ``w`` does not hold floats, or ``num_iterations`` is not a Python
        int.
      ValueError: if ``w`` is not a matrix or has more rows than columns, or for an
        unknown implementation or ``num_iterations`` below 1.

    Example:
      >>> orthonormal_rows(jnp.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.5]]))
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)

    References:
      Liu et al., DEEProtect, 2017, section 4 (the constraint); Higham, Functions of
      Matrices, SIAM 2008, chapter 8 (polar factors and their iterations).
    """
    w = _matrix(w)
    if w.shape[-2] > w.shape[-1]:
        raise ValueError(
            f"w must be float[..., k, d] with k <= d, got shape {w.shape}; transpose "
            "it or use fewer rows."
        )
    implementation = "eigh" if implementation is None else implementation
    one_of("implementation", implementation, IMPLEMENTATIONS)
    num_iterations = whole("num_iterations", num_iterations, least=1)
    if not w.size:
        return w
    wide = widened(w)
    if implementation == "eigh":
        return _polar(wide).astype(w.dtype)
    return _newton_schulz(wide, num_iterations).astype(w.dtype)


def orthonormality_residual(w):
    """Returns ``‖W Wᵀ - I‖`` (Frobenius), which is 0 for orthonormal rows.

    ``sqrt(1 + residual)`` bounds the largest singular value of W, and therefore the
    ``gain`` of a layer in ``feature_sensitivity``. Check it before a release.

    Args:
      w: ``float[..., k, d]``.

    Returns:
      ``float32[...]``, or float64 for float64. Rounding alone gives about ``1e-7 k`` in
      float32. It is 0 without rows, and NaN if W holds a NaN or an infinity. The
      gradient at exactly 0 is 0.

    Raises:
      TypeError: if ``w`` does not hold floats.
      ValueError: if ``w`` is not a matrix.

    Example:
      >>> orthonormality_residual(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
      Array(3., dtype=float32)
    """
    w = widened(_matrix(w))
    square = jnp.sum((_product(w, w) - _identity(w)) ** 2, axis=(-2, -1))
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))


@jax.custom_jvp
def _polar(w):
    """Computes the orthonormal polar factor from eigenvalues of W Wᵀ, twice."""
    w = near_one(w, axis=(-2, -1))
    rank_cut = w.shape[-2] * jnp.finfo(w.dtype).eps
    for last in (False, True):
        eigenvalues, vectors = jnp.linalg.eigh(_product(w, w))
        cut = rank_cut * eigenvalues[..., -1:]
        lifted = jnp.where(cut > 0, jax.lax.rsqrt(jnp.maximum(eigenvalues, cut)), 0)
        if last:
            lifted = jnp.where(eigenvalues > cut, lifted, 0)
        half = vectors * lifted[..., None, :]
        w = _times(_product(half, vectors), w)
    return _iterate(w, POLISH)


@_polar.defjvp
def _polar_jvp(primals, tangents):
    # W = P Q with P symmetric. dQ has a part inside the rows' span, from the
    # antisymmetric Ω with P Ω + Ω P = dW Qᵀ - Q dWᵀ, and P⁻¹ dW (I - Qᵀ Q) outside.
    (w,), (dw,) = primals, tangents
    q = _polar(w)
    p = _product(w, q)
    p = (p + _transposed(p)) / 2
    inside = _product(dw, q)
    sides = inside - _transposed(inside), dw - _times(inside, q)
    turn, leave = _solve(p, *sides)
    return q, _times(turn, q) + leave


def _solve(p, square, wide):
    """Solves ``p X + X p = square`` and ``p Y = wide`` for symmetric p >= 0."""

    def solve(_, sides):
        square, wide = sides
        values, vectors = jnp.linalg.eigh(p)
        there = values > p.shape[-1] * jnp.finfo(p.dtype).eps * values[..., -1:]
        inverse = jnp.where(there, 1 / jnp.where(there, values, 1), 0)
        sums = values[..., :, None] + values[..., None, :]
        possible = there[..., :, None] & there[..., None, :]
        into = _transposed(vectors)
        x = _times(_times(into, square), vectors)
        x = jnp.where(possible, x / jnp.where(possible, sums, 1), 0)
        y = inverse[..., None] * _times(into, wide)
        return _times(_times(vectors, x), into), _times(vectors, y)

    # Differentiates through the equations, so that higher-order derivatives do not
    # divide by differences of eigenvalues either.
    apply = lambda xy: (_times(p, xy[0]) + _times(xy[0], p), _times(p, xy[1]))
    return jax.lax.custom_linear_solve(apply, (square, wide), solve, symmetric=True)


def _newton_schulz(w, num_iterations):
    """Computes the factor by ``X ← (3 X - X Xᵀ X) / 2`` after scaling W below 1."""
    w = near_one(w, axis=(-2, -1))
    # The factor is the same for any multiple of W, so the scale has no gradient.
    gram = jax.lax.stop_gradient(_product(w, w))
    square = jnp.sum(gram**2, axis=(-2, -1), keepdims=True)
    return _iterate(w * jnp.where(square > 0, square, 1) ** -0.25, num_iterations)


def _iterate(x, num_iterations):
    step = lambda x, _: (1.5 * x - 0.5 * _times(_product(x, x), x), None)
    return jax.lax.scan(step, x, length=num_iterations)[0]


def _product(a, b):
    return _times(a, _transposed(b))


def _times(a, b):
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def _transposed(a):
    return jnp.swapaxes(a, -2, -1)


def _identity(w):
    k = w.shape[-2]
    return jnp.broadcast_to(jnp.eye(k, dtype=w.dtype), (*w.shape[:-2], k, k))


def _matrix(w):
    w = as_array("w", w)
    floating(w=w)
    if w.ndim < 2:
        raise ValueError(
            f"w must be float[..., k, d], got shape {w.shape}; a single row is w[None]."
        )
    return w
