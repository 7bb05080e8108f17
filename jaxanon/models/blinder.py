"""Blinder's networks and losses, as functions of ``(params, batch)``."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.kernels import Objective, Phase
from jaxanon.models.autoencoder import Decoder, Discriminator, Encoder, sample
from jaxanon.models.layers import MultiLayer, flatten
from jaxanon.models.losses import cross_entropy, kl_to_standard_normal, weighted_mean

VAE_GROUPS = ("encoder", "decoder")

OFFICIAL_SCALE = 512 / 150  # times the mean squared error of a window


class BlinderBatch(NamedTuple):
    """A client's windows together with all their random draws.

    ``private``, ``shadow`` and ``target`` hold one array per private attribute.
    ``shadow`` is a class other than the true one; ``target`` may be any class.
    ``renoise`` is the noise for encoding the windows, then their shadows, again.
    """

    windows: jax.Array  # float[batch, time, channels], standardised
    public: jax.Array  # float[batch, public classes], one-hot
    private: tuple  # of float[batch, classes], one-hot
    weights: jax.Array  # float[batch], 0 where a row is padding
    noise: jax.Array  # float[batch, latent], N(0, 1)
    shadow: tuple  # of float[batch, classes], one-hot
    renoise: jax.Array  # float[2 * batch, latent], N(0, 1)
    target: tuple  # of float[batch, classes], one-hot


class LossScale(NamedTuple):
    """Weights of Blinder's eq. 4; each a float or ``float[]``."""

    alpha: jax.Array | float
    beta: jax.Array | float
    gamma: jax.Array | float


