"""Weighted sum of an array's rows, in the fastest form for each platform."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.portable import by_platform
from jaxanon.kernels.precision import wide

LARGE = 1 << 18  # Leaf size above which a copy is slow on a CPU.


def along(vector, leaf):
    """Reshapes ``[N]`` to ``[N, 1, ...]`` for broadcasting over rows of ``leaf``."""
    return vector.reshape(-1, *[1] * (leaf.ndim - 1))


def weighted(factor, used, leaf):
    """Returns ``sum_i factor[i] leaf[i]`` over the used rows, in at least float32.

    Args:
      factor: ``float[N]``.
      used: ``bool[N]``; unused rows may hold any values, including NaN.
      leaf: ``float[N, ...]``.

    Example:
      >>> leaf = jnp.array([[1.0, 2.0], [3.0, 4.0], [jnp.nan, jnp.inf]])
      >>> weighted(jnp.array([1.0, 0.5, 1.0]), jnp.arange(3) < 2, leaf)
      Array([2.5, 4. ], dtype=float32)
    """
    factor = factor.astype(wide(leaf.dtype))
    # A CPU is slow at column sums and at copying a large leaf to mask its rows.
    on_cpu = by_product if leaf.size <= LARGE else row_by_row
    return by_platform(factor, used, leaf, cpu=on_cpu, default=by_columns)


def by_columns(factor, used, leaf):
    """Computes the sum as a reduction."""
    return jnp.sum(along(factor, leaf) * _kept(factor, used, leaf), axis=0)


def by_product(factor, used, leaf):
    """Computes the sum as a matrix product."""
    return jnp.tensordot(
        factor, _kept(factor, used, leaf), 1, precision=jax.lax.Precision.HIGHEST
    )


def row_by_row(factor, used, leaf):
    """Computes the sum in a loop that does not copy the leaf."""
    row = lambda factor, used, leaf: factor * _kept(factor, used, leaf)
    add = lambda total, at: (total + row(*at), None)
    # Zeros derived from a row, so that over a mesh they vary as the rows do.
    zeros = row(factor[0], used[0] & False, leaf[0])
    return jax.lax.scan(add, zeros, (factor, used, leaf))[0]


def _kept(factor, used, leaf):
    used = along(used, leaf) if used.ndim else used
    return jnp.where(used, leaf, 0).astype(factor.dtype)
