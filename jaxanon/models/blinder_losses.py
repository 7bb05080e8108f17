"""What Blinder's groups descend inside and outside: its phases and objectives."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import Objective, Phase
from jaxanon.models.blinder import (
    RELEASED_SCALE,
    VAE_GROUPS,
    Batch,
    LossScale,
    Networks,
    cross_entropy,
    kl_to_standard_normal,
    sample,
    weighted_mean,
)


def vae_loss(networks: Networks, scale: LossScale, *, released: bool = False):
    """Eq. 4: ``(params, Batch) -> (float[], info)``.

    The paper's form is ``alpha`` times the squared error summed over the window, plus
    ``beta`` times the KL divergence, minus ``gamma`` times the discriminators' losses.
    ``released`` is the published program's: ``(512 * mean squared error + 2 beta KL) /
    150`` in place of the first two terms, the discriminators' losses as in
    ``cross_entropy(released=True)``, and no ``alpha``.
    """

    def loss_fn(params, batch: Batch):
        total, info, _ = _vae_terms(networks, scale, params, batch, released)
        return total, info

    return loss_fn


def discriminator_loss(networks: Networks, *, released: bool = False):
    """Eq. 3 on fixed latents: ``(params, Batch) -> (float[], info)``."""

    def loss_fn(params, batch: Batch):
        mean, log_variance = networks.encode(params, batch.windows)
        z = jax.lax.stop_gradient(sample(mean, log_variance, batch.noise))
        loss = _discriminator_loss(
            networks.discriminate(params, z), batch.private, batch.weights, released
        )
        return loss, {"discriminator": loss}

    return loss_fn


def with_shadows(networks: Networks):
    """Latents of real and shadow windows: ``(params, Batch) -> (z, private, weights)``.

    A shadow window is decoded from the latent of a real one under another private
    class, and both are encoded again, so that a client whose private attribute never
    changes still has every class to tell apart.
    """

    def inputs_fn(params, batch: Batch):
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


def without_shadows(networks: Networks):
    """Latents of real windows alone, in the shape of ``with_shadows``."""

    def inputs_fn(params, batch: Batch):
        z = sample(*networks.encode(params, batch.windows), batch.noise)
        return z, batch.private, batch.weights

    return inputs_fn


def phases(
    networks: Networks,
    scale: LossScale,
    step_size,
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
        ("discriminators",), discriminate, step_size, discriminator_steps, latents
    )
    autoencoder = Phase(
        VAE_GROUPS, lambda params, batch: graded(params, batch)[0], step_size
    )
    return (adversary, autoencoder) * local_steps


def objectives(networks: Networks, scale: LossScale, *, released: bool = False):
    """Algorithm 1, lines 22-23: what the adapted groups are graded by, one by one."""
    return (
        Objective(VAE_GROUPS, vae_loss(networks, scale, released=released)),
        Objective(("discriminators",), discriminator_loss(networks, released=released)),
    )


def joint_objective(networks: Networks, scale: LossScale, *, released: bool = False):
    """Both of ``objectives`` in one pass: same gradients, one encoding of the query.

    Encoder and decoder meet the discriminators as constants, and the discriminators
    meet the latents as constants.
    """

    def loss_fn(params, batch: Batch):
        total, info, _ = joint_terms(networks, scale, params, batch, released)
        return total, info

    return Objective((*VAE_GROUPS, "discriminators"), loss_fn)


def joint_terms(networks: Networks, scale: LossScale, params, batch, released=False):
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