class BlinderNetworks(NamedTuple):
    """Blinder's networks; ``discriminators`` has one per private attribute."""

    encoder: Encoder
    decoder: Decoder
    discriminators: tuple[Discriminator, ...]

    def init(self, key, time: int, channels: int, public_classes: int):
        """Returns parameters in groups ``encoder``, ``decoder``, ``discriminators``."""
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
        """Returns mean and log-variance of the latents, ``float[batch, latent]``."""
        encoded = self.encoder.apply({"params": params["encoder"]}, windows)
        return cast(tuple[jax.Array, jax.Array], encoded)

    def decode(self, params, z, private, public):
        """Decodes latents and one-hot attributes to windows."""
        conditioned = jnp.concatenate([z, *private, public], axis=-1)
        return self.decoder.apply({"params": params["decoder"]}, conditioned)

    def discriminate(self, params, z):
        """Returns the logits of each private attribute."""
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
    initialization: str = "lecun",
    discriminator_hidden_sizes: Sequence[int] = (128, 128),
) -> BlinderNetworks:
    """Builds Blinder's networks.

    Args:
      time: samples per window; a multiple of ``2**len(filters)``.
      channels: sensor channels.
      private_classes: number of classes of each private attribute.
      latent: size of the latent representation (paper: 25).
      hidden: widths of the encoder's dense layers; the decoder mirrors them.
      filters: filters of the encoder's convolutions, if any; the decoder mirrors them.
      initialization: initialization of the dense layers; see ``Dense``.
      discriminator_hidden_sizes: widths of the discriminators' hidden layers.

    Raises:
      ValueError: if ``time`` is not a multiple of ``2**len(filters)``.

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
    return BlinderNetworks(
        Encoder(latent, tuple(hidden), tuple(filters), initialization),
        Decoder(
            time, channels, tuple(reversed(hidden)), tuple(filters), initialization
        ),
        tuple(
            Discriminator(classes, tuple(discriminator_hidden_sizes), initialization)
            for classes in private_classes
        ),
    )


def vae_loss(networks: BlinderNetworks, scale: LossScale, *, official: bool = False):
    """Returns the loss of eq. 4, ``(params, BlinderBatch) -> (float[], info)``.

    The paper's loss is ``alpha`` times the squared error summed over the window, plus
    ``beta`` times the KL divergence, minus ``gamma`` times the discriminators' losses.
    With ``official``, it is the loss of the official program. The first two terms
    become ``(512 * mean squared error + 2 beta KL) / 150``, and the discriminators'
    losses are ``cross_entropy(official=True)``; ``alpha`` is not used.
    """

    def loss_fn(params, batch: BlinderBatch):
        total, info, _ = _vae_terms(networks, scale, params, batch, official)
        return total, info

    return loss_fn


def discriminator_loss(networks: BlinderNetworks, *, official: bool = False):
    """Returns the loss of eq. 3, ``(params, BlinderBatch) -> (float[], info)``.

    No gradient reaches the encoder.
    """

    def loss_fn(params, batch: BlinderBatch):
        mean, log_variance = networks.encode(params, batch.windows)
        z = jax.lax.stop_gradient(sample(mean, log_variance, batch.noise))
        loss = _discriminator_loss(
            networks.discriminate(params, z), batch.private, batch.weights, official
        )
        return loss, {"discriminator": loss}

    return loss_fn


def with_shadows(networks: BlinderNetworks):
    """Returns ``(params, BlinderBatch) -> (z, private, weights)`` with shadow windows.

    A shadow window is decoded from a real window's latent under another private class,
    then encoded again. It lets the discriminators of a client with a single private
    class learn all classes.
    """

    def inputs_fn(params, batch: BlinderBatch):
        mean, log_variance = networks.encode(params, batch.windows)
        z = sample(mean, log_variance, batch.noise)
        shadows = networks.decode(params, z, batch.shadow, batch.public)
        # Windows keep their mean and variance; only the noise is drawn again.
        shadow_mean, shadow_log_variance = networks.encode(params, shadows)
        z = sample(
            jnp.concatenate([mean, shadow_mean]),
            jnp.concatenate([log_variance, shadow_log_variance]),
            batch.renoise,
        )
        pairs = zip(batch.private, batch.shadow, strict=True)
        private = tuple(jnp.concatenate(pair) for pair in pairs)
        return z, private, jnp.concatenate([batch.weights, batch.weights])

    return inputs_fn


def without_shadows(networks: BlinderNetworks):
    """Returns the function of ``with_shadows`` for real windows only."""

    def inputs_fn(params, batch: BlinderBatch):
        z = sample(*networks.encode(params, batch.windows), batch.noise)
        return z, batch.private, batch.weights

    return inputs_fn


def phases(
    networks: BlinderNetworks,
    scale: LossScale,
    learning_rate,
    *,
    discriminator_steps: int = 5,
    local_steps: int = 1,
    shadows: bool = True,
    official: bool = False,
) -> tuple[Phase, ...]:
    """Returns the phases of Algorithm 1, lines 16-21, repeated ``local_steps`` times.

    In line 20, the discriminators take ``discriminator_steps`` steps on fixed latents.
    In line 21, encoder and decoder take one step against the updated discriminators.
    """
    graded = vae_loss(networks, scale, official=official)

    def discriminate(params, inputs):
        z, private, weights = inputs
        logits = networks.discriminate(params, z)
        return _discriminator_loss(logits, private, weights, official)

    latents = with_shadows(networks) if shadows else without_shadows(networks)
    adversary = Phase(
        ("discriminators",), discriminate, learning_rate, discriminator_steps, latents
    )
    autoencoder = Phase(
        VAE_GROUPS, lambda params, batch: graded(params, batch)[0], learning_rate
    )
    return (adversary, autoencoder) * local_steps


def objectives(networks: BlinderNetworks, scale: LossScale, *, official: bool = False):
    """Returns the objectives of Algorithm 1, lines 22-23, one per group."""
    return (
        Objective(VAE_GROUPS, vae_loss(networks, scale, official=official)),
        Objective(("discriminators",), discriminator_loss(networks, official=official)),
    )


def joint_objective(
    networks: BlinderNetworks, scale: LossScale, *, official: bool = False
):
    """Returns both of ``objectives`` as one, with the same gradients.

    The query windows are encoded once. Encoder and decoder treat the discriminators as
    constants, and the discriminators treat the latents as constants.
    """

    def loss_fn(params, batch: BlinderBatch):
        total, info, _ = joint_terms(networks, scale, params, batch, official)
        return total, info

    return Objective((*VAE_GROUPS, "discriminators"), loss_fn)


def joint_terms(
    networks: BlinderNetworks, scale: LossScale, params, batch, official=False
):
    """Returns the loss of ``joint_objective``, its info and the latents."""
    fixed = params | {"discriminators": jax.lax.stop_gradient(params["discriminators"])}
    total, info, z = _vae_terms(networks, scale, fixed, batch, official)
    logits = networks.discriminate(params, jax.lax.stop_gradient(z))
    loss = _discriminator_loss(logits, batch.private, batch.weights, official)
    return total + loss, info | {"discriminator": loss}, z


def _discriminator_loss(logits, private, weights, official):
    losses = [
        cross_entropy(one, targets, weights, official=official)
        for one, targets in zip(logits, private, strict=True)
    ]
    return sum(losses)


def _vae_terms(networks, scale, params, batch, official):
    """Returns the loss of eq. 4, its info and the latents."""
    mean, log_variance = networks.encode(params, batch.windows)
    z = sample(mean, log_variance, batch.noise)
    rebuilt = networks.decode(params, z, batch.private, batch.public)
    errors = jnp.sum(jnp.square(batch.windows - rebuilt), axis=(1, 2))
    error = weighted_mean(errors, batch.weights)
    kl = weighted_mean(kl_to_standard_normal(mean, log_variance), batch.weights)
    logits = networks.discriminate(params, z)
    adversary = _discriminator_loss(logits, batch.private, batch.weights, official)
    size = batch.windows[0].size
    if official:
        total = OFFICIAL_SCALE * error / size + 2 * scale.beta * kl / 150
    else:
        total = scale.alpha * error + scale.beta * kl
    total = total - scale.gamma * adversary
    return total, {"loss": total, "reconstruction": error / size, "kl": kl}, z


class Critic(nn.Module):
    """Discriminator on decoded windows: the logits of one private attribute."""

    num_classes: int
    hidden: Sequence[int] = (256, 128)

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, num_classes]``."""
        return MultiLayer((*self.hidden, self.num_classes))(flatten(windows))


