"""What every function here asks of a recording and of its length."""

import jax.numpy as jnp


def with_time(x, name):
    """``x`` as ``float[..., time, channels]``."""
    x = jnp.asarray(x)
    if x.ndim < 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(
            f"{name} must be float[..., time, channels], got shape {x.shape} of "
            f"{x.dtype}; one channel is {name}[..., None]."
        )
    return x


def as_lengths(lengths, x):
    """``int32[...]``, one for each recording of ``x``."""
    lengths = jnp.asarray(lengths)
    if not jnp.issubdtype(lengths.dtype, jnp.integer):
        raise TypeError(f"lengths must be integers, got {lengths.dtype}.")
    if lengths.shape != x.shape[:-2]:
        raise ValueError(
            f"lengths must have one entry per recording, shape {x.shape[:-2]}, got "
            f"{lengths.shape}."
        )
    return jnp.clip(lengths.astype(jnp.int32), 0, x.shape[-2])


def real_samples(lengths, x):
    """``bool[..., time]``, True where a sample is no padding; None is no padding."""
    if lengths is None:
        return jnp.ones(x.shape[:-1], bool)
    place = jnp.arange(x.shape[-2]).reshape((1,) * (x.ndim - 2) + (-1,))
    return place < as_lengths(lengths, x)[..., None]
