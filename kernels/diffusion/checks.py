"""Argument checks shared by the diffusion kernels."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import floating, numeric, typed_key

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


def schedule_only(schedule):
    """Raises unless ``schedule`` is a ``NoiseSchedule``."""
    if not hasattr(schedule, "log_snr"):
        raise TypeError(
            "schedule must be a NoiseSchedule, got "
            f"{type(schedule).__name__}; see noise_schedule."
        )


def host_values(value):
    """Returns the value as NumPy, or None for a JAX array."""
    return None if isinstance(value, jax.Array) else np.asarray(value)


def step_number(name, t, num_steps):
    """Returns ``t`` as int32; a step known on the host must be in [0, T]."""
    numeric(**{name: t})
    known = host_values(t)
    dtype = t.dtype if known is None else known.dtype
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"{name} must hold integer steps, got {dtype}.")
    if known is not None and known.size:
        extreme = known.min() if known.min() < 0 else known.max()
        if not 0 <= extreme <= num_steps:
            raise ValueError(
                f"{name} must be in [0, {num_steps}], the steps of this schedule, got "
                f"{extreme}."
            )
    return jnp.asarray(t if known is None else known, jnp.int32)


def levels(steps, num_steps):
    """Returns the checked levels that a sampler visits, ``int32[n + 1]``."""
    numeric(steps=steps)
    known = host_values(steps)
    shape = steps.shape if known is None else known.shape
    if len(shape) != 1 or not shape[0]:
        raise ValueError(
            f"steps must be int[n + 1], the levels to visit, got shape {shape}; use "
            "diffusion_steps."
        )
    if known is not None and (np.diff(known) > 0).any():
        raise ValueError(
            f"steps must not increase, from noise to data, got {known.tolist()}."
        )
    return step_number("steps", steps, num_steps)


def determined(schedule, steps, prediction):
    """Raises if a noise prediction says nothing about the data at the first step."""
    known, signal = host_values(steps), schedule.signal
    on_device = isinstance(signal, jax.core.Tracer) or signal.ndim != 1
    if prediction != "noise" or known is None or on_device:
        return
    if np.asarray(signal)[known[0]] == 0:
        raise ValueError(
            "prediction must be 'v' or 'x0' for a sample that starts at step "
            f"{known[0]}, where the schedule has no signal, got 'noise'; such a "
            "network does not determine the data there."
        )


def one_step(name, t, num_steps):
    """Returns a single checked step as int32."""
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
    """Appends axes of length 1 to ``values`` so that it broadcasts against ``x``."""
    shape = jnp.shape(x)
    if values.shape != shape[: values.ndim]:
        raise ValueError(
            f"{name} must be a scalar or have the leading axes of {shape}, one entry "
            f"per example, got shape {values.shape}."
        )
    return values.reshape(values.shape + (1,) * (len(shape) - values.ndim))
