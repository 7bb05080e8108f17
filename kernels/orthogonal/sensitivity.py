"""Sensitivities for neighbours that differ along secret directions, and of features."""

import itertools
import math
import numbers
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import as_array, not_negative, numeric, whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.scaling import near_one

MAX_WORK = 10**9  # Maximum number of values that an exact search computes.
CHUNK = 1 << 21  # Values computed at a time.


class RelaxedSensitivity(NamedTuple):
    """Maximum difference between relaxed neighbours."""

    l1: Any  # float[]: sum of changes over the d inputs
    l2: Any  # float[]: Euclidean norm of changes
    per_input: Any  # l1 / d: ΔQ_relax of DEEProtect, <= width


def relaxed_sensitivity(direction, width):
    """Computes the sensitivity for neighbours along one secret direction c in a box.

    Neighbours are ``x`` and ``x + t c``, and each input changes by at most ``width``.
    Hence ``l1 = width ‖c‖₁ / ‖c‖_∞`` and ``l2 = width ‖c‖₂ / ‖c‖_∞``. It equals the
    bound for arbitrary changes (``d width``) only if all |c_j| are equal. Differences
    in other directions are not protected, even if they reveal the secret. With several
    classes, use the span of all their directions.

    Args:
      direction: ``float[d]`` of any length, public or learnt privately. The zero vector
        gives 0.
      width: ΔQ, public bound on the change of one input, a number >= 0 or ``float[]``.

    Returns:
      ``RelaxedSensitivity`` of ``float32[]`` (float64 for float64); differentiable. All
      fields are NaN if the direction is not finite.

    Raises:
      ValueError: if ``direction`` is empty or not a vector, or ``width`` is negative.

    Example:
      >>> relaxed_sensitivity(jnp.array([4.0, -3.0, 0.0, 0.0]), 2.0)
      RelaxedSensitivity(l1=Array(3.5, dtype=float32), l2=Array(2.5, dtype=float32), \
per_input=Array(0.875, dtype=float32))

    References:
      Liu et al., DEEProtect, 2017, section 5, definition 2. Its equation 10 maximises
      the quantity that it bounds; the box replaces it here.
    """
    direction = as_array("direction", direction)
    if direction.ndim != 1 or not direction.size:
        raise ValueError(
            f"direction must be float[d] with d >= 1, got shape {direction.shape}; "
            "use relaxed_span_sensitivity for several directions."
        )
    not_negative(width=width)
    size = near_one(jnp.abs(widened(direction)), axis=0)
    largest = jnp.max(size)
    size = size / jnp.where(largest > 0, largest, 1)
    l1, square = jnp.sum(size), jnp.sum(size**2)
    # The root has infinite slope at 0; this keeps the zero vector's gradient finite.
    l2 = jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))
    return RelaxedSensitivity(width * l1, width * l2, width * (l1 / direction.size))


def relaxed_span_sensitivity(directions, width) -> RelaxedSensitivity:
    """Computes the sensitivity for neighbours in the span of secret directions.

    It solves ``max ‖Cα‖₁`` and ``max ‖Cα‖₂`` subject to ``‖Cα‖_∞ <= width`` exactly. A
    convex function has its maximum at a vertex of the polytope. A vertex ends an edge,
    and on an edge r - 1 independent inputs are at ±width, so both ends of every such
    line are tried. Points are scaled to the box, so rounding cannot exceed the true
    maximum. It runs on the host in float64, with about ``C(d, r - 1) 2^(r - 2) d``
    operations.

    Args:
      directions: ``float[r, d]``, one direction per row, not traced. Dependent rows and
        zero rows are allowed.
      width: ΔQ, a Python number >= 0.

    Returns:
      ``RelaxedSensitivity`` of Python floats.

    Raises:
      TypeError: if an argument is traced.
      ValueError: if ``directions`` is not a finite matrix, or the search would need
        more than 1e9 values. ``d * width`` is always a bound for L1.

    Example:
      >>> found = relaxed_span_sensitivity([[1, 0, 0.5], [0, 1, 0.5]], 2.0)
      >>> round(found.l1, 9), round(found.per_input, 9)
      (6.0, 2.0)
    """
    if isinstance(directions, jax.core.Tracer) or isinstance(width, jax.core.Tracer):
        raise TypeError(
            "directions and width must be known when the program is traced, because "
            "the search runs on the host; call relaxed_span_sensitivity outside jit."
        )
    not_negative(width=width)
    numeric(directions=directions)
    directions = np.asarray(directions, np.float64)
    if directions.ndim != 2 or not directions.shape[1]:
        raise ValueError(
            "directions must be float[r, d] with d >= 1, one direction per row, got "
            f"shape {directions.shape}."
        )
    if not np.isfinite(directions).all():
        raise ValueError("directions must be finite, got NaN or infinity.")
    basis = _basis(directions)
    d, rank = basis.shape
    if rank < 2:
        l1, l2 = _norms_in_box(basis.T) if rank else (0.0, 0.0)
    else:
        work = math.comb(d, rank - 1) * 2 ** (rank - 2) * d
        if work > MAX_WORK:
            raise ValueError(
                f"directions must need at most {MAX_WORK:.0e} values to search, got "
                f"rank {rank} in {d} inputs with {work:.1e} values; use fewer "
                f"directions, or the L1 bound d * width = {d * width}."
            )
        l1, l2 = _largest_at_edges(basis)
    l1, l2 = float(l1 * width), float(l2 * width)
    return RelaxedSensitivity(l1, l2, l1 / d)


