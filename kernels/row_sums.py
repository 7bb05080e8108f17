"""The weighted sum of the rows of an array, as is fast where it runs."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.portable import by_platform
from jaxanon.kernels.precision import wide

LARGE = 1 << 18  # Numbers in a leaf that a CPU should not copy.


def along(vector, leaf):
    """``[N]`` as ``[N, 1, ...]``, to be broadcast over the rows of ``leaf``."""
    return vector.reshape(-1, *[1] * (leaf.ndim - 1))


def weighted(factor, used, leaf):
    """``sum_i factor[i] leaf[i]`` over the used rows, in float32 at least.

    Args:
      factor: ``float[N]``.
      used: ``bool[N]``; a row that is not may hold anything.
      leaf: ``float[N, ...]``.

    Example:
      >>> leaf = jnp.array([[1.0, 2.0], [3.0, 4.0], [jnp.nan, jnp.inf]])
      >>> weighted(jnp.array([1.0, 0.5, 1.0]), jnp.arange(3) < 2, leaf)
      Array([2.5, 4. ], dtype=float32)
    """
    factor = factor.astype(wide(leaf.dtype))
    # A CPU is slow to sum columns, and to copy a large leaf without its bad rows.
    on_cpu = by_product if leaf.size <= LARGE else row_by_row
    return by_platform(factor, used, leaf, cpu=on_cpu, default=by_columns)


def by_columns(factor, used, leaf):
    """The sum as a reduction."""
    return jnp.sum(along(factor, leaf) * _kept(factor, used, leaf), axis=0)


def by_product(factor, used, leaf):
    """The same as a product of matrices."""
    return jnp.tensordot(
        factor, _kept(factor, used, leaf), 1, precision=jax.lax.Precision.HIGHEST
    )


def row_by_row(factor, used, leaf):
    """The same in a loop that copies nothing of the leaf."""
    row = lambda factor, used, leaf: factor * _kept(factor, used, leaf)
    add = lambda total, at: (total + row(*at), None)
    # Zeros made of a row, so that over a mesh they count as varying like the rows.
    zeros = row(factor[0], used[0] & False, leaf[0])
    return jax.lax.scan(add, zeros, (factor, used, leaf))[0]


def _kept(factor, used, leaf):
    used = along(used, leaf) if used.ndim else used
    return jnp.where(used, leaf, 0).astype(factor.dtype)
