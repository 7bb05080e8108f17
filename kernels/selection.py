"""Sums of order statistics per column, without sorting on a CPU."""

import functools
import operator

import jax
import jax.numpy as jnp

from jaxanon.kernels.portable import by_platform
from jaxanon.kernels.sorting import in_order, integers, restored

SMALL = 1 << 14  # Array size up to which sorting is as fast and compiles smaller.
WIDTH = 256  # Columns searched at a time, so that they stay in the cache.
UNROLLED = 8  # Rows added at once; XLA's sum over rows adds one row at a time.


@jax.custom_jvp
def sum_of_places(x, first, last):
    """Sums the sorted entries ``first <= index < last`` along axis 0.

    On a CPU, XLA takes more than twice as long to sort columns as to search them for
    two order statistics.

    Args:
      x: ``float32[N, ...]`` or ``float64[N, ...]`` without NaN.
      first, last: ``int[]`` in [0, N]; may be traced. The sum is 0 unless
        ``first < last``.

    Returns:
      ``float[...]``. The order of summation differs between platforms, so the last
      digits may differ.

    Example:
      >>> sum_of_places(jnp.array([[4.0], [-1.0], [2.0], [9.0]]), 1, 3)
      Array([6.], dtype=float32)
    """
    on_cpu = by_sort if x.size <= SMALL else by_search
    return by_platform(x, first, last, cpu=on_cpu, default=by_sort)


@sum_of_places.defjvp
def _sum_of_places_jvp(primals, tangents):
    x, first, last = primals
    tangent = jax.jvp(lambda x: by_sort(x, first, last), (x,), tangents[:1])[1]
    return sum_of_places(x, first, last), tangent


def by_sort(x, first, last):
    """Computes the sum from sorted columns."""
    ascending = in_order(jnp.moveaxis(x, 0, -1))
    place = jnp.arange(len(x))
    kept = (place >= first) & (place < last)
    return jnp.sum(jnp.where(kept, ascending, 0), axis=-1)


@jax.jit  # Compiled once even if called outside jit, where a loop would be retraced.
def by_search(x, first, last):
    """Computes the sum between two order statistics, each found bit by bit."""
    columns = integers(x.reshape(len(x), -1))
    num = columns.shape[1]
    width = min(WIDTH, num)
    behind = jnp.iinfo(columns.dtype).max  # Sorts after infinity: never counted.
    rows, more = (0, -len(x) % UNROLLED), (0, -num % width)
    columns = jnp.pad(columns, (rows, (0, 0)), constant_values=behind)
    columns = jnp.pad(columns, ((0, 0), more))
    blocks = columns.reshape(UNROLLED, -1, columns.shape[1] // width, width)
    one = lambda block: _sum_of_block(block, first, last, x.dtype)
    total = jax.lax.map(one, jnp.moveaxis(blocks, 2, 0))
    return jnp.where(first < last, total.reshape(-1)[:num].reshape(x.shape[1:]), 0)


def _sum_of_block(block, first, last, dtype):
    """Returns the sum for integers ``[UNROLLED, rows, columns]``."""
    bits = 8 * block.dtype.itemsize
    low = _at_place(block, first, bits)
    # If the next value suffices, the search loops over zero bits: a condition cannot
    # be mapped over a mesh.
    near = last - first <= 2
    searched = _at_place(block, last - 1, jnp.where(near, 0, bits))
    high = jnp.where(near, _next(block, low, last - 1), searched)
    between = (block > low) & (block < high)
    total = _sum(jnp.where(between, restored(block, dtype), 0))
    num_low = _count(block <= low) - first
    num_high = last - _count(block < high)
    low_value, high_value = restored(low, dtype), restored(high, dtype)
    ends = low_value * num_low + high_value * num_high
    return total + jnp.where(low < high, ends, low_value * (last - first))


def _at_place(block, place, num_bits):
    """Finds the first ``num_bits`` bits of the entry at sorted index ``place``."""
    one, last_bit = jnp.ones((), block.dtype), 8 * block.dtype.itemsize - 1

    def with_bit(i, found):
        larger = found + (one << (last_bit - i))  # The first addition flips the sign.
        return jnp.where(_count(block < larger) <= place, larger, found)

    # Derived from both arguments, so that over a mesh it varies as they do.
    nought = block[:1, :1] & jnp.asarray(0 * place, block.dtype)
    least = nought | jnp.iinfo(block.dtype).min
    return jax.lax.fori_loop(0, num_bits, with_bit, least)


def _next(block, low, place):
    """Finds the entry at index ``place``, given ``low`` at ``place`` or one before."""
    larger = jnp.where(block > low, block, jnp.iinfo(block.dtype).max)
    least = jnp.min(functools.reduce(jnp.minimum, larger), axis=0, keepdims=True)
    return jnp.where(_count(block <= low) > place, low, least[None])


def _count(true):
    return _sum(true.astype(jnp.int32))


def _sum(values):
    """Sums ``[UNROLLED, rows, columns]`` to ``[1, 1, columns]``."""
    return jnp.sum(functools.reduce(operator.add, values), axis=0, keepdims=True)[None]
