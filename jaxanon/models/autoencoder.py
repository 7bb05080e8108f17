"""Encoder, decoder and discriminator of a conditional variational autoencoder."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.layers import MultiLayer, flatten, unflatten

LOG_VARIANCE = (-10.0, 10.0)  # Beyond it exp() helps nobody, and soon overflows.


class Encoder(nn.Module):
    """Window to mean and log-variance of its latent representation.

    With ``filters`` the first layers are convolutions over time (kernel 5, stride 2,
    ReLU), two in Blinder's paper for MotionSense; without, all are dense, as in the
    released program.

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
    """Latent representation and one-hot attributes to a window; mirrors ``Encoder``.

    The input is ``z ⊕ private one-hots ⊕ public one-hot``.
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
    """Latent representation to the logits of one private attribute."""

    num_classes: int
    hidden: Sequence[int] = (128, 128)
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, z):
        """``float[batch, latent] -> float[batch, num_classes]``, not normalised."""
        return MultiLayer((*self.hidden, self.num_classes), self.initialization)(z)


def sample(mean, log_variance, noise):
    """``mean + exp(log_variance / 2) * noise``: eq. 1 of the paper."""
    return mean + jnp.exp(0.5 * log_variance) * noise
