"""Arrays brought near 1 by a power of two, lest their squares overflow."""

import jax
import jax.numpy as jnp


def near_one(x, axis):
    """``x`` times the power of two that puts its largest magnitude into [0.5, 1).

    Exact, and a constant to gradients. Zeros stay zeros.
    """
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=axis, keepdims=True))
    _, exponent = jnp.frexp(largest)
    half = exponent // 2  # In two steps: 2^-127 alone would be denormal, so 0.
    one = jnp.ones_like(largest)
    return x * jnp.ldexp(one, -half) * jnp.ldexp(one, half - exponent)
