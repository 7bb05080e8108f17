"""Exact rescaling by powers of two, so that squares neither overflow nor underflow."""

import jax
import jax.numpy as jnp


def near_one(x, axis):
    """Scales ``x`` by a power of two so that its largest magnitude is in [0.5, 1).

    The scaling is exact, and gradients treat it as a constant. Zeros stay zeros.
    """
    return scaled(x, axis)[0]


def scaled(x, axis):
    """Returns ``near_one`` and two powers of two whose product inverts the scaling.

    The powers keep the reduced axes with length 1. There are two because their
    product may overflow.
    """
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=axis, keepdims=True))
    _, exponent = jnp.frexp(largest)
    half = exponent // 2  # In two steps: 2^-127 alone would be denormal, so 0.
    power = lambda exponent: jnp.ldexp(jnp.ones_like(largest), exponent)
    near = x * power(-half) * power(half - exponent)
    return near, (power(half), power(exponent - half))
