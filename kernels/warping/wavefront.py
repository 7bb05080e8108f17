"""Wavefront algorithm for many pairs, one anti-diagonal per step.

The cells of an anti-diagonal depend only on the two before it. ``lanes`` pairs lie side
by side in the contiguous axis. Anti-diagonals grow and shrink, so a single pair would
leave half of the cells idle. Each lane therefore processes pairs back to back: the
first rows of the next pair replace finished rows of the previous pair.

Padding with ``wall``, the largest float, avoids masks. Each row series is preceded by
wall rows, and each column series by a wall column. Paths cannot cross from a wall to a
number. The cost between two walls is 0, and paths start there.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import varying

GROUP = 8  # Rows inserted at a time; single rows would cost a copy per step.
BOTH, ROW, COLUMN = 0, 1, 2  # Series in which a path advances.


class Sizes(NamedTuple):
    """Static sizes; a lane gets a pair every ``period`` steps, over ``rows`` steps."""

    lanes: int
    blocks: int
    rows: int
    period: int


class Block(NamedTuple):
    """One pair per lane."""

    rows: jax.Array  # float[channels, sizes.rows * lanes]: walls, then the series
    columns: jax.Array  # float[channels, sizes.period * lanes]: last sample first
    limits: jax.Array | None  # int32[2, sizes.rows * lanes]: first, last step in band
    first: jax.Array  # int32[lanes]: row of the first sample
    end: jax.Array  # int32[lanes]: step that reaches the last cell


def sizes_for(pairs: int, rows: int, columns: int, lanes: int) -> Sizes:
    """Returns sizes that fit the samples of rows and columns with their walls."""
    lanes = min(lanes, pairs)
    up = lambda n: -(-n // GROUP) * GROUP
    return Sizes(lanes, -(-pairs // lanes), up(rows + 1), up(columns + GROUP))


def run(
    sizes: Sizes, make_block: Callable, local_cost: Callable, finish: Callable | None
):
    """Runs all blocks through the wavefront.

    Args:
      sizes: result of ``sizes_for``.
      make_block: ``int32[] -> Block``. It is called for one extra block, which
        completes the last one.
      local_cost: ``(channels of float[n], channels of float[n]) -> float[n]``.
      finish: ``(block, int8[2 * period, rows * lanes]) -> tree``, or None. Its second
        argument holds the last move of the path to each cell (``BOTH``, ``ROW`` or
        ``COLUMN``) for every step since the block began.

    Returns:
      ``float[blocks, lanes]``, the minimum cost, and the stacked results of ``finish``.
    """
    first = make_block(jnp.zeros((), jnp.int32))
    dtype, lanes = first.rows.dtype, sizes.lanes

    def one_block(carry, index):
        before, columns, seen, (rows, limits, *cells) = carry
        block = make_block(index)
        if limits is not None:  # Steps count from the entry of the block.
            limits = limits - sizes.period
        state = rows, limits, *cells
        columns = jnp.concatenate(
            [block.columns, columns[:, : sizes.period * lanes]], 1
        )
        step_group = _step_group(sizes, block, columns, local_cost, finish is not None)
        groups = jnp.arange(sizes.period // GROUP)
        entering = sizes.rows // GROUP
        state, now = jax.lax.scan(step_group(True), state, groups[:entering])
        if entering < len(groups):
            state, later = jax.lax.scan(step_group(False), state, groups[entering:])
            now = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), now, later)
        now = jax.tree.map(lambda a: a.reshape(sizes.period, -1), now)
        last_row, moves = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), seen, now)
        total = jnp.take_along_axis(last_row, before.end[None], 0)[0]
        kept = None if finish is None else finish(before, moves)
        return (block, columns, now, state), (total, kept)

    # Derived from a block, so that values vary over a mesh as its sides do.
    zero = first.rows[0] - first.rows[0] + varying.zero(first.columns).astype(dtype)
    edge = jnp.concatenate([zero[:lanes], zero + jnp.inf])
    wall = jnp.finfo(dtype).max
    rows = jnp.full(first.rows.shape, wall, dtype) + zero[None]
    seen_row = jnp.zeros((sizes.period, lanes), dtype) + zero[None, :lanes]
    moves = None if finish is None else _moves_like(sizes, zero)
    columns = jnp.tile(first.columns, (1, 2))
    state = rows, first.limits, edge, edge
    carry = first, columns, (seen_row, moves), state
    _, (total, kept) = jax.lax.scan(one_block, carry, jnp.arange(sizes.blocks + 1))
    return jax.tree.map(lambda a: a[1:], (total, kept))


def _moves_like(sizes, zero):
    shape = (sizes.period, sizes.rows * sizes.lanes)
    return (jnp.zeros(shape, zero.dtype) + zero[None]).astype(jnp.int8)


def _step_group(sizes, block, columns, local_cost, with_moves):
    """Returns the scan body for groups of steps, with or without entering rows."""
    lanes, width = sizes.lanes, sizes.rows * sizes.lanes

    def diagonal(rows, limits, older, newer, step):
        """Overwrites the cells of two steps ago with those of ``step``."""
        # Row i is at column ``step - i``; columns are stored in reverse.
        offset = (sizes.period - 1 - step) * lanes
        # Slices per channel, which XLA fuses into one loop, four times as fast.
        window = [
            jax.lax.dynamic_slice(columns, (c, offset), (1, width))[0]
            for c in range(len(columns))
        ]
        cost = local_cost(rows, window)
        if limits is not None:
            inside = (limits[0] <= step) & (step <= limits[1])
            cost = jnp.where(inside, cost, jnp.inf)
        both, row, column = older[:-lanes], newer[:-lanes], newer[lanes:]
        cells = cost + jnp.minimum(jnp.minimum(row, column), both)
        moves = None
        if with_moves:
            straight = both <= jnp.minimum(row, column)
            moves = jnp.where(straight, BOTH, jnp.where(row <= column, ROW, COLUMN))
            moves = moves.astype(jnp.int8)
        cells = jax.lax.dynamic_update_slice(older, cells, (lanes,))
        return cells, (cells[-lanes:], moves)

    def for_groups(entering):
        def step_group(state, group):
            rows, limits, older, newer = state
            if entering:
                start = group * (GROUP * lanes)
                rows = _let_in(rows, block.rows, start, lanes)
                limits = _let_in(limits, block.limits, start, lanes)

            def two_steps(cells, half):
                older, newer = cells
                step = group * GROUP + 2 * half
                older, first = diagonal(rows, limits, older, newer, step)
                newer, second = diagonal(rows, limits, newer, older, step + 1)
                seen = jax.tree.map(lambda a, b: jnp.stack([a, b]), first, second)
                return (older, newer), seen

            halves = jnp.arange(GROUP // 2)
            (older, newer), seen = jax.lax.scan(two_steps, (older, newer), halves)
            return (rows, limits, older, newer), seen

        return step_group

    return for_groups


def _let_in(held, new, start, lanes):
    if held is None:
        return None
    part = jax.lax.dynamic_slice(new, (0, start), (len(new), GROUP * lanes))
    return jax.lax.dynamic_update_slice(held, part, (0, start))
