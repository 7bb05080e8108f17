"""Norms and weighted sums of gradients in full or factored form."""

import jax.numpy as jnp

from jaxanon.kernels.clipping import factors
from jaxanon.kernels.factored.algebra import squared_norm, weighted_sum
from jaxanon.kernels.factored.kernel import Factors
from jaxanon.kernels.ghost.examples import Gradient
from jaxanon.kernels.precision import wide, widened
from jaxanon.kernels.row_sums import along
from jaxanon.kernels.scaling import scaled


def squared_norms(gradient: Gradient):
    """Returns ``float[B]``, the squared L2 norms of one leaf's gradients."""
    if not isinstance(gradient.value, Factors):
        return _squares(gradient.value)
    # Squares of factors may underflow or overflow where the gradient's square does not.
    pairs = [scaled(widened(x), axis=(1, 2)) for x in gradient.value]
    inputs, cotangents = (near for near, _ in pairs)
    across = [jnp.sum(jnp.square(x), axis=2) for x in (inputs, cotangents)]
    if inputs.shape[1] == 1:  # The Gram matrix of one row is a scalar.
        squares = across[0][:, 0] * across[1][:, 0]
    else:
        squares = squared_norm(Factors(inputs, cotangents))
        # Bounds the rounding error if rows cancel; see ``clipped_gradient_sum``.
        most = jnp.square(jnp.sum(jnp.sqrt(across[0] * across[1]), axis=1))
        squares = squares + 4 * jnp.finfo(squares.dtype).eps * most
    norms = _root(squares)
    for power in zip(*(powers for _, powers in pairs), strict=True):
        norms = norms * jnp.ravel(power[0]) * jnp.ravel(power[1])
    return jnp.square(norms)


def weights(squares, bound, mask):
    """Returns ``float[B]``, the scale factor of each gradient; 0 excludes it."""
    return jnp.where(mask, factors.scale(squares, bound).factor, 0)


def weighted_sum_of(gradient: Gradient, weights, leaf):
    """Returns ``Σ_b weights[b] gradient[b]`` like the leaf, in at least float32."""
    value = gradient.value
    if isinstance(value, Factors):
        dtype = widened(value.cotangents).dtype
        kept = Factors(*(_kept(widened(x), weights) for x in value))
        total = weighted_sum(kept, weights.astype(dtype))
    else:
        kept = widened(_kept(value, weights))
        total = jnp.tensordot(weights.astype(kept.dtype), kept, axes=1)
    total = total.astype(wide(leaf.dtype))
    return total if gradient.view is None else gradient.view.fold(total, leaf.shape)


def _root(squares):
    """Computes the square root with gradient 0 at 0."""
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), squares)


def _squares(x):
    return jnp.sum(jnp.square(widened(x)), axis=tuple(range(1, x.ndim)))


def _kept(x, weights):
    """Sets entries of weight 0 to 0, since excluded examples may hold any values."""
    return jnp.where(along(weights, x) > 0, x, 0)
