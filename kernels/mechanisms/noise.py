"""Laplace and Gaussian noise, in floating point, scaled by a carried sensitivity."""

import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.checks import not_negative, positive, typed_key
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import wide, widened


def laplace_noise(key, shape, scale, dtype=jnp.float32):
    """Independent Laplace numbers: density ``exp(-|z| / scale) / (2 scale)``.

    Drawn in float32, or float64 if asked for, and then rounded to ``dtype``. In float32
    no number is larger than 16.64 scales, 24 log 2. Differentiable in ``scale``.

    Args:
      key: a typed PRNG key.
      shape: of the result; a tuple of ints.
      scale: a number >= 0, or ``float[]``; the mean of |z|, not its deviation, which
        is √2 times larger. 0 gives zeros, a negative array NaN.
      dtype: of the result, a floating one.

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
    noise = portable.laplace(key, shape, wide(dtype))
    return (noise * _not_negative(scale, noise.dtype)).astype(dtype)


def gaussian_noise(key, shape, stddev, dtype=jnp.float32):
    """Independent Gaussian numbers of mean 0 and standard deviation ``stddev``.

    Drawn in float32, or float64 if asked for, and then rounded to ``dtype``. In float32
    no number is larger than 5.5 deviations. Differentiable in ``stddev``.

    Args:
      key: a typed PRNG key.
      shape: of the result; a tuple of ints.
      stddev: a number >= 0, or ``float[]``. 0 gives zeros, a negative array NaN.
      dtype: of the result, a floating one.

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
    noise = portable.normal(key, shape, wide(dtype))
    return (noise * _not_negative(stddev, noise.dtype)).astype(dtype)


def laplace_mechanism(key, bounded: BoundedValue, epsilon):
    """Adds Laplace noise of scale ``l1_sensitivity / epsilon``: ε-privacy on paper.

    For simulation. The bits of a floating-point sum betray the number under the noise
    (Mironov 2012); release by ``grid_laplace_mechanism``.

    Args:
      key: a typed PRNG key.
      bounded: a value with its sensitivities; an L1 sensitivity of 0 gets no noise.
      epsilon: a number > 0 or ``float[]``; infinity adds nothing.

    Returns:
      ``float[...]`` of the shape and dtype of the value; added in float32 or wider.

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
    """Adds Gaussian noise of deviation ``noise_multiplier * l2_sensitivity``.

    What (ε, δ) this buys is an accountant's to say (dp-accounting). The warning of
    ``laplace_mechanism`` about floating point holds here too.

    Args:
      key: a typed PRNG key.
      bounded: a value with its sensitivities.
      noise_multiplier: a number >= 0 or ``float[]``.

    Returns:
      ``float[...]`` of the shape and dtype of the value; added in float32 or wider.

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
    """NaN for what is negative, lest a wrong ε go unseen in what is released."""
    scale = jnp.asarray(scale, dtype)
    return jnp.where(scale >= 0, scale, jnp.nan)


def _add(draw, key, bounded, scale):
    value = jnp.asarray(bounded.value)
    noise = draw(key, value.shape, scale, wide(value.dtype))
    return (widened(value) + noise).astype(value.dtype)
