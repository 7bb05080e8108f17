"""Floating-point Laplace and Gaussian noise scaled by a carried sensitivity."""

import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.checks import (
    as_shape,
    not_negative,
    positive,
    typed_key,
)
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import wide, widened


def laplace_noise(key, shape, scale, dtype=jnp.float32):
    """Draws Laplace noise with density ``exp(-|z| / scale) / (2 scale)``.

    Numbers are drawn in at least float32 and then rounded to ``dtype``. In float32 they
    are at most 16.64 scales (24 log 2). The result is differentiable in ``scale``.

    Args:
      key: typed PRNG key.
      shape: shape of the result, a tuple of ints.
      scale: number >= 0 or ``float[]``, the mean of |z|. The standard deviation is √2
        times larger. 0 gives zeros; a negative array gives NaN.
      dtype: floating dtype of the result.

    Returns:
      ``dtype[shape]``.

    Raises:
      TypeError: for a legacy key.
      ValueError: if ``scale`` is a negative number.

    Example:
      >>> import jax
      >>> laplace_noise(jax.random.key(0), (2, 3), 1.5).shape
      (2, 3)
    """
    typed_key(key)
    not_negative(scale=scale)
    shape = as_shape("shape", shape)
    noise = portable.laplace(key, shape, wide(dtype))
    return (noise * _not_negative(scale, noise.dtype)).astype(dtype)


def gaussian_noise(key, shape, stddev, dtype=jnp.float32):
    """Draws Gaussian noise with mean 0 and standard deviation ``stddev``.

    Numbers are drawn in at least float32 and then rounded to ``dtype``. In float32 they
    are at most 5.5 standard deviations. The result is differentiable in ``stddev``.

    Args:
      key: typed PRNG key.
      shape: shape of the result, a tuple of ints.
      stddev: number >= 0 or ``float[]``. 0 gives zeros; a negative array gives NaN.
      dtype: floating dtype of the result.

    Returns:
      ``dtype[shape]``.

    Raises:
      TypeError: for a legacy key.
      ValueError: if ``stddev`` is a negative number.

    Example:
      >>> import jax
      >>> gaussian_noise(jax.random.key(0), (2, 1), 0.0, jnp.bfloat16)
      Array([[0],
             [0]], dtype=bfloat16)
    """
    typed_key(key)
    not_negative(stddev=stddev)
    shape = as_shape("shape", shape)
    noise = portable.normal(key, shape, wide(dtype))
    return (noise * _not_negative(stddev, noise.dtype)).astype(dtype)


def laplace_mechanism(key, bounded: BoundedValue, epsilon):
    """Adds Laplace noise of scale ``l1_sensitivity / epsilon``.

    It is ε-private in real arithmetic and meant for simulation: low-order bits of
    floating-point sums leak the value (Mironov 2012). For releases use
    ``grid_laplace_mechanism``.

    Args:
      key: typed PRNG key.
      bounded: value with its sensitivities. An L1 sensitivity of 0 adds no noise.
      epsilon: number > 0 or ``float[]``; infinity adds no noise.

    Returns:
      ``float[...]`` in the shape and dtype of the value, added in at least float32.

    Raises:
      TypeError: for a legacy key, or a value without sensitivities.
      ValueError: if ``epsilon`` is a number and not > 0.

    Example:
      >>> import jax
      >>> from jaxanon.kernels.mechanisms import clip_to_range
      >>> bounded = clip_to_range(jnp.array([0.5, 7.0]), 0.0, 1.0)
      >>> laplace_mechanism(jax.random.key(0), bounded, jnp.inf)
      Array([0.5, 1. ], dtype=float32)

    References:
      Dwork, McSherry, Nissim and Smith, Calibrating Noise to Sensitivity, TCC 2006.
    """
    positive(epsilon=epsilon)
    bounded_only(bounded=bounded)
    return _add(laplace_noise, key, bounded, bounded.l1_sensitivity / epsilon)


def gaussian_mechanism(key, bounded: BoundedValue, noise_multiplier):
    """Adds Gaussian noise of standard deviation ``noise_multiplier * l2_sensitivity``.

    Use dp-accounting to compute (ε, δ). The warning of ``laplace_mechanism`` about
    floating point also applies here.

    Args:
      key: typed PRNG key.
      bounded: value with its sensitivities.
      noise_multiplier: number >= 0 or ``float[]``.

    Returns:
      ``float[...]`` in the shape and dtype of the value, added in at least float32.

    Raises:
      TypeError: for a legacy key, or a value without sensitivities.
      ValueError: if ``noise_multiplier`` is a negative number.

    Example:
      >>> import jax
      >>> from jaxanon.kernels.mechanisms import clip_to_range
      >>> bounded = clip_to_range(jnp.array([0.5, 7.0]), 0.0, 1.0)
      >>> gaussian_mechanism(jax.random.key(0), bounded, 0.0)
      Array([0.5, 1. ], dtype=float32)
    """
    not_negative(noise_multiplier=noise_multiplier)
    bounded_only(bounded=bounded)
    return _add(gaussian_noise, key, bounded, noise_multiplier * bounded.l2_sensitivity)


def _not_negative(scale, dtype):
    """Replaces negative scales by NaN, so that an invalid ε is visible."""
    scale = jnp.asarray(scale, dtype)
    return jnp.where(scale >= 0, scale, jnp.nan)


def _add(draw, key, bounded, scale):
    value = jnp.asarray(bounded.value)
    noise = draw(key, value.shape, scale, wide(value.dtype))
    return (widened(value) + noise).astype(value.dtype)
