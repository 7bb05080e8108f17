"""Arrays brought near 1 by a power of two, lest their squares overflow or vanish."""

import jax
import jax.numpy as jnp


def near_one(x, axis):
    """``x`` times the power of two that puts its largest magnitude into [0.5, 1).

    Exact, and a constant to gradients. Zeros stay zeros.
    """
    return scaled(x, axis)[0]


def scaled(x, axis):
    """``near_one``, and two powers of two whose product undoes it.

    The powers keep the reduced axes, of length 1. They are two, for their product may
    be more than a float holds.
    """
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=axis, keepdims=True))
    _, exponent = jnp.frexp(largest)
    half = exponent // 2  # In two steps: 2^-127 alone would be denormal, so 0.
    power = lambda exponent: jnp.ldexp(jnp.ones_like(largest), exponent)
    near = x * power(-half) * power(half - exponent)
    return near, (power(half), power(exponent - half))
