"""Scaling and adding noise in one pass, the random bits made where they are used.

Written with Pallas. The numbers are those of ``jax.random.normal`` for the same key, so
that the choice of program changes no result by more than rounding.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxanon.kernels.clipping import factors
from jaxanon.kernels.precision import wide

COLUMNS = 1024  # Numbers of a row that one program makes noise for.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
ONE = np.float32(1).view(np.uint32)


def threefry(high, low, *, key):
    """``uint32`` bits for the counters ``high`` and ``low``, by Threefry-2x32-20.

    References:
      Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
    """
    keys = (*key, key[0] ^ key[1] ^ PARITY)
    high, low = high + keys[0], low + keys[1]
    for turn in range(5):
        for rotation in ROTATIONS[turn % 2]:
            high = high + low
            low = (low << np.uint32(rotation)) | (low >> np.uint32(32 - rotation))
            low = low ^ high
        high = high + keys[(turn + 1) % 3]
        low = low + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return high ^ low


def row_start(row, num_columns):
    """The two words of ``row * num_columns``: how many numbers earlier rows take.

    32-bit words are multiplied half by half, as by hand; no step overflows.
    """
    half = np.uint32(0xFFFF)
    upper, lower = np.uint32(num_columns >> 16), np.uint32(num_columns & 0xFFFF)
    row = row.astype(jnp.uint32)
    above, below = row >> np.uint32(16), row & half
    middle = above * lower + (below * lower >> np.uint32(16))
    other = below * upper + (middle & half)
    high = above * upper + (middle >> np.uint32(16)) + (other >> np.uint32(16))
    return high, row * np.uint32(num_columns)


def counters(high, low, offset):
    """The two words of a 64-bit counter, and ``offset`` more."""
    lower = low + offset.astype(jnp.uint32)
    return high + (lower < low).astype(jnp.uint32), lower


def normal(bits):
    """Standard normal numbers, from 23 bits of each ``uint32``."""
    mantissa = jax.lax.bitcast_convert_type((bits >> np.uint32(9)) | ONE, jnp.float32)
    least = np.nextafter(np.float32(-1), np.float32(0))
    uniform = (mantissa - 1) * (np.float32(1) - least) + least
    return np.float32(np.sqrt(2)) * jax.lax.erf_inv(jnp.maximum(uniform, least))


def _noisy(key, leaf, stddev, scale, *, interpret):
    """``factors.noisy``, in one pass over ``leaf``."""
    _check(key, leaf)
    if not leaf.size:
        return leaf
    rows = len(leaf) if scale is not None else 1
    table = leaf.reshape(rows, -1)
    # A sum is one row, and multiplied by one.
    factor = jnp.ones(1) if scale is None else scale.factor
    factor = factor.astype(jnp.float32)
    words = jax.random.key_data(key)
    across = pl.cdiv(table.shape[1], COLUMNS)
    inputs = (words, factor, stddev.astype(jnp.float32)[None], table)
    plain = lambda: factors.noisy(key, leaf, stddev, scale).reshape(table.shape)
    out = pl.pallas_call(
        functools.partial(_kernel, num_columns=table.shape[1], across=across),
        out_shape=jax.eval_shape(plain),
        grid=(rows * across,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)] * len(inputs),
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
        interpret=interpret,
        name="scale_and_add_noise",
    )(*inputs)
    return out.reshape(leaf.shape)


def _kernel(words, factor, stddev, table, out, *, num_columns, across):
    """Some columns of one row."""
    program = pl.program_id(0)
    row, start = program // across, program % across * COLUMNS
    place = pl.ds(start, COLUMNS)
    column = start + jnp.arange(COLUMNS, dtype=jnp.int32)
    inside = column < num_columns
    first = row_start(row, num_columns)
    bits = threefry(*counters(*first, column), key=(words[0], words[1]))
    noise = stddev[0] * normal(bits)
    by = factor[row]
    x = triton.load(table.at[row, place], mask=inside & (by > 0), other=0)
    sums = by * x.astype(jnp.float32) + noise
    triton.store(out.at[row, place], sums.astype(out.dtype), mask=inside)


def _check(key, leaf):
    if str(jax.random.key_impl(key)) != "threefry2x32":
        raise ValueError(
            "implementation 'pallas' makes noise by threefry2x32, got a key of "
            f"{jax.random.key_impl(key)}; use jax.random.key(seed, impl='threefry2x32')"
            " or implementation='xla'."
        )
    if wide(leaf.dtype) != jnp.float32:
        raise ValueError(
            f"implementation 'pallas' makes float32 noise, got rows of {leaf.dtype}; "
            "use implementation='xla'."
        )


def _differentiable(interpret):
    """Forwards by Pallas; derivatives are those of the XLA version."""
    program = jax.custom_jvp(functools.partial(_noisy, interpret=interpret))
    program.defjvp(lambda primals, tangents: jax.jvp(factors.noisy, primals, tangents))
    return program


run = _differentiable(interpret=False)
interpreted = _differentiable(interpret=True)
