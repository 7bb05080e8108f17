"""Autoencoders whose latent is read, or whose decoder is told, a private class."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.autoencoder import Decoder, Discriminator, Encoder, sample
from jaxanon.models.layers import MultiLayer, flatten
from jaxanon.models.losses import cross_entropy, kl_to_standard_normal


class CodeEncoder(nn.Module):
    """Window to its code, with nothing random about it."""

    latent: int
    hidden: Sequence[int]
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> (float[batch, latent], None)``."""
        widths = (*self.hidden, self.latent)
        return MultiLayer(widths, self.initialization)(flatten(windows)), None


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
    initialization: str = "official",
    told: bool = False,
    classifier_hidden_sizes: Sequence[int] | None = None,
    random: bool = True,
) -> Rewriter:
    """The networks of one model for windows of ``time`` samples.

    Args:
      time: samples per window.
      channels: sensor channels.
      private_classes: number of classes of each private attribute.
      latent: size of the latent.
      hidden: widths of the encoder's dense layers; the decoder mirrors them.
      initialization: of all layers; see ``Dense``.
      told: whether the decoder is told the private classes.
      classifier_hidden_sizes: widths of the readers' hidden layers, ``()`` for a single
        layer; None is no readers.
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
        encoder = Encoder(latent, hidden, (), initialization)
    else:
        encoder = CodeEncoder(latent, hidden, initialization)
    readers = ()
    if classifier_hidden_sizes is not None:
        readers = tuple(
            Discriminator(num, tuple(classifier_hidden_sizes), initialization)
            for num in private_classes
        )
    return Rewriter(
        encoder,
        Decoder(time, channels, hidden[::-1], (), initialization),
        tuple(private_classes) if told else (),
        readers,
    )


VALUES = 512  # A window's squared error counts as that of so many values.

SHRINK = 75  # The released loss is so many times smaller.

VARIANTS = ("paper", "official")


class AutoencoderBatch(NamedTuple):
    """Windows with everything random about them already drawn."""

    windows: jax.Array  # float[batch, time, channels], standardised
    private: tuple  # of float[batch, classes], one-hot, for each private attribute
    noise: jax.Array  # float[batch, latent], N(0, 1)


def rewriter_loss(
    networks: Rewriter,
    params,
    batch: AutoencoderBatch,
    *,
    beta=0.0,
    reading=0.0,
    variant: str = "paper",
):
    """Squared error, KL divergence and what the readers lose, per window.

    ``"paper"`` is ``256 · error + beta · KL + reading · CE`` with the mean squared
    error of a window's values, KL in nats and the readers' cross-entropy in nats: the
    negative evidence bound of a window of 512 values with unit variance, whatever
    number of values it has. For ``½‖x̂ − x‖² + β KL``, β is ``beta`` times values /
    512.

    ``"official"`` is the published programs' ``(512 · error + 2 beta · KL) / 150``,
    which is the same over 75, with ``binary_cross_entropy`` for the readers. Their
    ``c`` is ``beta``; their weight of the adversary, 0.2, is a ``reading`` of -15.

    Args:
      networks: ``Rewriter``.
      params: of all its groups.
      batch: ``AutoencoderBatch``; the decoder is told the true classes.
      beta: weight of the KL divergence, a float or ``float[]``.
      reading: weight of the readers' loss; negative for an adversary's.
      variant: one of ``VARIANTS``.

    Returns:
      ``(float[], info)``.
    """
    mean, log_variance = networks.encode(params, batch.windows)
    z = mean if log_variance is None else sample(mean, log_variance, batch.noise)
    rebuilt = networks.decode(params, z, batch.private)
    error = jnp.mean(jnp.square(batch.windows - rebuilt))
    total, info = VALUES / 2 * error, {"reconstruction": error}
    if log_variance is not None:
        kl = jnp.mean(kl_to_standard_normal(mean, log_variance))
        total, info = total + beta * kl, info | {"kl": kl}
    if networks.readers:
        loss = reader_loss(networks, params, z, batch.private, variant=variant)
        total, info = total + reading * loss, info | {"reader": loss}
    total = total / SHRINK if variant == "official" else total
    return total, {"loss": total} | info


def reader_loss(networks: Rewriter, params, z, private, *, variant: str = "paper"):
    """The readers' cross-entropy of latents, ``float[]``, summed over attributes."""
    if variant == "official":
        loss = binary_cross_entropy
    else:
        loss = lambda logits, y: cross_entropy(logits, y, jnp.ones(len(y)))
    pairs = zip(networks.read(params, z), private, strict=True)
    return sum(loss(logits, targets) for logits, targets in pairs)


def binary_cross_entropy(logits, targets):
    """Mean over rows and classes of each softmax probability's binary cross-entropy.

    The released programs' loss of an adversary. With two classes it is the
    cross-entropy; a uniform guess among three costs 0.637 in place of log 3 = 1.099.

    Args:
      logits: ``float[batch, classes]``, not normalised.
      targets: ``float[batch, classes]``, one-hot.

    Example:
      >>> f"{binary_cross_entropy(jnp.zeros((1, 3)), jnp.eye(3)[:1]):.4f}"
      '0.6365'
    """
    yes = jax.nn.log_softmax(logits)
    # log(1 - p) as the share of all other classes, which does not round to log(0).
    others = jnp.where(jnp.eye(logits.shape[-1], dtype=bool)[None], -jnp.inf, 0)
    no = jax.nn.logsumexp(yes[:, None] + others, axis=-1)
    return -jnp.mean(targets * yes + (1 - targets) * no)
