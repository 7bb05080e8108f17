"""The clipped sum on a GPU in one pass over its memory, written with Pallas.

The rows are taken in chunks that stay in the GPU's cache. Step c reads chunk c + 1 from
memory, for its norms, and chunk c once more from the cache, for the sum, in one kernel;
between two steps the norms become what each row is multiplied by.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxanon.kernels.clipping import factors
from jaxanon.kernels.precision import wide

CHUNK_BYTES = 16 << 20  # Two chunks have to fit into the cache; an H200 has 50 MiB.
MOST_COLUMNS = 2048  # Numbers of a row that one program holds.
PROGRAMS = 512  # About how many shall run; few columns are made up for by more rows.


def _sum_of_rows(leaves, group_of, bounds, weights, *, interpret):
    """``factors.sum_of_rows`` of leaves ``[N, ...]``, in one pass over them."""
    num_rows = len(leaves[0])
    if any(leaf.size == 0 for leaf in leaves):
        return factors.sum_of_rows(leaves, group_of, bounds, weights)
    tables = [leaf.reshape(num_rows, -1) for leaf in leaves]
    row_bytes = sum(table.nbytes for table in tables) // num_rows
    chunk = min(max(CHUNK_BYTES // row_bytes, 1), num_rows)
    num_chunks = math.ceil(num_rows / chunk)
    padding = (0, num_chunks * chunk - num_rows)
    weights = jnp.pad(weights, padding).reshape(num_chunks, chunk)
    step = functools.partial(_step, chunk=chunk, interpret=interpret)

    def scales(squares, weights):
        """What each row of a chunk is multiplied by, from its leaves' squares."""
        sums = [jnp.zeros(chunk, jnp.float32)] * len(bounds)
        for square, group in zip(squares, group_of, strict=True):
            sums[group] = sums[group] + square
        parts = [factors.scale(*pair) for pair in zip(sums, bounds, strict=True)]
        return [part.factor * weights for part in parts]

    def advance(totals, scales, index):
        pairs = [
            step(table, scales[group].astype(total.dtype), index, total)
            for table, group, total in zip(tables, group_of, totals, strict=True)
        ]
        return [total for total, _ in pairs], [squares for _, squares in pairs]

    def body(carry, inputs):
        totals, squares = carry
        index, weights = inputs
        return advance(totals, scales(squares, weights), index), None

    # Before the first chunk there is none to add, and its norms are all that is made.
    nothing = [jnp.zeros(chunk, jnp.float32)] * len(bounds)
    carry = advance([_zeros(table, chunk) for table in tables], nothing, jnp.int32(-1))
    index = jnp.arange(num_chunks, dtype=jnp.int32)
    (totals, _), _ = jax.lax.scan(body, carry, (index, weights))
    shapes = [leaf.shape[1:] for leaf in leaves]
    pairs = zip(totals, shapes, strict=True)
    return [jnp.sum(total, axis=0).reshape(shape) for total, shape in pairs]


def _layout(table, chunk):
    """Columns of a program, programs across, programs down, rows of each."""
    columns = min(MOST_COLUMNS, max(128, pl.next_power_of_2(table.shape[1])))
    across = pl.cdiv(table.shape[1], columns)
    down = min(chunk, pl.cdiv(PROGRAMS, across))
    rows = pl.cdiv(chunk, down)
    return columns, across, pl.cdiv(chunk, rows), rows


def _zeros(table, chunk):
    """A partial sum for each of the programs down, to be added at the end."""
    _, _, down, _ = _layout(table, chunk)
    return jnp.zeros((down, table.shape[1]), wide(table.dtype))


def _step(table, scale, index, total, *, chunk, interpret):
    """Adds chunk ``index`` to ``total``; gives the squared norms of the one after."""
    columns, across, down, rows = _layout(table, chunk)
    like = functools.partial(_shape, (table, scale, index, total), dtype=total.dtype)
    total, squares = pl.pallas_call(
        functools.partial(
            _kernel, shape=table.shape, columns=columns, rows=rows, chunk=chunk
        ),
        out_shape=(like(total.shape), like((across, down * rows))),
        grid=(down, across),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)] * 4,
        out_specs=(pl.BlockSpec(memory_space=pl.ANY),) * 2,
        input_output_aliases={3: 0},
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=2),
        interpret=interpret,
        name="clip_and_add",
    )(table, scale, index[None], total)
    return total, jnp.sum(squares, axis=0)[:chunk]


def _kernel(x, scale, index, total, out, squares, *, shape, columns, rows, chunk):
    """Some columns of some rows of a chunk, and the same of the chunk after it."""
    num_rows, num_columns = shape
    down, across = pl.program_id(0), pl.program_id(1)
    start = across * columns
    inside = start + jnp.arange(columns, dtype=jnp.int32) < num_columns
    place = pl.ds(start, columns)
    begin = index[0] * chunk

    def load(row):
        # Rows past the end weigh nothing: leaving them out spares the memory.
        real = inside & (row >= 0) & (row < num_rows)
        row = jnp.clip(row, 0, num_rows - 1)
        return triton.load(x.at[row, place], mask=real, other=0).astype(out.dtype)

    def body(k, sums):
        at = down * rows + k
        within = at < chunk
        factor = triton.load(scale.at[jnp.minimum(at, chunk - 1)])
        used = within & (factor > 0)
        here = jnp.where(used, begin + at, -1)  # A row left out may hold anything.
        after = load(jnp.where(within, begin + chunk + at, -1))
        triton.store(squares.at[across, at], jnp.sum(after * after))
        return sums + factor * load(here)

    before = triton.load(total.at[down, place], mask=inside, other=0)
    sums = jax.lax.fori_loop(0, rows, body, before)
    triton.store(out.at[down, place], sums, mask=inside)


def _shape(inputs, shape, dtype):
    """An output that varies over a mesh wherever one of the inputs does."""
    return jax.eval_shape(
        lambda *leaves: (
            jnp.zeros(shape, dtype)
            + sum(jnp.ravel(leaf)[0].astype(dtype) for leaf in leaves)
        ),
        *inputs,
    )


def _differentiable(interpret):
    """Forwards by Pallas; derivatives are those of the XLA version."""
    run = jax.custom_jvp(
        functools.partial(_sum_of_rows, interpret=interpret), nondiff_argnums=(1,)
    )

    @run.defjvp
    def _(group_of, primals, tangents):
        plain = lambda leaves, bounds, weights: factors.sum_of_rows(
            leaves, group_of, bounds, weights
        )
        out, tangent = jax.jvp(plain, primals, tangents)
        return out, tangent

    return run


run = _differentiable(interpret=False)
interpreted = _differentiable(interpret=True)
