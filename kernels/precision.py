"""Precision of norms, sums and noise: at least float32."""

import jax.numpy as jnp


def wide(*dtypes):
    """Returns float64 if it is among the types, else float32.

    Example:
      >>> wide(jnp.bfloat16), wide(jnp.int32), wide(jnp.float16, jnp.float64)
      (dtype('float32'), dtype('float32'), dtype('float64'))
      >>> wide(float)
      dtype('float64')
    """
    # Promotion is unsuitable: ``float`` is weakly typed, and strict promotion raises.
    double = any(jnp.dtype(dtype) == jnp.float64 for dtype in dtypes)
    return jnp.dtype(jnp.float64 if double else jnp.float32)


def widened(x):
    """Casts ``x`` to at least float32; float32 and float64 are unchanged.

    Example:
      >>> widened(jnp.ones(1, jnp.float16)).dtype
      dtype('float32')
    """
    return x.astype(wide(x.dtype))
