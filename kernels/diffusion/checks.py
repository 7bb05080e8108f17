"""What all of the folder refuses, with the value and the remedy in the message."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import floating, typed_key

PREDICTIONS = ("noise", "x0", "v")


def one_key(key):
    """Raises unless ``key`` is one typed PRNG key."""
    typed_key(key)
    if key.shape:
        raise ValueError(
            f"key must be a single key, got shape {key.shape}; use jax.vmap for many."
        )


def alike(**arrays):
    """Raises unless every named array holds floats and has the shape of the first."""
    floating(**arrays)
    first = next(iter(arrays))
    shape = jnp.shape(arrays[first])
    for name, array in arrays.items():
        if jnp.shape(array) != shape:
            raise ValueError(
                f"{name} must have the shape of {first}, {shape}, got "
                f"{jnp.shape(array)}."
            )


def host_values(value):
    """As NumPy, if the value is known without asking a device; else None."""
    return None if isinstance(value, jax.Array) else np.asarray(value)


def step_number(name, t, num_steps):
    """``t`` as int32; a step known on the host must be in [0, T]."""
    known = host_values(t)
    dtype = t.dtype if known is None else known.dtype
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"{name} must hold whole steps, got {dtype}.")
    if known is not None and known.size:
        worst = known.min() if known.min() < 0 else known.max()
        if not 0 <= worst <= num_steps:
            raise ValueError(
                f"{name} must be in [0, {num_steps}], the steps of this schedule, got "
                f"{worst}."
            )
    return jnp.asarray(t if known is None else known, jnp.int32)


def levels(steps, num_steps):
    """The levels that a sampler visits, checked, as ``int32[n + 1]``."""
    known = host_values(steps)
    shape = steps.shape if known is None else known.shape
    if len(shape) != 1 or not shape[0]:
        raise ValueError(
            f"steps must be int[n + 1], the levels to visit, got shape {shape}; "
            "diffusion_steps makes them."
        )
    if known is not None and (np.diff(known) > 0).any():
        raise ValueError(
            f"steps must not rise, from noise to data, got {known.tolist()}."
        )
    return step_number("steps", steps, num_steps)


def one_step(name, t, num_steps):
    """The same for a single step."""
    t = step_number(name, t, num_steps)
    if t.shape:
        raise ValueError(
            f"{name} must be a single step, got shape {t.shape}; use jax.vmap for many."
        )
    return t


def falling(t, to):
    """Raises if ``to`` is known on the host to be above ``t``."""
    above, below = host_values(t), host_values(to)
    if above is None or below is None:
        return
    if np.any(np.asarray(below) > np.asarray(above)):
        raise ValueError(
            f"to must be <= t, towards clean data, got to {below} and t {above}."
        )


def per_example(name, values, x):
    """``values`` with ones appended to its shape, so that it multiplies ``x``."""
    shape = jnp.shape(x)
    if values.shape != shape[: values.ndim]:
        raise ValueError(
            f"{name} must be a single number or have the leading axes of {shape}, one "
            f"for each example, got shape {values.shape}."
        )
    return values.reshape(values.shape + (1,) * (len(shape) - values.ndim))
