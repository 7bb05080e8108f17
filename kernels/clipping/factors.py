"""The arithmetic of clipping: norms of groups, and what each row is multiplied by."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

BLOCK = 1 << 18  # Numbers of a block of rows: small enough to be read twice in cache.


class Scale(NamedTuple):
    """What becomes of the rows of one group; all ``[N]``."""

    factor: jax.Array  # float in [0, 1]
    within: jax.Array  # bool: as it is, to the bit
    real: jax.Array  # bool: False where nothing of the row may be used


def wide(dtype):
    """float32 for half precision, the dtype itself otherwise."""
    return jnp.promote_types(dtype, jnp.float32)


def squared_norms(leaves, group_of, num_groups):
    """For each group ``float[N]``, the sum of squares over its leaves."""
    sums = [jnp.zeros(len(leaves[0]), jnp.float32)] * num_groups
    for leaf, group in zip(leaves, group_of, strict=True):
        squares = jnp.square(leaf.astype(wide(leaf.dtype)))
        sums[group] = sums[group] + jnp.sum(squares, axis=tuple(range(1, leaf.ndim)))
    return sums


def scale(squared_norm, max_norm) -> Scale:
    """min(1, C / norm), with the edges defined."""
    limits = jnp.finfo(squared_norm.dtype)
    max_norm = max_norm.astype(squared_norm.dtype)
    real = jnp.isfinite(squared_norm)
    positive = real & (squared_norm > 0)
    # The root has no derivative at 0; taking it of 1 there keeps gradients finite.
    norm = jnp.where(positive, jnp.sqrt(jnp.where(positive, squared_norm, 1)), 0)
    # Squares below the smallest number vanish, so a bound as small can't be checked.
    usable = real & (max_norm >= 2**20 * float(limits.tiny) ** 0.5)
    within = usable & (norm <= max_norm)
    over = usable & ~within
    factor = jnp.where(over, max_norm / jnp.where(over, norm, 1), within)
    return Scale(factor, within, real)


def along(vector, leaf):
    """``[N]`` as ``[N, 1, ...]``, to be broadcast over the rows of ``leaf``."""
    return vector.reshape(-1, *[1] * (leaf.ndim - 1))


def scaled(leaf, scale: Scale):
    """The clipped rows of one leaf, in its dtype."""
    factor, within, real = (along(part, leaf) for part in scale)
    rows = leaf.astype(factor.dtype) * factor
    limits = jnp.finfo(leaf.dtype)
    if limits.bits < 32:
        # Rounding to nearest could go over the bound; this rounds towards zero.
        rows = rows * (1 - float(limits.eps) / 2)
        rows = jax.lax.reduce_precision(rows, limits.nexp, limits.nmant)
    rows = jnp.where(real, rows, 0).astype(leaf.dtype)
    return jnp.where(within, leaf, rows)


def sum_of_rows(leaves, group_of, bounds, weights):
    """The weighted sum of the clipped rows, leaf by leaf, in wide precision."""
    whole = lambda *rows: _sum_of_block(rows, group_of, bounds, as_product=False)
    blocks = lambda *rows: _sum_of_blocks(rows, group_of, bounds)
    # A CPU sums columns slowly and products fast, and gains by its caches.
    return jax.lax.platform_dependent(weights, *leaves, cpu=blocks, default=whole)


def _sum_of_blocks(rows, group_of, bounds):
    num_rows = len(rows[0])
    size = max(1, sum(leaf.size for leaf in rows[1:]) // max(num_rows, 1))
    block = max(1, BLOCK // size)
    steps = max(0, (num_rows - 1) // block)
    first = num_rows - steps * block
    # The first block starts the sum, so that it varies over a mesh as the rows do.
    total = _sum_of_block([x[:first] for x in rows], group_of, bounds)
    if not steps:
        return total

    def add(total, rows):
        more = _sum_of_block(rows, group_of, bounds)
        return jax.tree.map(jnp.add, total, more), None

    rest = [x[first:].reshape(steps, block, *x.shape[1:]) for x in rows]
    return jax.lax.scan(add, total, rest)[0]


def _sum_of_block(rows, group_of, bounds, *, as_product=True):
    """Sum over the rows at hand, as a matrix product or as scaled columns."""
    weights, *leaves = rows
    norms = squared_norms(leaves, group_of, len(bounds))
    scales = [scale(*pair) for pair in zip(norms, bounds, strict=True)]
    sums = []
    for leaf, group in zip(leaves, group_of, strict=True):
        factor, _, real = scales[group]
        factor, used = factor * weights, real & (weights > 0)
        kept = jnp.where(along(used, leaf), leaf, 0).astype(wide(leaf.dtype))
        factor = factor.astype(kept.dtype)
        if as_product:
            sums.append(jnp.tensordot(factor, kept, 1))
        else:
            sums.append(jnp.sum(along(factor, leaf) * kept, axis=0))
    return sums
