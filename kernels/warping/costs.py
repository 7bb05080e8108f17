"""Local costs: how far two samples are apart."""

import jax.numpy as jnp

NAMES = ("squared_euclidean", "euclidean", "absolute")


def local_cost(name):
    """``(channels of float[n], channels of float[n]) -> float[n]``."""
    part = jnp.abs if name == "absolute" else jnp.square

    def cost(a, b):
        total = part(a[0] - b[0])
        for channel in range(1, len(a)):  # One loop for XLA; a sum over an axis is not.
            total = total + part(a[channel] - b[channel])
        return root(total) if name == "euclidean" else total

    return cost


def root(x):
    """Square root whose gradient at 0 is 0, not infinite."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), x)
