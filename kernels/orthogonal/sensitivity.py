"""How far neighbours that differ along secret directions are apart, and features."""

import itertools
import math
import numbers
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import not_negative, whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.scaling import near_one

MOST_WORK = 10**9  # Numbers that an exact search may compute.
CHUNK = 1 << 21  # Of them at a time.


class RelaxedSensitivity(NamedTuple):
    """The most that relaxed neighbours differ by."""

    l1: Any  # float[]: sum of changes over the d inputs
    l2: Any  # float[]: root of the sum of their squares
    per_input: Any  # l1 / d: what DEEProtect calls ΔQ_relax, <= width


def relaxed_sensitivity(direction, width):
    """Of neighbours that differ along one secret direction c, inside a box.

    They are ``x + t c`` with no input moving by more than ``width``, so
    ``l1 = width ‖c‖₁ / ‖c‖_∞``, ``l2 = width ‖c‖₂ / ‖c‖_∞``. Equal to what protects
    any change (``d width``) exactly where all |c_j| are alike. It protects nothing
    that is seen in other directions, and so not the secret itself where those tell of
    it: with several classes, take the span of all their directions.

    Args:
      direction: ``float[d]``, any length; public or privately learnt. The zero vector,
        along which nobody differs, gives 0.
      width: ΔQ, public bound on the change of one input: a number >= 0 or ``float[]``.

    Returns:
      ``RelaxedSensitivity`` of ``float32[]`` (float64 for float64); differentiable.
      NaN, all three, if the direction is not finite.

    Raises:
      ValueError: if ``direction`` is no vector or empty, or ``width`` negative.

    Example:
      >>> relaxed_sensitivity(jnp.array([4.0, -3.0, 0.0, 0.0]), 2.0)
      RelaxedSensitivity(l1=Array(3.5, dtype=float32), l2=Array(2.5, dtype=float32), \
per_input=Array(0.875, dtype=float32))

    References:
      Liu et al., DEEProtect, 2017, section 5, definition 2; equation 10 there maximises
      what it also bounds, and is replaced by the box.
    """
    direction = jnp.asarray(direction)
    if direction.ndim != 1 or not direction.size:
        raise ValueError(
            f"direction must be float[d] with d >= 1, got shape {direction.shape}; "
            "several directions go to relaxed_span_sensitivity."
        )
    not_negative(width=width)
    size = near_one(jnp.abs(widened(direction)), axis=0)
    largest = jnp.max(size)
    size = size / jnp.where(largest > 0, largest, 1)
    l1, square = jnp.sum(size), jnp.sum(size**2)
    # The root's slope is infinite at 0; the zero vector's gradient is to be finite.
    l2 = jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))
    return RelaxedSensitivity(width * l1, width * l2, width * (l1 / direction.size))