def feature_sensitivity(num_features, input_l2, num_layers, *, gain=1.0):
    """Returns the L1 sensitivity of features behind layers ``logistic(W x + b)``.

    It is ``min(k, √k gain input_l2 / 4^ℓ)`` for W with orthonormal rows. The slope of
    the logistic function is at most 1/4, and features are in (0, 1), so they differ by
    at most k. Use noise of scale sensitivity / ε. Without layers, for features ``W x``,
    the bound k does not apply.

    Args:
      num_features: k, the outputs of the last layer, a Python int >= 0.
      input_l2: maximum L2 difference of neighbouring inputs; may be traced. It is
        ``√d width`` for arbitrary changes, or the ``l2`` of a relaxed sensitivity.
      num_layers: ℓ, the number of logistic layers, a Python int >= 0. Weights and
        biases must be public or learnt privately.
      gain: product of the layers' largest singular values, 1 for orthonormal rows.
        Otherwise use ``sqrt(1 + orthonormality_residual(W))`` per layer.

    Returns:
      A Python float, or ``float[]`` if ``input_l2`` or ``gain`` is an array.

    Raises:
      TypeError: if ``num_features`` or ``num_layers`` is not a Python int.
      ValueError: if a number on the host is negative.

    Example:
      >>> feature_sensitivity(16, 4.0, 1), feature_sensitivity(16, 400.0, 1)
      (4.0, 16.0)

    References:
      Liu et al., DEEProtect, 2017, theorem 4, with a smaller constant.
    """
    num_features = whole("num_features", num_features, least=0)
    num_layers = whole("num_layers", num_layers, least=0)
    not_negative(input_l2=input_l2, gain=gain)
    bound = math.sqrt(num_features) / 4.0**num_layers * (gain * input_l2)
    if not num_layers:
        return bound
    if isinstance(bound, numbers.Real):
        return float(min(num_features, bound))
    return jnp.minimum(num_features, bound)


def deeprotect_feature_sensitivity(num_features, num_inputs, width):
    """Returns the published L1 sensitivity of features, ``√k d width``.

    It is valid but loose; use it to reproduce the paper. ``feature_sensitivity`` is
    never larger for orthonormal layers, and 22 times smaller for 30 inputs, 7 features
    and one layer.

    Args:
      num_features: k, the outputs of the last layer, a Python int >= 0.
      num_inputs: d, a Python int >= 0.
      width: ΔQ, maximum change of one input, a number >= 0; may be traced.

    Returns:
      A Python float, or ``float[]`` if ``width`` is an array.

    Raises:
      TypeError: if a count is not a Python int.
      ValueError: if a number on the host is negative.

    Example:
      >>> deeprotect_feature_sensitivity(16, 30, 1.0)
      120.0

    References:
      Liu et al., DEEProtect, 2017, theorem 4.
    """
    num_features = whole("num_features", num_features, least=0)
    num_inputs = whole("num_inputs", num_inputs, least=0)
    not_negative(width=width)
    return math.sqrt(num_features) * num_inputs * width


def _basis(directions):
    """Returns ``float[d, rank]``, orthonormal columns that span the rows."""
    # The length of a direction is irrelevant; short ones must not count as zero.
    sizes = np.max(np.abs(directions), axis=1, initial=0)
    directions = directions[sizes > 0] / sizes[sizes > 0, None]
    if not len(directions):
        return np.zeros((directions.shape[1], 0))
    left, values, _ = np.linalg.svd(directions.T, full_matrices=False)
    cut = max(directions.shape) * np.finfo(np.float64).eps * values[0]
    return left[:, values > cut]


def _norms_in_box(points):
    """Returns the largest (L1, L2) of points ``[..., d]`` scaled to the unit box."""
    size = np.abs(points)
    largest = np.max(size, axis=-1, keepdims=True)
    size = size / np.where(largest > 0, largest, 1)
    l1, l2 = np.sum(size, axis=-1), np.sqrt(np.sum(size**2, axis=-1))
    return np.max(l1, initial=0), np.max(l2, initial=0)


def _largest_at_edges(basis):
    """Returns the largest (L1, L2) over all lines with rank - 1 inputs at ±1."""
    d, rank = basis.shape
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=rank - 2)))
    signs = np.concatenate([np.ones((len(signs), 1)), signs], axis=1)  # By symmetry.
    lines = itertools.combinations(range(d), rank - 1)
    most = (0.0, 0.0)
    while chunk := list(itertools.islice(lines, max(1, CHUNK // (len(signs) * d)))):
        found = _norms_in_box(_ends(basis, np.array(chunk), signs))
        most = tuple(map(max, most, found))
    return most


def _ends(basis, tight, signs):
    """Returns where the lines with inputs ``tight`` at ``signs`` leave the box."""
    rank = basis.shape[1]
    q, r = np.linalg.qr(np.swapaxes(basis[tight], 1, 2), mode="complete")
    r = r[:, : rank - 1]
    independent = np.min(np.abs(np.diagonal(r, axis1=1, axis2=2)), axis=1) > 1e-12
    tight, q, r = tight[independent], q[independent], r[independent]
    # α = Q₁ R⁻ᵀ signs + t Q₂, where Q₂ is orthogonal to all tight inputs.
    fixed = np.linalg.solve(np.swapaxes(r, 1, 2), signs.T[None])
    base = np.swapaxes(basis @ (q[:, :, : rank - 1] @ fixed), 1, 2)
    slope = (q[:, :, -1] @ basis.T)[:, None]
    moving = np.abs(slope) > 1e-12
    moving[np.arange(len(tight))[:, None], 0, tight] = False
    safe = np.where(moving, slope, 1)
    half_length = np.where(moving, 1 / np.abs(safe), np.inf)
    centre = np.where(moving, -base / safe, 0)
    last = np.min(centre + half_length, axis=-1, keepdims=True)
    first = np.max(centre - half_length, axis=-1, keepdims=True)
    return np.stack([base + first * slope, base + last * slope])
