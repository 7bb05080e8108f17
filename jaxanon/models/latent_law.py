"""A network that reads from one vector how another is distributed."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.layers import MultiLayer

MOST = 3.0  # Log-variances lie in (-3, 3): what is read has deviation 1 at most.


class LatentLaw(nn.Module):
    """Mean and log-variance of each of ``outputs`` numbers, given a vector.

    Log-variances bend towards their bounds, so that whoever learns against the law is
    never pushed by a deviation near 0.

    Example:
      >>> import jax
      >>> net, x = LatentLaw(3), jnp.zeros((2, 5))
      >>> mean, log_variance = net.apply(net.init(jax.random.key(0), x), x)
      >>> mean.shape, log_variance.shape
      ((2, 3), (2, 3))

    References:
      Cheng et al., CLUB, ICML 2020, section 3.2, which leaves its size open.
    """

    outputs: int
    hidden: Sequence[int] = (64,)

    @nn.compact
    def __call__(self, x):
        """``float[batch, d] -> (float[batch, outputs], same)``."""
        found = MultiLayer((*self.hidden, 2 * self.outputs))(x)
        mean, log_variance = jnp.split(found, 2, axis=-1)
        return mean, MOST * jnp.tanh(log_variance / MOST)


def surprise(y, mean, log_variance):
    """Mean negative log-likelihood of rows, in nats, but for ``d log(2 pi) / 2``.

    Args:
      y, mean, log_variance: ``float[n, d]`` each.

    Returns:
      ``float[]``.

    Example:
      >>> surprise(jnp.array([[2.0, 0.0]]), jnp.zeros((1, 2)), jnp.zeros((1, 2)))
      Array(2., dtype=float32)
    """
    terms = (y - mean) ** 2 * jnp.exp(-log_variance) + log_variance
    return jnp.mean(jnp.sum(terms, axis=-1)) / 2
