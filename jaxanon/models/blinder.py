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

RELEASED_SCALE = 512 / 150  # times the mean squared error of a window


class BlinderBatch(NamedTuple):
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


class BlinderNetworks(NamedTuple):
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
    initialization: str = "lecun",
    discriminator_hidden_sizes: Sequence[int] = (128, 128),
) -> BlinderNetworks:
    """Blinder's networks for windows of ``time`` samples by ``channels`` channels.

    Args:
      time: samples per window; with ``filters`` a multiple of ``2**len(filters)``.
      channels: sensor channels.
      private_classes: number of classes of each private attribute.
      latent: size of the latent representation (paper: 25).
      hidden: widths of the encoder's dense layers; the decoder mirrors them.
      filters: filters of the encoder's convolutions, if any; the decoder mirrors them.
      initialization: of the dense layers, ``"lecun"`` or ``"official"``; see ``Dense``.
      discriminator_hidden_sizes: widths of the discriminators' layers.

    Returns:
      ``BlinderNetworks``.

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


def vae_loss(networks: BlinderNetworks, scale: LossScale, *, released: bool = False):
    """Eq. 4: ``(params, BlinderBatch) -> (float[], info)``.

    The paper's form is ``alpha`` times the squared error summed over the window, plus
    ``beta`` times the KL divergence, minus ``gamma`` times the discriminators' losses.
    ``released`` is the published program's: ``(512 * mean squared error + 2 beta KL) /
    150`` in place of the first two terms, the discriminators' losses as in
    ``cross_entropy(released=True)``, and no ``alpha``.
    """

    def loss_fn(params, batch: BlinderBatch):
        total, info, _ = _vae_terms(networks, scale, params, batch, released)
        return total, info

    return loss_fn


def discriminator_loss(networks: BlinderNetworks, *, released: bool = False):
    """Eq. 3 on fixed latents: ``(params, BlinderBatch) -> (float[], info)``."""

    def loss_fn(params, batch: BlinderBatch):
        mean, log_variance = networks.encode(params, batch.windows)
        z = jax.lax.stop_gradient(sample(mean, log_variance, batch.noise))
        loss = _discriminator_loss(
            networks.discriminate(params, z), batch.private, batch.weights, released
        )
        return loss, {"discriminator": loss}

    return loss_fn


def with_shadows(networks: BlinderNetworks):
    """Latents of real and shadow windows:
    ``(params, BlinderBatch) -> (z, private, weights)``.

    A shadow window is decoded from the latent of a real one under another private
    class, and both are encoded again, so that a client whose private attribute never
    changes still has every class to tell apart.
    """

    def inputs_fn(params, batch: BlinderBatch):
        mean, log_variance = networks.encode(params, batch.windows)
        z = sample(mean, log_variance, batch.noise)
        shadows = networks.decode(params, z, batch.shadow, batch.public)
        # The windows' own mean and variance are known; only the noise is drawn again.
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
    """Latents of real windows alone, in the shape of ``with_shadows``."""

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
    released: bool = False,
) -> tuple[Phase, ...]:
    """Algorithm 1, lines 16-21, ``local_steps`` times.

    Line 20: the discriminators take ``discriminator_steps`` on fixed latents. Line 21:
    encoder and decoder take one step against the discriminators as they now are.
    """
    graded = vae_loss(networks, scale, released=released)

    def discriminate(params, inputs):
        z, private, weights = inputs
        logits = networks.discriminate(params, z)
        return _discriminator_loss(logits, private, weights, released)

    latents = with_shadows(networks) if shadows else without_shadows(networks)
    adversary = Phase(
        ("discriminators",), discriminate, learning_rate, discriminator_steps, latents
    )
    autoencoder = Phase(
        VAE_GROUPS, lambda params, batch: graded(params, batch)[0], learning_rate
    )
    return (adversary, autoencoder) * local_steps


def objectives(networks: BlinderNetworks, scale: LossScale, *, released: bool = False):
    """Algorithm 1, lines 22-23: what the adapted groups are graded by, one by one."""
    return (
        Objective(VAE_GROUPS, vae_loss(networks, scale, released=released)),
        Objective(("discriminators",), discriminator_loss(networks, released=released)),
    )


def joint_objective(
    networks: BlinderNetworks, scale: LossScale, *, released: bool = False
):
    """Both of ``objectives`` in one pass: same gradients, one encoding of the query.

    Encoder and decoder meet the discriminators as constants, and the discriminators
    meet the latents as constants.
    """

    def loss_fn(params, batch: BlinderBatch):
        total, info, _ = joint_terms(networks, scale, params, batch, released)
        return total, info

    return Objective((*VAE_GROUPS, "discriminators"), loss_fn)


def joint_terms(
    networks: BlinderNetworks, scale: LossScale, params, batch, released=False
):
    """The loss of ``joint_objective``, what to show of it, and the latents."""
    fixed = params | {"discriminators": jax.lax.stop_gradient(params["discriminators"])}
    total, info, z = _vae_terms(networks, scale, fixed, batch, released)
    logits = networks.discriminate(params, jax.lax.stop_gradient(z))
    loss = _discriminator_loss(logits, batch.private, batch.weights, released)
    return total + loss, info | {"discriminator": loss}, z


def _discriminator_loss(logits, private, weights, released):
    losses = [
        cross_entropy(one, targets, weights, released=released)
        for one, targets in zip(logits, private, strict=True)
    ]
    return sum(losses)


def _vae_terms(networks, scale, params, batch, released):
    """Eq. 4, what to show of it, and the latents: ``(float[], info, z)``."""
    mean, log_variance = networks.encode(params, batch.windows)
    z = sample(mean, log_variance, batch.noise)
    rebuilt = networks.decode(params, z, batch.private, batch.public)
    errors = jnp.sum(jnp.square(batch.windows - rebuilt), axis=(1, 2))
    error = weighted_mean(errors, batch.weights)
    kl = weighted_mean(kl_to_standard_normal(mean, log_variance), batch.weights)
    logits = networks.discriminate(params, z)
    adversary = _discriminator_loss(logits, batch.private, batch.weights, released)
    size = batch.windows[0].size
    if released:
        total = RELEASED_SCALE * error / size + 2 * scale.beta * kl / 150
    else:
        total = scale.alpha * error + scale.beta * kl
    total = total - scale.gamma * adversary
    return total, {"loss": total, "reconstruction": error / size, "kl": kl}, z


class Critic(nn.Module):
    """A window to the logits of one private attribute: an attacker on the output."""

    num_classes: int
    hidden: Sequence[int] = (256, 128)

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels] -> float[batch, num_classes]``."""
        return MultiLayer((*self.hidden, self.num_classes))(flatten(windows))


