"""Autoencoders with attribute classifiers or a decoder conditioned on attributes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.autoencoder import Decoder, Discriminator, Encoder, sample
from jaxanon.models.layers import MultiLayer, flatten
from jaxanon.models.losses import cross_entropy, kl_to_standard_normal


class CodeEncoder(nn.Module):
    """Deterministic encoder of windows."""

    latent: int
    hidden: Sequence[int]
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> (float[batch, latent], None)``."""
        widths = (*self.hidden, self.latent)
        return MultiLayer(widths, self.initialization)(flatten(windows)), None


class ConditionalAutoencoder(NamedTuple):
    """Encoder, decoder and attribute classifiers of the latent.

    The parameter groups are ``encoder``, ``decoder`` and, with classifiers,
    ``readers``.
    """

    encoder: Encoder | CodeEncoder
    decoder: Decoder
    # Number of classes of each attribute that conditions the decoder.
    decoder_classes: tuple[int, ...]
    classifiers: tuple[Discriminator, ...]

    def init(self, key) -> dict:
        """Returns the parameters of all groups."""
        encoder_key, decoder_key, *keys = jax.random.split(
            key, 2 + len(self.classifiers)
        )
        window = jnp.zeros((1, self.decoder.time, self.decoder.channels))
        z = jnp.zeros((1, self.encoder.latent))
        conditioned = jnp.zeros((1, self.encoder.latent + sum(self.decoder_classes)))
        params = {
            "encoder": self.encoder.init(encoder_key, window)["params"],
            "decoder": self.decoder.init(decoder_key, conditioned)["params"],
        }
        if self.classifiers:
            params["readers"] = [
                network.init(one, z)["params"]
                for network, one in zip(self.classifiers, keys, strict=True)
            ]
        return params

    def encode(self, params, windows) -> tuple[jax.Array, jax.Array | None]:
        """Returns mean and log-variance of the latent; None if it is deterministic."""
        encoded: Any = self.encoder.apply({"params": params["encoder"]}, windows)
        return encoded

    def draw(self, params, windows, noise):
        """Samples latents, ``float[batch, latent]``, from N(0, 1) noise."""
        mean, log_variance = self.encode(params, windows)
        return mean if log_variance is None else sample(mean, log_variance, noise)

    def decode(self, params, z, private) -> jax.Array:
        """Decodes latents and one-hot private classes to windows."""
        conditioned = (
            jnp.concatenate([z, *private], axis=-1) if self.decoder_classes else z
        )
        decoded: Any = self.decoder.apply({"params": params["decoder"]}, conditioned)
        return decoded

    def classify(self, params, z) -> tuple[jax.Array, ...]:
        """Returns the logits of each private attribute."""
        pairs = zip(self.classifiers, params["readers"], strict=True)
        logits: Any = tuple(network.apply({"params": p}, z) for network, p in pairs)
        return logits