def relaxed_span_sensitivity(directions, width) -> RelaxedSensitivity:
    """Of neighbours that differ anywhere in the span of several secret directions.

    ``max ‖Cα‖₁`` and ``max ‖Cα‖₂`` subject to ``‖Cα‖_∞ <= width``, exactly. A convex
    function is largest at a vertex of the polytope, a vertex ends an edge, and on an
    edge r - 1 independent inputs stand at ±width: so both ends of every such line are
    tried. Each point is scaled to the box before it counts, so rounding cannot make a
    value that no neighbours reach. Host arithmetic in float64, of the order of
    ``C(d, r - 1) 2^(r - 2) d`` operations: done once, before anything is compiled.

    Args:
      directions: ``float[r, d]``, one direction a row, concrete (not traced);
        dependent rows are allowed, and rows of zeros.
      width: ΔQ, a Python number >= 0.

    Returns:
      ``RelaxedSensitivity`` of Python floats.

    Raises:
      TypeError: if an argument is traced.
      ValueError: if directions are no finite matrix, or so many that more than 1e9
        numbers would have to be computed; ``d * width`` always holds for L1.

    Example:
      >>> found = relaxed_span_sensitivity([[1, 0, 0.5], [0, 1, 0.5]], 2.0)
      >>> round(found.l1, 9), round(found.per_input, 9)
      (6.0, 2.0)
    """
    if isinstance(directions, jax.core.Tracer) or isinstance(width, jax.core.Tracer):
        raise TypeError(
            "directions and width must be known when the program is traced, as edges "
            "are tried on the host; call relaxed_span_sensitivity outside jit."
        )
    not_negative(width=width)
    directions = np.asarray(directions, np.float64)
    if directions.ndim != 2 or not directions.shape[1]:
        raise ValueError(
            "directions must be float[r, d] with d >= 1, one direction a row, got "
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
        if work > MOST_WORK:
            raise ValueError(
                f"directions of rank {rank} in {d} inputs have too many edges to try "
                f"({work:.1e} numbers, at most {MOST_WORK:.0e}); take fewer "
                f"directions, or d * width = {d * width} for L1, which always holds."
            )
        l1, l2 = _largest_at_edges(basis)
    l1, l2 = float(l1 * width), float(l2 * width)
    return RelaxedSensitivity(l1, l2, l1 / d)


def feature_sensitivity(num_features, input_l2, num_layers, *, gain=1.0):
    """L1 sensitivity of features behind layers ``logistic(W x + b)``, rows orthonormal.

    ``min(k, √k gain input_l2 / 4^ℓ)``: the logistic curve is nowhere steeper than 1/4,
    and features lie in (0, 1), so no two differ by more than k whatever the input.
    Noise of scale λ = this / ε. Without layers, for features ``W x``, k is no bound.

    Args:
      num_features: k, outputs of the last layer; a Python int >= 0.
      input_l2: most that neighbouring inputs differ by in L2: ``√d width`` for any
        change of d inputs, or the ``l2`` of a relaxed sensitivity. May be traced.
      num_layers: ℓ, logistic layers; a Python int >= 0. Weights and biases are public,
        or themselves learnt with privacy.
      gain: product of the layers' largest singular values; 1 for orthonormal rows, and
        ``sqrt(1 + orthonormality_residual(W))`` each, if they are not so exactly.

    Returns:
      A Python float, or ``float[]`` where ``input_l2`` or ``gain`` is an array.

    Raises:
      TypeError: if ``num_features`` or ``num_layers`` is no Python int.
      ValueError: if a number on the host is negative.

    Example:
      >>> feature_sensitivity(16, 4.0, 1), feature_sensitivity(16, 400.0, 1)
      (4.0, 16.0)

    References:
      Liu et al., DEEProtect, 2017, theorem 4, with its constant brought down.
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
    """The published L1 sensitivity of features, ``√k d width``: valid and loose.

    To repeat the paper's figures; ``feature_sensitivity`` is never more than this for
    orthonormal layers, and 22 times less for 30 inputs, 7 features and one layer.

    Args:
      num_features: k, outputs of the last layer; a Python int >= 0.
      num_inputs: d, a Python int >= 0.
      width: ΔQ, the most that one input changes by; a number >= 0, may be traced.

    Returns:
      A Python float, or ``float[]`` where ``width`` is an array.

    Raises:
      TypeError: if a count is no Python int.
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
    """``float[d, rank]``: orthonormal columns that span the rows."""
    # How long a direction is says nothing; a short one must not count as none.
    sizes = np.max(np.abs(directions), axis=1, initial=0)
    directions = directions[sizes > 0] / sizes[sizes > 0, None]
    if not len(directions):
        return np.zeros((directions.shape[1], 0))
    left, values, _ = np.linalg.svd(directions.T, full_matrices=False)
    cut = max(directions.shape) * np.finfo(np.float64).eps * values[0]
    return left[:, values > cut]


def _norms_in_box(points):
    """Largest (L1, L2) of points ``[..., d]``, each scaled to a largest input of 1."""
    size = np.abs(points)
    largest = np.max(size, axis=-1, keepdims=True)
    size = size / np.where(largest > 0, largest, 1)
    l1, l2 = np.sum(size, axis=-1), np.sqrt(np.sum(size**2, axis=-1))
    return np.max(l1, initial=0), np.max(l2, initial=0)


def _largest_at_edges(basis):
    """(L1, L2) over both ends of every line on which rank - 1 inputs stand at ±1."""
    d, rank = basis.shape
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=rank - 2)))
    signs = np.concatenate([np.ones((len(signs), 1)), signs], axis=1)  # ±α are alike.
    lines = itertools.combinations(range(d), rank - 1)
    most = (0.0, 0.0)
    while chunk := list(itertools.islice(lines, max(1, CHUNK // (len(signs) * d)))):
        found = _norms_in_box(_ends(basis, np.array(chunk), signs))
        most = tuple(map(max, most, found))
    return most


def _ends(basis, tight, signs):
    """Where the lines with inputs ``tight`` at ``signs`` leave the box."""
    rank = basis.shape[1]
    q, r = np.linalg.qr(np.swapaxes(basis[tight], 1, 2), mode="complete")
    r = r[:, : rank - 1]
    independent = np.min(np.abs(np.diagonal(r, axis1=1, axis2=2)), axis=1) > 1e-12
    tight, q, r = tight[independent], q[independent], r[independent]
    # α = Q₁ R⁻ᵀ signs + t Q₂: Q₂ is at right angles to all tight inputs.
    fixed = np.linalg.solve(np.swapaxes(r, 1, 2), signs.T[None])
    base = np.swapaxes(basis @ (q[:, :, : rank - 1] @ fixed), 1, 2)
    slope = (q[:, :, -1] @ basis.T)[:, None]
    moving = np.abs(slope) > 1e-12
    moving[np.arange(len(tight))[:, None], 0, tight] = False
    safe = np.where(moving, slope, 1)
    reach = np.where(moving, 1 / np.abs(safe), np.inf)
    centre = np.where(moving, -base / safe, 0)
    last = np.min(centre + reach, axis=-1, keepdims=True)
    first = np.max(centre - reach, axis=-1, keepdims=True)
    return np.stack([base + first * slope, base + last * slope])
