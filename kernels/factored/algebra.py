"""Sums, norms and inner products of updates from their factors."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import Factors
from jaxanon.kernels.precision import wide


def weighted_sum(factors: Factors, weights) -> jax.Array:
    """Computes ``Σ_c weights[c] inputs[c]ᵀ @ cotangents[c]`` as one matrix product.

    Args:
      factors: ``Factors`` with a leading ``clients`` axis.
      weights: ``float[clients]``; 0 excludes a client, whose rows must still be finite.

    Returns:
      ``float[d_in, d_out]`` in the dtype of the cotangents, summed in at least float32.

    Raises:
      ValueError: if the factors lack a clients axis or do not match ``weights``.

    Example:
      >>> two = Factors(jnp.ones((2, 1, 1)), jnp.array([[[3.0]], [[5.0]]]))
      >>> weighted_sum(two, jnp.array([1.0, 0.5]))
      Array([[5.5]], dtype=float32)
    """
    inputs, cotangents = factors
    shapes = inputs.shape, cotangents.shape, weights.shape
    fits = [len(shape) for shape in shapes] == [3, 3, 1]
    if not fits or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            "factors must be float[clients, r, ...] with one entry of weights per "
            f"client, got shapes {shapes[0]}, {shapes[1]} and {shapes[2]}."
        )
    scaled = cotangents * weights[:, None, None].astype(cotangents.dtype)
    rows = lambda a: a.reshape(-1, a.shape[-1])
    total = _product(rows(inputs).T, rows(scaled))
    return total.astype(cotangents.dtype)


def inner_product(left: Factors, right: Factors) -> jax.Array:
    """Computes the inner product of two gradients from two thin Gram matrices.

    Args:
      left: ``Factors`` with ``r`` rows; leading axes broadcast against ``right``'s.
      right: ``Factors`` of the same layer with ``q`` rows.

    Returns:
      ``float[...]`` in at least float32, the sum of the entrywise product of the two
      gradients.

    Raises:
      TypeError: if the widths differ.

    Example:
      >>> row = Factors(jnp.array([[1.0, 2.0]]), jnp.array([[3.0]]))
      >>> inner_product(row, row)  # (3, 6) with itself
      Array(45., dtype=float32)
    """
    gram = lambda a, b: _product(a, jnp.swapaxes(b, -1, -2))
    inputs = gram(left.inputs, right.inputs)
    cotangents = gram(left.cotangents, right.cotangents)
    return jnp.sum(inputs * cotangents, axis=(-2, -1))


def squared_norm(factors: Factors) -> jax.Array:
    """Computes ``‖inputsᵀ @ cotangents‖²`` without the matrix product.

    Args:
      factors: ``Factors`` of r rows, with any leading axes.

    Returns:
      ``float[...]`` in at least float32, >= 0 even if rows cancel.

    Example:
      >>> squared_norm(Factors(jnp.array([[1.0, 2.0]]), jnp.array([[3.0]])))
      Array(45., dtype=float32)
    """
    return jnp.maximum(inner_product(factors, factors), 0.0)


def _product(left, right):
    """Computes a matrix product with sums and result in at least float32."""
    # Norms bound released values, so accelerators must not round the factors.
    highest = jax.lax.Precision.HIGHEST
    dtype = wide(left.dtype, right.dtype)
    return jnp.matmul(left, right, precision=highest, preferred_element_type=dtype)
