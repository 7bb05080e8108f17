"""Encoder, decoder and discriminator of a conditional variational autoencoder."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.layers import MultiLayer, flatten, unflatten

LOG_VARIANCE = (-10.0, 10.0)  # Keeps exp(log_variance) well within float32.


class Encoder(nn.Module):
    """Encoder from windows to the mean and log-variance of a latent.

    With ``filters``, the first layers are convolutions over time (kernel 5, stride 2,
    ReLU); Blinder's paper uses two for MotionSense. Without ``filters``, all layers are
    dense, as in the official program.

    The log-variance is clipped to ``LOG_VARIANCE``.

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 4.1 and section 7
      (Implementation Details).
    """

    latent: int
    hidden: Sequence[int]
    filters: Sequence[int] = ()
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> (float[batch, latent], same)``."""
        x = windows
        for filters in self.filters:
            x = nn.relu(nn.Conv(filters, (5,), strides=(2,))(x))
        x = MultiLayer((*self.hidden, 2 * self.latent), self.initialization)(flatten(x))
        mean, log_variance = jnp.split(x, 2, axis=-1)
        return mean, jnp.clip(log_variance, *LOG_VARIANCE)


class Decoder(nn.Module):
    """Decoder from a latent and one-hot attributes to a window; mirrors ``Encoder``.

    The input is the concatenation of the latent, the private one-hots and the public
    one-hot, in this order.
    """

    time: int
    channels: int
    hidden: Sequence[int]
    filters: Sequence[int] = ()
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, conditioned):
        """``float[batch, latent + classes] -> float[batch, time, channels]``."""
        if not self.filters:
            widths = (*self.hidden, self.time * self.channels)
            x = MultiLayer(widths, self.initialization)(conditioned)
            return unflatten(x, self.time, self.channels)
        steps = self.time // 2 ** len(self.filters)
        widths = (*self.hidden, steps * self.filters[-1])
        x = nn.relu(MultiLayer(widths, self.initialization)(conditioned))
        x = unflatten(x, steps, self.filters[-1])
        for filters in reversed(self.filters[:-1]):
            x = nn.relu(nn.ConvTranspose(filters, (5,), strides=(2,))(x))
        return nn.ConvTranspose(self.channels, (5,), strides=(2,))(x)


class Discriminator(nn.Module):
    """Classifier from a latent to the logits of one private attribute."""

    num_classes: int
    hidden: Sequence[int] = (128, 128)
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, z):
        """``float[batch, latent] -> float[batch, num_classes]``."""
        return MultiLayer((*self.hidden, self.num_classes), self.initialization)(z)


def sample(mean, log_variance, noise):
    """Returns ``mean + exp(log_variance / 2) * noise``, eq. 1 of the paper."""
    return mean + jnp.exp(0.5 * log_variance) * noise
