"""Public clipping functions with argument checks."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import as_array
from jaxanon.kernels.clipping import factors
from jaxanon.kernels.clipping import layer_groups as grouping
from jaxanon.kernels.clipping.bounded import BoundedSum


def clip_rows(rows, clip_norms, *, groups=None):
    """Clips the L2 norm of each row, per group of leaves.

    A row is one example or one client: the entries of all leaves at one index. Each
    number in ``clip_norms`` bounds all leaves below it together. One number bounds the
    whole row (flat clipping), ``{"encoder": 1.0, "decoder": 0.5}`` bounds each part,
    and a tree like ``rows`` bounds each leaf (per-layer clipping). Labels in ``groups``
    define groups across the tree.

    Args:
      rows: array or tree of arrays ``float[N, ...]``.
      clip_norms: C_m in the units of ``rows``: one number > 0, a tree prefix of
        ``rows``, or with ``groups`` a dict from label to number. Numbers may be traced.
      groups: tree prefix of ``rows`` with labels (strings).

    Returns:
      The tree of ``rows`` with the same dtypes. Within a group:

      - A row within the bound is returned bit for bit, including the zero row.
      - A larger row is multiplied by C / norm. Half-precision entries are rounded
        towards zero, so the bound holds exactly. In float32 and float64 the norm may
        exceed the bound by rounding (relative error 1e-6).
      - A non-finite row becomes zero. This includes rows whose squared norm overflows
        (norms >= 2^64, or 2^512 in float64). Its other groups are unaffected.
      - All rows become zero if the bound is 0, NaN or too small for squares to be
        accurate (below 2^-43, or 2^-491 in float64).

      Norms are computed in float32, or in float64 for float64. Gradients follow the
      formula, are finite at the zero row, and are undefined for non-finite rows.

    Raises:
      TypeError: if a leaf is not real floating point.
      ValueError: if the leaves' first axes differ, a bound on the host is <= 0 or not a
        scalar, or ``clip_norms`` or ``groups`` does not fit the tree.

    Example:
      >>> clip_rows(jnp.array([[3.0, 4.0], [0.0, 2.0]]), 2.5)
      Array([[1.5, 2. ],
             [0. , 2. ]], dtype=float32)
      >>> rows = {"w": jnp.array([[3.0, 4.0]]), "b": jnp.array([8.0])}
      >>> clip_rows(rows, {"w": 2.5, "b": 2.0})
      {'b': Array([2.], dtype=float32), 'w': Array([[1.5, 2. ]], dtype=float32)}

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1;
      McMahan et al., arXiv 1710.06963, for per-layer clipping.
    """
    rows = grouping.checked_rows(rows)
    bounds = jax.tree.leaves(grouping.numbers("clip_norms", clip_norms))
    group_of = grouping.group_of_leaves(rows, clip_norms, groups)
    leaves, treedef = jax.tree.flatten(rows)
    scales = factors.scales(leaves, group_of, bounds)
    pairs = zip(leaves, group_of, strict=True)
    return treedef.unflatten([factors.scaled(leaf, scales[m]) for leaf, m in pairs])


def clipped_sum(
    rows, clip_norms, *, groups=None, weights=None, axis_name=None
) -> BoundedSum:
    """Sums clipped rows and returns the sum with its bounds.

    It equals ``clip_rows`` followed by a sum over the first axis, without a clipped
    copy of the rows and without rounding them.

    Args:
      rows, clip_norms, groups: see ``clip_rows``.
      weights: ``float[N]`` in [0, 1] or ``bool[N]``, chosen independently of the
        private data. None is all ones. Rows of weight 0 (padding) may hold any values.
        Values outside [0, 1] are clipped and NaN becomes 0, because a larger weight
        would break the bound.
      axis_name: name of a mapped axis (of ``shard_map`` or ``vmap``) that also holds
        rows; the sum includes it.

    Returns:
      ``BoundedSum`` whose value has the tree of ``rows`` without the first axis, in
      float32 (float64 for float64). Half precision is widened.

    Raises:
      TypeError: same conditions as ``clip_rows``.
      ValueError: under the conditions of ``clip_rows``, or if ``weights`` does not have
        one entry per row.

    Example:
      >>> total = clipped_sum(jnp.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]]), 2.5)
      >>> total.value, total.sensitivity
      (Array([1.5, 4. ], dtype=float32), Array(2.5, dtype=float32))

    References:
      See ``clip_rows``; weights as in McMahan et al., arXiv 1710.06963, algorithm 1.
    """
    rows = grouping.checked_rows(rows)
    clip_norms = grouping.numbers("clip_norms", clip_norms)
    group_of = grouping.group_of_leaves(rows, clip_norms, groups)
    leaves, treedef = jax.tree.flatten(rows)
    weights = unit_weights(weights, len(leaves[0]))
    bounds = jax.tree.leaves(clip_norms)
    value = treedef.unflatten(factors.sum_of_rows(leaves, group_of, bounds, weights))
    squared_weights = jnp.sum(jnp.square(weights))
    if axis_name is not None:
        value, squared_weights = jax.lax.psum((value, squared_weights), axis_name)
    return BoundedSum(value, clip_norms, squared_weights, group_of)


def unit_weights(weights, num_rows):
    """Returns weights ``float[N]`` clipped to [0, 1]; ones for None."""
    if weights is None:
        return jnp.ones(num_rows, jnp.result_type(float))
    weights = as_array("weights", weights)
    if weights.shape != (num_rows,):
        raise ValueError(
            f"weights must be float[{num_rows}], one per row, got shape "
            f"{weights.shape}."
        )
    weights = weights.astype(jnp.result_type(float))
    return jnp.where(weights > 0, jnp.minimum(weights, 1), 0)
