"""Rows made orthonormal, with gradients that bear repeated singular values."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import floating, one_of, whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.scaling import near_one

IMPLEMENTATIONS = ("eigh", "newton_schulz")
POLISH = 2  # Each squares what rounding has left of W Wᵀ - I; one is too few.


def orthonormal_rows(w, *, implementation=None, num_iterations=30):
    """``(W Wᵀ)^(-1/2) W``: the nearest matrix to W whose rows are orthonormal.

    ``"eigh"`` decomposes W Wᵀ twice, the second time with the small eigenvalues lifted,
    so in float32 condition numbers of W up to 1e5 leave no more than rounding behind.
    Its derivatives, of any order, come from the Sylvester equation of the polar
    factors, which divides by sums of singular values and never by differences: they
    are right where W is orthonormal already. ``"newton_schulz"`` needs matrix products
    only, and is differentiated step by step; the iterations lift a singular value by
    1.5 each, so 30 do for condition numbers up to 1e4.

    Where W has rank r < k, no such matrix exists; in float32, singular values below
    about ``1e-7 k`` of the largest count as lost. ``"eigh"`` then returns the r
    orthonormal directions that there are, a partial isometry: the norm of ``Q x`` still
    never exceeds that of x, but ``orthonormality_residual`` is √(k - r). Zero gradient
    for the lost directions. ``"newton_schulz"`` leaves them between 0 and 1. The zero
    matrix stays zero.

    Args:
      w: ``float[..., k, d]`` with k <= d. Half precision is widened to float32
        meanwhile; rounding back leaves rows orthonormal to that precision only.
      implementation: ``"eigh"`` or ``"newton_schulz"``; ``None`` is ``"eigh"``.
      num_iterations: of ``"newton_schulz"``; a Python int >= 1.

    Returns:
      ``float[..., k, d]``, of the dtype of ``w``.

    Raises:
      TypeError: if w holds no floats, or ``num_iterations`` is no Python int.
      ValueError: if w is no matrix, has more rows than columns, or for an unknown
        implementation or no iterations.

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
            "w must be float[..., k, d] with k <= d, as more than d rows cannot be "
            f"orthonormal, got shape {w.shape}; transpose it or keep fewer rows."
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
    """``‖W Wᵀ - I‖`` (Frobenius): 0 for orthonormal rows; check it before a release.

    Whatever it is, ``sqrt(1 + residual)`` bounds the largest singular value of W, and
    so what a layer may do to a distance: the ``gain`` of ``feature_sensitivity``.

    Args:
      w: ``float[..., k, d]``.

    Returns:
      ``float32[...]``, or float64 for float64; rounding alone leaves about ``1e-7 k``
      in float32. 0 for no rows, NaN where W holds a NaN or an infinity. The gradient
      at exactly 0 is 0.

    Raises:
      TypeError: if w holds no floats.
      ValueError: if w is no matrix.

    Example:
      >>> orthonormality_residual(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
      Array(3., dtype=float32)
    """
    w = widened(_matrix(w))
    square = jnp.sum((_product(w, w) - _identity(w)) ** 2, axis=(-2, -1))
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))


@jax.custom_jvp
def _polar(w):
    """The orthonormal polar factor, by eigenvalues of W Wᵀ, twice over."""
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
    # W = P Q with P symmetric. dQ turns within the rows by the antisymmetric Ω,
    # P Ω + Ω P = dW Qᵀ - Q dWᵀ, and leaves their span by P⁻¹ dW (I - Qᵀ Q).
    (w,), (dw,) = primals, tangents
    q = _polar(w)
    p = _product(w, q)
    p = (p + _transposed(p)) / 2
    inside = _product(dw, q)
    sides = inside - _transposed(inside), dw - _times(inside, q)
    turn, leave = _solve(p, *sides)
    return q, _times(turn, q) + leave


def _solve(p, square, wide):
    """X and Y with ``p X + X p = square`` and ``p Y = wide``; p symmetric, >= 0."""

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

    # Differentiated through the equations, so that nothing divides by a difference of
    # eigenvalues in derivatives of higher order either.
    apply = lambda xy: (_times(p, xy[0]) + _times(xy[0], p), _times(p, xy[1]))
    return jax.lax.custom_linear_solve(apply, (square, wide), solve, symmetric=True)


def _newton_schulz(w, num_iterations):
    """The same factor by ``X ← (3 X - X Xᵀ X) / 2``, singular values scaled below 1."""
    w = near_one(w, axis=(-2, -1))
    # The factor is that of any multiple of W: the scale is a constant to gradients.
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
    w = jnp.asarray(w)
    floating(w=w)
    if w.ndim < 2:
        raise ValueError(
            f"w must be float[..., k, d], got shape {w.shape}; a single row is w[None]."
        )
    return w