def conditional_autoencoder(
    time: int,
    channels: int,
    private_classes: Sequence[int],
    *,
    latent: int,
    hidden: Sequence[int],
    initialization: str = "official",
    conditional: bool = False,
    classifier_hidden_sizes: Sequence[int] | None = None,
    random: bool = True,
) -> ConditionalAutoencoder:
    """Builds the networks of one autoencoder.

    Args:
      time: samples per window.
      channels: sensor channels.
      private_classes: number of classes of each private attribute.
      latent: size of the latent.
      hidden: widths of the encoder's dense layers; the decoder mirrors them.
      initialization: initialization of all layers; see ``Dense``.
      conditional: whether the decoder is conditioned on the private classes.
      classifier_hidden_sizes: widths of the classifiers' hidden layers, ``()`` for a
        single layer; None builds no classifiers.
      random: whether the latent has a variance or is deterministic.

    Example:
      ObscureNet for MotionSense, with the published 298,388 and 297,600 parameters:

      >>> net = conditional_autoencoder(
      ...     128, 2, [2], latent=10, hidden=(512, 256, 128), conditional=True)
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
    classifiers = ()
    if classifier_hidden_sizes is not None:
        classifiers = tuple(
            Discriminator(num, tuple(classifier_hidden_sizes), initialization)
            for num in private_classes
        )
    return ConditionalAutoencoder(
        encoder,
        Decoder(time, channels, hidden[::-1], (), initialization),
        tuple(private_classes) if conditional else (),
        classifiers,
    )


NUM_VALUES = 512  # A window's mean squared error is weighted as if it had 512 values.

SHRINK = 75  # Ratio of the paper's loss to the official one.

VARIANTS = ("paper", "official")


class AutoencoderBatch(NamedTuple):
    """Windows together with all their random draws."""

    windows: jax.Array  # float[batch, time, channels], standardised
    private: tuple  # of float[batch, classes], one-hot, for each private attribute
    noise: jax.Array  # float[batch, latent], N(0, 1)


def autoencoder_loss(
    networks: ConditionalAutoencoder,
    params,
    batch: AutoencoderBatch,
    *,
    beta=0.0,
    classifier_weight=0.0,
    variant: str = "paper",
):
    """Returns squared error, KL divergence and classifier loss, per window.

    ``"paper"`` is ``256 · error + beta · KL + classifier_weight · CE``, where ``error``
    is the mean squared error of a window's values and KL and cross-entropy are in nats.
    It is the negative evidence lower bound of a window of 512 values with unit
    variance, whatever the real number of values. To minimize ``½‖x̂ − x‖² + β KL``,
    set ``beta`` to ``β`` times 512 over the number of values.

    ``"official"`` is the official programs' ``(512 · error + 2 beta · KL) / 150``,
    which is the paper's loss divided by 75, with ``binary_cross_entropy`` for the
    classifiers. Their ``c`` is ``beta``. Their adversary weight of 0.2 corresponds to a
    ``classifier_weight`` of -15.

    Args:
      networks: networks of the autoencoder.
      params: parameters of all groups.
      batch: windows, with the true classes as the decoder's condition.
      beta: weight of the KL divergence, a float or ``float[]``.
      classifier_weight: weight of the classifiers' loss; negative if adversarial.
      variant: one of ``VARIANTS``.

    Returns:
      ``(float[], info)``.
    """
    mean, log_variance = networks.encode(params, batch.windows)
    z = mean if log_variance is None else sample(mean, log_variance, batch.noise)
    rebuilt = networks.decode(params, z, batch.private)
    error = jnp.mean(jnp.square(batch.windows - rebuilt))
    total, info = NUM_VALUES / 2 * error, {"reconstruction": error}
    if log_variance is not None:
        kl = jnp.mean(kl_to_standard_normal(mean, log_variance))
        total, info = total + beta * kl, info | {"kl": kl}
    if networks.classifiers:
        loss = classifier_loss(networks, params, z, batch.private, variant=variant)
        total, info = total + classifier_weight * loss, info | {"reader": loss}
    total = total / SHRINK if variant == "official" else total
    return total, {"loss": total} | info


def classifier_loss(
    networks: ConditionalAutoencoder, params, z, private, *, variant: str = "paper"
):
    """Returns the cross-entropy of latents, ``float[]``, summed over attributes."""
    if variant == "official":
        loss = binary_cross_entropy
    else:
        loss = lambda logits, y: cross_entropy(logits, y, jnp.ones(len(y)))
    pairs = zip(networks.classify(params, z), private, strict=True)
    return sum(loss(logits, targets) for logits, targets in pairs)


def binary_cross_entropy(logits, targets):
    """Returns the mean binary cross-entropy of softmax probabilities.

    The official programs train discriminators with it. For two classes, it equals the
    cross-entropy. For three classes, a uniform guess costs 0.637 instead of
    log 3 = 1.099.

    Args:
      logits: ``float[batch, classes]``.
      targets: ``float[batch, classes]``, one-hot.

    Example:
      >>> f"{binary_cross_entropy(jnp.zeros((1, 3)), jnp.eye(3)[:1]):.4f}"
      '0.6365'
    """
    yes = jax.nn.log_softmax(logits)
    # log(1 - p) as a log-sum-exp over the other classes, which cannot round to log(0).
    others = jnp.where(jnp.eye(logits.shape[-1], dtype=bool)[None], -jnp.inf, 0)
    no = jax.nn.logsumexp(yes[:, None] + others, axis=-1)
    return -jnp.mean(targets * yes + (1 - targets) * no)