class GuideScale(NamedTuple):
    """Weights of the two terms of ``guided_objective``; each a float or ``float[]``."""

    utility: jax.Array | float
    critic: jax.Array | float


def guided_objective(
    networks: BlinderNetworks,
    critics: Sequence[Critic],
    classifier_fn: Callable,
    scale: LossScale,
    guide: GuideScale,
    *,
    official: bool = False,
) -> Objective:
    """Returns ``joint_objective`` with two more terms on anonymized windows.

    The published loss ignores the windows that leave the device, which are decoded
    under another private class than the true one. Here, ``guide.utility`` weights the
    loss of a fixed raw-data classifier of the public attribute on these windows. A
    discriminator learns their *true* private class, and ``guide.critic`` weights its
    loss, which the autoencoder maximizes.

    Args:
      networks: Blinder's networks.
      critics: one discriminator per private attribute; their parameters are the group
        ``critics``.
      classifier_fn: ``(params, windows) -> logits`` of the public attribute.
      scale: weights of the published loss.
      guide: weights of the two additional terms.
      official: whether to use the official program's loss, as in ``vae_loss``.
    """

    def loss_fn(params, batch: BlinderBatch):
        total, info, z = joint_terms(networks, scale, params, batch, official)
        safe = networks.decode(params, z, batch.target, batch.public)
        fixed = jax.lax.stop_gradient(params)
        utility = cross_entropy(classifier_fn(fixed, safe), batch.public, batch.weights)
        fooled = _critic_loss(critics, fixed, safe, batch)
        seen = _critic_loss(critics, params, jax.lax.stop_gradient(safe), batch)
        total = total + guide.utility * utility - guide.critic * fooled + seen
        return total, info | {"utility": utility, "critic": seen}

    return Objective((*VAE_GROUPS, "discriminators", "critics"), loss_fn)


def adversary_objective(networks: BlinderNetworks, critics, *, official: bool = False):
    """Returns the objective of the discriminators and critics alone."""
    discriminate = discriminator_loss(networks, official=official)

    def loss_fn(params, batch: BlinderBatch):
        loss, info = discriminate(params, batch)
        if critics:
            z = sample(*networks.encode(params, batch.windows), batch.noise)
            safe = networks.decode(params, z, batch.target, batch.public)
            safe = jax.lax.stop_gradient(safe)
            loss = loss + _critic_loss(critics, params, safe, batch)
        return loss, info

    groups = ("discriminators", "critics") if critics else ("discriminators",)
    return Objective(groups, loss_fn)


def _critic_loss(critics, params, windows, batch):
    losses = [
        cross_entropy(net.apply({"params": one}, windows), targets, batch.weights)
        for net, one, targets in zip(
            critics, params["critics"], batch.private, strict=True
        )
    ]
    return sum(losses)
