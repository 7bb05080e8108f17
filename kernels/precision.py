"""The precision that norms, sums and noise are computed in: float32 at least."""

import jax.numpy as jnp


def wide(*dtypes):
    """float32, or float64 if that is among the types; of none, float32.

    Example:
      >>> wide(jnp.bfloat16), wide(jnp.int32), wide(jnp.float16, jnp.float64)
      (dtype('float32'), dtype('float32'), dtype('float64'))
      >>> wide(float)
      dtype('float64')
    """
    # Not by promotion: the type ``float`` is a weak one, and strict promotion refuses.
    double = any(jnp.dtype(dtype) == jnp.float64 for dtype in dtypes)
    return jnp.dtype(jnp.float64 if double else jnp.float32)


def widened(x):
    """``x`` in that precision; float32 and float64 as they are.

    Example:
      >>> widened(jnp.ones(1, jnp.float16)).dtype
      dtype('float32')
    """
    return x.astype(wide(x.dtype))