class GuideScale(NamedTuple):
    """Weights of the two terms; each a float or ``float[]``."""

    utility: jax.Array | float
    critic: jax.Array | float


def guided_objective(
    networks: BlinderNetworks,
    critics: Sequence[Critic],
    judge_fn: Callable,
    scale: LossScale,
    guide: GuideScale,
    *,
    released: bool = False,
) -> Objective:
    """``joint_objective`` and two terms on windows decoded under any private class.

    The published loss never looks at the windows that leave the device, decoded under a
    class that is not the wearer's. Here a classifier of raw windows (fixed meanwhile)
    must still read the public attribute from them, weighted by ``guide.utility``, and a
    critic that learns the *true* private class from them must fail, weighted by
    ``guide.critic``.

    Args:
      networks: Blinder's.
      critics: one for each private attribute; their parameters are group ``critics``.
      judge_fn: ``(params, windows) -> logits`` of the public attribute.
      scale: of the published loss.
      guide: of the two terms.
      released: as in ``vae_loss``.

    Returns:
      ``Objective`` for encoder, decoder, discriminators and critics.
    """

    def loss_fn(params, batch: BlinderBatch):
        total, info, z = joint_terms(networks, scale, params, batch, released)
        safe = networks.decode(params, z, batch.shown, batch.public)
        fixed = jax.lax.stop_gradient(params)
        utility = cross_entropy(judge_fn(fixed, safe), batch.public, batch.weights)
        fooled = _criticise(critics, fixed, safe, batch)
        seen = _criticise(critics, params, jax.lax.stop_gradient(safe), batch)
        total = total + guide.utility * utility - guide.critic * fooled + seen
        return total, info | {"utility": utility, "critic": seen}

    return Objective((*VAE_GROUPS, "discriminators", "critics"), loss_fn)


def adversary_objective(networks: BlinderNetworks, critics, *, released: bool = False):
    """What discriminators, and critics if there are any, learn while all else rests."""
    discriminate = discriminator_loss(networks, released=released)

    def loss_fn(params, batch: BlinderBatch):
        loss, info = discriminate(params, batch)
        if critics:
            z = sample(*networks.encode(params, batch.windows), batch.noise)
            safe = networks.decode(params, z, batch.shown, batch.public)
            safe = jax.lax.stop_gradient(safe)
            loss = loss + _criticise(critics, params, safe, batch)
        return loss, info

    groups = ("discriminators", "critics") if critics else ("discriminators",)
    return Objective(groups, loss_fn)


def _criticise(critics, params, windows, batch):
    losses = [
        cross_entropy(net.apply({"params": one}, windows), targets, batch.weights)
        for net, one, targets in zip(
            critics, params["critics"], batch.private, strict=True
        )
    ]
    return sum(losses)
