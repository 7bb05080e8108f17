"""Noise for a vector whose change is bounded in L2 or L∞: the K-norm mechanism."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import one_of, positive, typed_key
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import wide, widened

NORMS = ("l2", "linf")


def norm_mechanism(key, bounded: BoundedValue, epsilon, *, norm: str):
    """Adds noise of density ``∝ exp(-ε ‖z‖ / sensitivity)``: ε-privacy on paper.

    A value x moves to x' by at most the sensitivity, so that the densities of any
    release y differ by the factor ``exp(ε (‖y - x'‖ - ‖y - x‖) / sensitivity) <= e^ε``,
    by the triangle inequality. With the L1 norm this is ``laplace_mechanism``. It is
    the better one where the bound in its norm is tight: for n numbers clipped to a
    range, L∞ noise is about half as large as Laplace noise; for a vector clipped to a
    ball, L2 noise is √n times smaller.

    The length of the noise follows a Gamma distribution of shape n and scale
    ``sensitivity / ε``, its direction is uniform on the norm's sphere. For simulation:
    the warning of ``laplace_mechanism`` about floating point holds here too.

    Args:
      key: a typed PRNG key.
      bounded: a value with its sensitivities; the whole array is one vector. A
        sensitivity of 0 gets no noise.
      epsilon: a number > 0 or ``float[]``; infinity adds nothing.
      norm: ``"l2"`` or ``"linf"``, whose sensitivity counts.

    Returns:
      ``float[...]`` of the shape and dtype of the value; added in float32 or wider.

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
    scale = jnp.where(scale >= 0, scale, jnp.nan)  # A wrong ε must not go unseen.
    length_key, direction_key = jax.random.split(key)
    length = jax.random.gamma(length_key, jnp.asarray(value.size, dtype), (), dtype)
    direction = _DIRECTIONS[norm](direction_key, value.shape, dtype)
    return (widened(value) + scale * length * direction).astype(value.dtype)


def _on_ball(key, shape, dtype):
    """Uniform on the sphere; of nothing, nothing."""
    z = jax.random.normal(key, shape, dtype)
    return z / jnp.maximum(jnp.linalg.norm(z.reshape(-1)), jnp.finfo(dtype).tiny)


def _on_cube(key, shape, dtype):
    """Uniform on the cube's surface: a face, and where on it."""
    face_key, place_key = jax.random.split(key)
    z = jax.random.uniform(place_key, shape, dtype, -1, 1)
    if z.size == 0:
        return z
    face = jax.random.randint(face_key, (), 0, 2 * z.size)
    side = jnp.where(face % 2 == 0, 1, -1).astype(dtype)
    return z.reshape(-1).at[face // 2].set(side).reshape(shape)


_DIRECTIONS = {"l2": _on_ball, "linf": _on_cube}
