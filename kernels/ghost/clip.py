"""Norms and weighted sums of gradients that may be factors."""

import jax.numpy as jnp

from jaxanon.kernels.factored import Factors, squared_norm, weighted_sum
from jaxanon.kernels.ghost.examples import Gradient


def wide(x):
    """``x`` in float32 at least."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def squared_norms(gradient: Gradient):
    """``float[B]``: the squared L2 norm of each example's gradient of one leaf."""
    if not isinstance(gradient.value, Factors):
        return _squares(gradient.value)
    inputs, cotangents = gradient.value
    if inputs.shape[1] == 1:  # One row: the Gram matrices are numbers.
        return _squares(inputs) * _squares(cotangents)
    return squared_norm(Factors(wide(inputs), wide(cotangents)))


def _squares(x):
    return jnp.sum(jnp.square(wide(x)), axis=tuple(range(1, x.ndim)))


def clipped_sum(gradient: Gradient, weights, shape):
    """``Σ_b weights[b] gradient[b]`` in the leaf's shape; weight 0 hides anything."""

    def kept(x):
        column = weights.reshape(-1, *[1] * (x.ndim - 1))
        return jnp.where(column > 0, x, 0)

    if isinstance(gradient.value, Factors):
        total = weighted_sum(Factors(*map(kept, gradient.value)), weights)
    else:
        total = jnp.tensordot(weights, wide(kept(gradient.value)), axes=1)
    return gradient.fold(total, shape)
