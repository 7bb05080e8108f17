"""K-norm mechanism for vectors with bounded change in L2 or L∞."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import one_of, positive, typed_key
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import wide, widened

NORMS = ("l2", "linf")


def norm_mechanism(key, bounded: BoundedValue, epsilon, *, norm: str):
    """Adds noise of density ``∝ exp(-ε ‖z‖ / sensitivity)``.

    It is ε-private in real arithmetic: for neighbours x and x' the densities of a
    release y differ by a factor of ``exp(ε (‖y - x'‖ - ‖y - x‖) / sensitivity) <=
    e^ε``, by the triangle inequality. With the L1 norm it is ``laplace_mechanism``.
    Choose the norm with the tightest bound. For n numbers clipped to a range, L∞ noise
    is about half as large as Laplace noise. For a vector clipped to a ball, L2 noise is
    √n times smaller.

    The norm of the noise has a Gamma distribution with shape n and scale
    ``sensitivity / ε``; its direction is uniform on the norm's sphere. The warning of
    ``laplace_mechanism`` about floating point also applies here.

    Args:
      key: typed PRNG key.
      bounded: value with its sensitivities; the whole array is one vector. A
        sensitivity of 0 adds no noise.
      epsilon: number > 0 or ``float[]``; infinity adds no noise.
      norm: ``"l2"`` or ``"linf"``, the norm of the sensitivity.

    Returns:
      ``float[...]`` in the shape and dtype of the value, added in at least float32.

    Raises:
      TypeError: for a legacy key, or a value without sensitivities.
      ValueError: if ``epsilon`` is a number and not > 0, or for another norm.

    Example:
      >>> from jaxanon.kernels.mechanisms import clip_to_range
      >>> bounded = clip_to_range(jnp.array([0.5, 7.0]), 0.0, 1.0)
      >>> norm_mechanism(jax.random.key(0), bounded, jnp.inf, norm="linf")
      Array([0.5, 1. ], dtype=float32)

    References:
      Hardt and Talwar, On the Geometry of Differential Privacy, STOC 2010, section 4;
      Chaudhuri, Monteleoni and Sarwate, Differentially Private Empirical Risk
      Minimization, JMLR 2011, for L2.
    """
    typed_key(key)
    positive(epsilon=epsilon)
    bounded_only(bounded=bounded)
    one_of("norm", norm, NORMS)
    value = jnp.asarray(bounded.value)
    dtype = wide(value.dtype)
    sensitivity = getattr(bounded, f"{norm}_sensitivity")
    scale = jnp.asarray(sensitivity / epsilon, dtype)
    scale = jnp.where(scale >= 0, scale, jnp.nan)  # Makes an invalid ε visible.
    length_key, direction_key = jax.random.split(key)
    length = jax.random.gamma(length_key, jnp.asarray(value.size, dtype), (), dtype)
    direction = _DIRECTIONS[norm](direction_key, value.shape, dtype)
    return (widened(value) + scale * length * direction).astype(value.dtype)


def _on_ball(key, shape, dtype):
    """Draws a uniform direction on the L2 sphere; an empty one for an empty shape."""
    z = jax.random.normal(key, shape, dtype)
    return z / jnp.maximum(jnp.linalg.norm(z.reshape(-1)), jnp.finfo(dtype).tiny)


def _on_cube(key, shape, dtype):
    """Draws a uniform point on the cube's surface: a face and a position on it."""
    face_key, place_key = jax.random.split(key)
    z = jax.random.uniform(place_key, shape, dtype, -1, 1)
    if z.size == 0:
        return z
    face = jax.random.randint(face_key, (), 0, 2 * z.size)
    side = jnp.where(face % 2 == 0, 1, -1).astype(dtype)
    return z.reshape(-1).at[face // 2].set(side).reshape(shape)


_DIRECTIONS = {"l2": _on_ball, "linf": _on_cube}
