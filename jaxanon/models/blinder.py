"""Blinder's networks and losses, as functions of ``(params, batch)``."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp

from jaxanon.models.autoencoder import Decoder, Discriminator, Encoder

VAE_GROUPS = ("encoder", "decoder")
RELEASED_SCALE = 512 / 150  # times the mean squared error of a window


class Batch(NamedTuple):
    """A client's windows with everything random about them already drawn.

    ``private`` and ``shadow`` hold one array for each private attribute. ``shadow`` is
    a class other than the true one, ``shown`` any class at all; ``renoise`` is for
    encoding windows and their shadows again, windows first.
    """

    windows: jax.Array  # float[batch, time, channels], standardised
    public: jax.Array  # float[batch, public classes], one-hot
    private: tuple  # of float[batch, classes], one-hot
    weights: jax.Array  # float[batch], 0 where a row is padding
    noise: jax.Array  # float[batch, latent], N(0, 1)
    shadow: tuple  # of float[batch, classes], one-hot
    renoise: jax.Array  # float[2 * batch, latent], N(0, 1)
    shown: tuple  # of float[batch, classes], one-hot


class LossScale(NamedTuple):
    """The weights of Blinder's eq. 4; each a float or ``float[]``."""

    alpha: jax.Array | float
    beta: jax.Array | float
    gamma: jax.Array | float


class Networks(NamedTuple):
    """The three kinds of network; ``discriminators`` has one per private attribute."""

    encoder: Encoder
    decoder: Decoder
    discriminators: tuple[Discriminator, ...]

    def init(self, key, time: int, channels: int, public_classes: int):
        """Parameters with groups ``encoder``, ``decoder``, ``discriminators``."""
        keys = jax.random.split(key, 2 + len(self.discriminators))
        z = jnp.zeros((1, self.encoder.latent))
        classes = public_classes + sum(d.num_classes for d in self.discriminators)
        conditioned = jnp.zeros((1, self.encoder.latent + classes))
        windows = jnp.zeros((1, time, channels))
        return {
            "encoder": self.encoder.init(keys[0], windows)["params"],
            "decoder": self.decoder.init(keys[1], conditioned)["params"],
            "discriminators": [
                network.init(one, z)["params"]
                for network, one in zip(self.discriminators, keys[2:], strict=True)
            ],
        }

    def encode(self, params, windows) -> tuple[jax.Array, jax.Array]:
        """``float[batch, time, channels]`` to mean and log-variance of the latent."""
        encoded = self.encoder.apply({"params": params["encoder"]}, windows)
        return cast(tuple[jax.Array, jax.Array], encoded)

    def decode(self, params, z, private, public):
        """A latent and its one-hot attributes, in the paper's order, to windows."""
        conditioned = jnp.concatenate([z, *private, public], axis=-1)
        return self.decoder.apply({"params": params["decoder"]}, conditioned)

    def discriminate(self, params, z):
        """Logits of each private attribute."""
        pairs = zip(self.discriminators, params["discriminators"], strict=True)
        return tuple(network.apply({"params": p}, z) for network, p in pairs)


def networks(
    time: int,
    channels: int,
    private_classes: Sequence[int],
    *,
    latent: int = 25,
    hidden: Sequence[int] = (512, 512, 256, 128),
    filters: Sequence[int] = (),
    initialisation: str = "lecun",
    adversary_hidden: Sequence[int] = (128, 128),
) -> Networks:
    """Blinder's networks for windows of ``time`` samples by ``channels`` channels.

    Args:
      time: samples per window; with ``filters`` a multiple of ``2**len(filters)``.
      channels: sensor channels.
      private_classes: number of classes of each private attribute.
      latent: size of the latent representation (paper: 25).
      hidden: widths of the encoder's dense layers; the decoder mirrors them.
      filters: filters of the encoder's convolutions, if any; the decoder mirrors them.
      initialisation: of the dense layers, ``"lecun"`` or ``"released"``; see ``Dense``.
      adversary_hidden: widths of the discriminators' layers.

    Returns:
      ``Networks``.

    Raises:
      ValueError: if ``time`` cannot be halved once per convolution.

    Example:
      >>> net = networks(128, 6, [2])
      >>> params = net.init(jax.random.key(0), 128, 6, public_classes=4)
      >>> sum(leaf.size for leaf in jax.tree.leaves(params["encoder"]))
      827058

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, sections 4.1 and 7.
    """
    if time % 2 ** len(filters):
        raise ValueError(
            f"time must be a multiple of {2 ** len(filters)} for {len(filters)} "
            f"convolutions of stride 2, got {time}; use windows of another length or "
            "filters=()."
        )
    return Networks(
        Encoder(latent, tuple(hidden), tuple(filters), initialisation),
        Decoder(
            time, channels, tuple(reversed(hidden)), tuple(filters), initialisation
        ),
        tuple(
            Discriminator(classes, tuple(adversary_hidden), initialisation)
            for classes in private_classes
        ),
    )


def sample(mean, log_variance, noise):
    """``mean + exp(log_variance / 2) * noise``: eq. 1 of the paper."""
    return mean + jnp.exp(0.5 * log_variance) * noise


def kl_to_standard_normal(mean, log_variance):
    """KL(N(mean, e^log_variance) ‖ N(0, 1)), summed over the last axis, in nats.

    Example:
      >>> kl_to_standard_normal(jnp.array([[2.0, 0.0]]), jnp.zeros((1, 2)))
      Array([2.], dtype=float32)
    """
    terms = mean**2 + jnp.exp(log_variance) - 1 - log_variance
    return 0.5 * jnp.sum(terms, axis=-1)


def weighted_mean(values, weights):
    """Mean of ``float[batch]`` under weights; 0 where all weights are 0."""
    total = jnp.sum(weights)
    return jnp.sum(values * weights) / jnp.where(total > 0, total, 1)


def cross_entropy(logits, targets, weights, *, released: bool = False):
    """Mean cross-entropy, ``float[]``, of one-hot targets under row weights, in nats.

    Chance is ``log(classes)``. ``released`` is the published program's form, which
    takes the softmax for logits of a binary cross-entropy: over two classes it runs
    from 0.503 to 1.003 and a uniform guess costs 0.724.

    Example:
      >>> uniform, target = jnp.zeros((1, 2)), jnp.array([[1.0, 0.0]])
      >>> [f"{cross_entropy(uniform, target, jnp.ones(1), released=r):.4f}"
      ...  for r in (False, True)]
      ['0.6931', '0.7241']
    """
    if released:
        p = jax.nn.softmax(logits)
        rows = jnp.mean(jax.nn.softplus(p) - targets * p, axis=-1)
    else:
        rows = -jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1)
    return weighted_mean(rows, weights)
