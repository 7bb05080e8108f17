"""Argument checks of recordings and their lengths."""

import jax.numpy as jnp

from jaxanon.kernels.checks import as_array


def with_time(x, name):
    """Returns ``x`` checked as ``float[..., time, channels]``."""
    x = as_array(name, x)
    if x.ndim < 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(
            f"{name} must be float[..., time, channels], got shape {x.shape} of "
            f"{x.dtype}; use {name}[..., None] for one channel."
        )
    return x


def as_lengths(lengths, x):
    """Returns ``int32[...]``, one length per recording of ``x``."""
    lengths = as_array("lengths", lengths)
    if not jnp.issubdtype(lengths.dtype, jnp.integer):
        raise TypeError(f"lengths must be integers, got {lengths.dtype}.")
    if lengths.shape != x.shape[:-2]:
        raise ValueError(
            f"lengths must have one entry per recording, shape {x.shape[:-2]}, got "
            f"{lengths.shape}."
        )
    return jnp.clip(lengths.astype(jnp.int32), 0, x.shape[-2])


def real_samples(lengths, x):
    """Returns ``bool[..., time]``, False for padding; all True for lengths None."""
    if lengths is None:
        return jnp.ones(x.shape[:-1], bool)
    place = jnp.arange(x.shape[-2]).reshape((1,) * (x.ndim - 2) + (-1,))
    return place < as_lengths(lengths, x)[..., None]
