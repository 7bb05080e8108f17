"""Weight matrices with pending changes as thin factors."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Factors(NamedTuple):
    """The gradient of a dense layer, ``inputsᵀ @ cotangents``, as factors.

    ``r`` is the number of rows that the layer was applied to. ``...`` in a docstring
    allows a leading ``clients`` axis.
    """

    inputs: jax.Array  # float[..., r, d_in]: inputs of the layer
    cotangents: jax.Array  # float[..., r, d_out]: d loss / d output


@jax.tree_util.register_pytree_node_class
class FactoredKernel:
    """The matrix ``kernel - inputsᵀ @ cotangents`` in factored form.

    Multiply by it with ``jaxanon.kernels.matmul``. Functions of ``jax.numpy`` and
    operators with an array on the left also accept it, but multiply it out. For methods
    and other operators call ``jnp.asarray`` first.
    """

    def __init__(self, kernel, factors=None):
        self.kernel = kernel  # float[d_in, d_out], shared by all clients
        self.factors = factors  # Factors, the pending change, or None

    def tree_flatten(self):
        return (self.kernel, self.factors), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    shape = property(lambda self: self.kernel.shape)
    ndim = property(lambda self: self.kernel.ndim)
    dtype = property(lambda self: self.kernel.dtype)

    def __jax_array__(self):
        return multiply_out(self)

    def __repr__(self):
        rows = 0 if self.factors is None else self.factors.inputs.shape[-2]
        return f"FactoredKernel(shape={self.shape}, rows={rows})"


def multiply_out(leaf):
    """Returns a ``FactoredKernel`` as a plain matrix; arrays are unchanged."""
    if not isinstance(leaf, FactoredKernel):
        return leaf
    if leaf.factors is None:
        return leaf.kernel
    return leaf.kernel - full_gradient(leaf.factors)


def full_gradient(factors: Factors) -> jax.Array:
    """Computes ``inputsᵀ @ cotangents``, ``float[..., d_in, d_out]``."""
    return jnp.swapaxes(factors.inputs, -1, -2) @ factors.cotangents


def matmul(x: jax.Array, kernel) -> jax.Array:
    """Computes ``x @ kernel`` for a plain or factored kernel.

    For a ``FactoredKernel`` it computes ``x @ W - (x @ inputsᵀ) @ cotangents``. Under
    ``vmap`` over clients the first product is shared and the second is thin.

    Args:
      x: ``float[rows, d_in]``; ``float[..., rows, d_in]`` with a plain kernel.
      kernel: ``float[d_in, d_out]`` or a ``FactoredKernel`` of that shape.

    Returns:
      ``float[rows, d_out]``.

    Raises:
      ValueError: if ``x`` is not a matrix for a factored kernel.

    Example:
      >>> change = Factors(jnp.array([[1.0, 0.0]]), jnp.array([[0.5, 0.5]]))
      >>> matmul(jnp.array([[2.0, 1.0]]), FactoredKernel(jnp.eye(2), change))
      Array([[1., 0.]], dtype=float32)

    References:
      Goodfellow, Efficient Per-Example Gradient Computations, 2015.
    """
    if not isinstance(kernel, FactoredKernel):
        return x @ kernel
    if x.ndim != 2:
        raise ValueError(
            f"x must be float[rows, d_in] for a factored kernel, got shape {x.shape}; "
            "flatten leading axes, or call the model on a batch instead of under vmap."
        )
    y = x @ kernel.kernel
    return y if kernel.factors is None else y - thin_product(x, *kernel.factors)


def thin_product(x, inputs, cotangents):
    """Computes ``(x @ inputsᵀ) @ cotangents``, ``float[..., d_out]``."""
    return (x @ inputs.T) @ cotangents


@jax.custom_vjp
def tapped(y, x, tap):
    """Returns ``y``; its gradient for ``tap`` is ``Factors(x, d loss / d y)``."""
    del x, tap
    return y


def _tapped_forward(y, x, tap):
    del tap
    return y, x


def _tapped_backward(x, cotangent):
    return cotangent, None, Factors(x, cotangent)


tapped.defvjp(_tapped_forward, _tapped_backward)
