"""Networks of guided diffusion: autoencoders and conditional Gaussians of latents."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.autoencoder import LOG_VARIANCE
from jaxanon.models.layers import MultiLayer
from jaxanon.models.unet import Convolution, Double, Halve


class Compressor(nn.Module):
    """Encoder of windows: convolutions with SiLU, each followed by halving of time.

    It has no normalisation, because the scale of a window carries information.

    Example:
      >>> import jax
      >>> net, x = Compressor((8, 8), 4), jnp.zeros((2, 64, 5))
      >>> mean, log_variance = net.apply(net.init(jax.random.key(0), x), x)
      >>> mean.shape, log_variance.shape
      ((2, 16, 4), (2, 16, 4))

    References:
      Rombach et al., High-resolution image synthesis with latent diffusion models,
      CVPR 2022, section 3.1, for the KL term of its latents.
    """

    widths: Sequence[int]
    channels: int  # channels of the latents

    @nn.compact
    def __call__(self, x):
        """Returns mean and log-variance, ``float[batch, time', channels]`` each.

        ``x`` is ``float[batch, time, d]``; time must be a multiple of
        ``2 ** len(widths)``.
        """
        for number, width in enumerate(self.widths):
            x = nn.silu(Convolution(width, name=f"conv_{number}")(x))
            x = Halve(name=f"halve_{number}")(x)
        x = nn.Dense(2 * self.channels, name="last")(x)
        mean, log_variance = jnp.split(x, 2, axis=-1)
        return mean, jnp.clip(log_variance, *LOG_VARIANCE)


class Expander(nn.Module):
    """Decoder of latents: convolutions with SiLU, each after doubling of time.

    Example:
      >>> import jax
      >>> net, z = Expander((8, 8), 5), jnp.zeros((2, 16, 4))
      >>> net.apply(net.init(jax.random.key(0), z), z).shape
      (2, 64, 5)
    """

    widths: Sequence[int]
    channels: int  # channels of the windows

    @nn.compact
    def __call__(self, z):
        """``float[batch, time', d] -> float[batch, time, channels]``."""
        for number, width in enumerate(self.widths):
            z = nn.silu(Double(width, name=f"double_{number}")(z))
        return Convolution(self.channels, zero=True, name="last")(z)


MAX_LOG_VARIANCE = 3.0  # Log-variances are in (-3, 3); targets have std 1 at most.


class LatentLaw(nn.Module):
    """Mean and log-variance of ``outputs`` numbers, given a vector.

    Log-variances saturate smoothly at their bounds. A standard deviation near 0 would
    give unbounded gradients to a network that is trained against this one.

    Example:
      >>> import jax
      >>> net, x = LatentLaw(3), jnp.zeros((2, 5))
      >>> mean, log_variance = net.apply(net.init(jax.random.key(0), x), x)
      >>> mean.shape, log_variance.shape
      ((2, 3), (2, 3))

    References:
      Cheng et al., CLUB, ICML 2020, section 3.2, which does not specify its size.
    """

    outputs: int
    hidden: Sequence[int] = (64,)

    @nn.compact
    def __call__(self, x):
        """``float[batch, d] -> (float[batch, outputs], same)``."""
        outputs = MultiLayer((*self.hidden, 2 * self.outputs))(x)
        mean, log_variance = jnp.split(outputs, 2, axis=-1)
        return mean, MAX_LOG_VARIANCE * jnp.tanh(log_variance / MAX_LOG_VARIANCE)


def gaussian_nll(y, mean, log_variance):
    """Returns the mean negative log-likelihood of rows, minus ``d log(2 pi) / 2``.

    Args:
      y: ``float[n, d]``.
      mean: ``float[n, d]``.
      log_variance: ``float[n, d]``.

    Returns:
      ``float[]``, in nats.

    Example:
      >>> gaussian_nll(jnp.array([[2.0, 0.0]]), jnp.zeros((1, 2)), jnp.zeros((1, 2)))
      Array(2., dtype=float32)
    """
    terms = (y - mean) ** 2 * jnp.exp(-log_variance) + log_variance
    return jnp.mean(jnp.sum(terms, axis=-1)) / 2
