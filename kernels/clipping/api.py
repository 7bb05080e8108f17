"""Public functions that clip: what they take, what they promise, what they refuse."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.clipping import factors
from jaxanon.kernels.clipping import groups as grouping
from jaxanon.kernels.clipping.bounded import BoundedSum


def clip_rows(rows, clip_norms, *, groups=None):
    """Scales each row down until its L2 norms are within their bounds.

    A row is one example or one client: the entries of all leaves at one index. Rows
    are clipped by groups of leaves, and ``clip_norms`` says which: each of its numbers
    bounds all the leaves beneath it together. One number bounds the whole row (flat
    clipping), ``{"encoder": 1.0, "decoder": 0.5}`` each part, a tree like ``rows``
    each leaf (per layer). Groups across the tree are given by labels.

    Args:
      rows: array or tree of arrays ``float[N, ...]``.
      clip_norms: C_m in the units of ``rows``: one number > 0, a tree of numbers that
        is a prefix of ``rows``, or with ``groups`` a dict from label to number. The
        numbers may be traced.
      groups: tree of labels (strings) that is a prefix of ``rows``.

    Returns:
      The tree of ``rows``, same dtypes. Within a group:

      - a row within the bound comes back as it is, to the bit, the zero row too;
      - a larger one is multiplied by C / norm. In half precision its entries are
        rounded towards zero, so that the bound holds for the result; in float32 and
        float64 the norm exceeds the bound by rounding at most (1e-6, relatively);
      - a row that is not finite is dropped to zero, for one nan would spoil a sum
        for everybody; so is one whose squared norm overflows (norms of 2^64, 1.8e19,
        or more, 2^512 in float64), and in another group it is not touched for that;
      - with a bound of 0, or nan, or one so small that squares of what it bounds lose
        their digits (below 2^-43, 1.1e-13, or 2^-491 in float64), all rows are dropped
        to zero.

      Norms are taken in float32, in float64 for float64. Gradients are those of the
      formula, finite at the zero row too; for rows that are not finite there are none.

    Raises:
      TypeError: if a leaf is not real floating point.
      ValueError: if the leaves' first axes differ, a bound is a number on the host and
        <= 0, or not a scalar, or ``clip_norms`` or ``groups`` does not fit the tree.

    Example:
      >>> clip_rows(jnp.array([[3.0, 4.0], [0.0, 2.0]]), 2.5)
      Array([[1.5, 2. ],
             [0. , 2. ]], dtype=float32)
      >>> rows = {"w": jnp.array([[3.0, 4.0]]), "b": jnp.array([8.0])}
      >>> clip_rows(rows, {"w": 2.5, "b": 2.0})
      {'b': Array([2.], dtype=float32), 'w': Array([[1.5, 2. ]], dtype=float32)}

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1;
      McMahan et al., arXiv 1710.06963, for clipping per layer.
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
    """Sums the clipped rows; the sum carries the bounds that its noise is made from.

    The same as ``clip_rows`` followed by a sum over the first axis, without a clipped
    copy of the rows and without rounding them.

    Args:
      rows, clip_norms, groups: as in ``clip_rows``.
      weights: ``float[N]`` in [0, 1] or ``bool[N]``, chosen without a look at the
        private data; None is all ones. A row of weight 0 (padding) has no part in the
        sum, whatever it holds. Values outside [0, 1] are taken to the nearer end and
        nan to 0, for a larger weight would break the bound.
      axis_name: name of a mapped axis (of ``shard_map`` or ``vmap``) over which rows
        are spread; the sum is taken over it too.

    Returns:
      ``BoundedSum`` whose value has the tree of ``rows`` less the first axis, in
      float32 (float64 for float64): half precision is widened, not rounded again.

    Raises:
      TypeError: as ``clip_rows``.
      ValueError: as ``clip_rows``, or if ``weights`` has not one entry per row.

    Example:
      >>> total = clipped_sum(jnp.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]]), 2.5)
      >>> total.value, total.sensitivity
      (Array([1.5, 4. ], dtype=float32), Array(2.5, dtype=float32))

    References:
      As ``clip_rows``; weights as in McMahan et al., arXiv 1710.06963, algorithm 1.
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
    """``float[N]`` in [0, 1]; ones for None."""
    if weights is None:
        return jnp.ones(num_rows, jnp.result_type(float))
    weights = jnp.asarray(weights)
    if weights.shape != (num_rows,):
        raise ValueError(
            f"weights must be float[{num_rows}], one per row, got shape "
            f"{weights.shape}."
        )
    weights = weights.astype(jnp.result_type(float))
    return jnp.where(weights > 0, jnp.minimum(weights, 1), 0)
