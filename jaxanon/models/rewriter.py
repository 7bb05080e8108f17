"""Autoencoders whose latent is read, or whose decoder is told, a private class."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.autoencoder import Decoder, Discriminator, Encoder
from jaxanon.models.blinder import sample
from jaxanon.models.layers import MultiLayer, flatten


class CodeEncoder(nn.Module):
    """Window to its code, with nothing random about it."""

    latent: int
    hidden: Sequence[int]
    initialisation: str = "lecun"

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> (float[batch, latent], None)``."""
        widths = (*self.hidden, self.latent)
        return MultiLayer(widths, self.initialisation)(flatten(windows)), None


class Rewriter(NamedTuple):
    """An encoder, a decoder, and a reader of the latent for each private attribute.

    Parameters are groups ``encoder``, ``decoder`` and, if there are any, ``readers``.
    """

    encoder: Encoder | CodeEncoder
    decoder: Decoder
    told: tuple[int, ...]  # classes of each attribute that the decoder is told
    readers: tuple[Discriminator, ...]

    def init(self, key) -> dict:
        """Parameters of all groups."""
        encoder_key, decoder_key, *keys = jax.random.split(key, 2 + len(self.readers))
        window = jnp.zeros((1, self.decoder.time, self.decoder.channels))
        z = jnp.zeros((1, self.encoder.latent))
        conditioned = jnp.zeros((1, self.encoder.latent + sum(self.told)))
        params = {
            "encoder": self.encoder.init(encoder_key, window)["params"],
            "decoder": self.decoder.init(decoder_key, conditioned)["params"],
        }
        if self.readers:
            params["readers"] = [
                reader.init(one, z)["params"]
                for reader, one in zip(self.readers, keys, strict=True)
            ]
        return params

    def encode(self, params, windows) -> tuple[jax.Array, jax.Array | None]:
        """Mean and log-variance of the latent; no variance where it is a code."""
        encoded: Any = self.encoder.apply({"params": params["encoder"]}, windows)
        return encoded

    def draw(self, params, windows, noise):
        """A sample of the latent, ``float[batch, latent]``, from N(0, 1) noise."""
        mean, log_variance = self.encode(params, windows)
        return mean if log_variance is None else sample(mean, log_variance, noise)

    def decode(self, params, z, private) -> jax.Array:
        """A latent, and the one-hot classes that the decoder is told, to windows."""
        conditioned = jnp.concatenate([z, *private], axis=-1) if self.told else z
        decoded: Any = self.decoder.apply({"params": params["decoder"]}, conditioned)
        return decoded

    def read(self, params, z) -> tuple[jax.Array, ...]:
        """Logits of each private attribute."""
        pairs = zip(self.readers, params["readers"], strict=True)
        logits: Any = tuple(reader.apply({"params": p}, z) for reader, p in pairs)
        return logits


def rewriter(
    time: int,
    channels: int,
    private_classes: Sequence[int],
    *,
    latent: int,
    hidden: Sequence[int],
    initialisation: str = "released",
    told: bool = False,
    reader_hidden: Sequence[int] | None = None,
    random: bool = True,
) -> Rewriter:
    """The networks of one model for windows of ``time`` samples.

    Args:
      time: samples per window.
      channels: sensor channels.
      private_classes: number of classes of each private attribute.
      latent: size of the latent.
      hidden: widths of the encoder's dense layers; the decoder mirrors them.
      initialisation: of all layers; see ``Dense``.
      told: whether the decoder is told the private classes.
      reader_hidden: widths of the readers' hidden layers, ``()`` for a single layer;
        None is no readers.
      random: whether the latent has a variance, or is a code.

    Returns:
      ``Rewriter``.

    Example:
      ObscureNet's for MotionSense, with the published 298,388 and 297,600 parameters:

      >>> net = rewriter(128, 2, [2], latent=10, hidden=(512, 256, 128), told=True)
      >>> params = jax.eval_shape(net.init, jax.random.key(0))
      >>> {group: sum(leaf.size for leaf in jax.tree.leaves(params[group]))
      ...  for group in params}
      {'decoder': 297600, 'encoder': 298388}
    """
    hidden = tuple(hidden)
    if random:
        encoder = Encoder(latent, hidden, (), initialisation)
    else:
        encoder = CodeEncoder(latent, hidden, initialisation)
    readers = ()
    if reader_hidden is not None:
        readers = tuple(
            Discriminator(num, tuple(reader_hidden), initialisation)
            for num in private_classes
        )
    return Rewriter(
        encoder,
        Decoder(time, channels, hidden[::-1], (), initialisation),
        tuple(private_classes) if told else (),
        readers,
    )
