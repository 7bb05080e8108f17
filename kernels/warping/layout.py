"""Conversion between pairs and blocks of the wavefront."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import varying
from jaxanon.kernels.precision import wide, widened
from jaxanon.kernels.warping.wavefront import BOTH, COLUMN, ROW, Block, Sizes


def block_maker(sizes: Sizes, x, y, x_lengths, y_lengths, *, ragged, band):
    """Returns ``int32[] -> Block``; the rows are ``x``, the shorter series.

    Args:
      sizes: ``Sizes``.
      x: ``float[pairs, rows, channels]``; only finite values are used.
      y: ``float[pairs, columns, channels]``; only finite values are used.
      x_lengths: ``int32[pairs]``.
      y_lengths: ``int32[pairs]``.
      ragged: whether any length may be less than its axis.
      band: radius or None.
    """
    lanes = sizes.lanes
    wall = jnp.finfo(wide(x.dtype)).max

    def make_block(index):
        # The last block overlaps the previous one if lanes do not divide pairs.
        start = jnp.minimum(index * lanes, len(x) - lanes)
        part = lambda a: jax.lax.dynamic_slice_in_dim(a, start, lanes)
        n, m = part(x_lengths), part(y_lengths)
        first, end = sizes.rows - n, sizes.rows + m - 1
        above = sizes.rows - x.shape[1]
        rows = _side(part(x), sizes.rows, above, wall)
        if ragged:
            rows = _down(rows, x.shape[1] - n, wall)
        before = sizes.period - y.shape[1] - 1
        columns = _side(part(y)[:, ::-1], sizes.period, before, wall)
        flat = lambda a: a.reshape(len(a), -1)
        limits = None if band is None else flat(_limits(sizes, n, m, band))
        return Block(flat(rows), flat(columns), limits, first, end)

    return make_block


def unblocked(leaf, pairs):
    """Reshapes ``[blocks, lanes, ...]`` to ``[pairs, ...]``."""
    blocks, lanes = leaf.shape[:2]
    overlap = blocks * lanes - pairs
    earlier = leaf[:-1].reshape(-1, *leaf.shape[2:])
    return jnp.concatenate([earlier, leaf[-1, overlap:]])


def tracer(sizes: Sizes, length: int):
    """Returns ``finish`` of the wavefront, which traces best paths backwards.

    It returns rows and columns ``int32[lanes, length]``, from the last cell on, and a
    mask ``bool[lanes, length]``, False after the path's first cell.
    """
    lanes = sizes.lanes

    def trace(block, moves):
        size = moves.shape[1]
        lane = jnp.arange(lanes)

        def back(carry, _):
            row, step, active = carry
            i, j = row - block.first, step - 1 - row
            # Moves are arbitrary if costs overflow, but the edges are always known.
            move = moves.ravel()[step * size + row * lanes + lane]
            move = jnp.where(j == 0, ROW, move)
            move = jnp.where(i == 0, COLUMN, move)
            seen = jnp.where(active, i, 0), jnp.where(active, j, 0), active
            active = active & ((i > 0) | (j > 0))
            moved = row - (move != COLUMN), step - 1 - (move == BOTH)
            row, step = (
                jnp.where(active, a, b) for a, b in zip(moved, (row, step), strict=True)
            )
            return (row, step, active), seen

        # Varies over a mesh as moves and lengths do.
        zero = varying.zero(moves, block.first, block.end).astype(jnp.int32)
        begin = jnp.full_like(block.first, sizes.rows - 1) + zero
        some = (block.first < sizes.rows) & (block.end + zero >= sizes.rows)
        _, path = jax.lax.scan(back, (begin, block.end + zero, some), length=length)
        return jax.tree.map(lambda a: a.T, path)

    return trace


def _side(x, size, offset, wall):
    """Pads ``float[lanes, n, channels]`` by walls to ``[channels, size, lanes]``."""
    x = jnp.where(jnp.isfinite(x), x, 0)  # One pair's NaN must not affect the next.
    x = widened(x.transpose(2, 1, 0))
    room = jnp.full((len(x), size, x.shape[2]), wall, x.dtype)
    return jax.lax.dynamic_update_slice(room, x, (0, offset, 0))


def _down(rows, by, wall):
    """Moves each lane's rows down by ``by``, so that all end in the last row."""
    source = jnp.arange(rows.shape[1])[:, None] - by[None]
    moved = jnp.take_along_axis(rows, jnp.maximum(source, 0)[None], axis=1)
    return jnp.where(source[None] >= 0, moved, wall)


def _limits(sizes, n, m, band):
    """Returns the first and last step of each row within the band; walls always are."""
    aligned = jnp.arange(sizes.rows)[:, None]
    row = aligned - (sizes.rows - n)[None]
    diagonal = 1 + aligned + row
    left, right = jnp.maximum(n - m, 0) + band, jnp.maximum(m - n, 0) + band
    limits = jnp.stack([diagonal - left[None], diagonal + right[None]])
    always = jnp.array([-4 * sizes.period, 4 * sizes.period])
    return jnp.where(row[None] >= 0, limits, always[:, None, None]).astype(jnp.int32)
