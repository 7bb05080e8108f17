"""Blinder graded on what it lets out: a critic and a judge of anonymized windows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
from flax import linen as nn

from jaxanon.kernels import Objective
from jaxanon.models.blinder import (
    VAE_GROUPS,
    Batch,
    LossScale,
    Networks,
    cross_entropy,
    sample,
)
from jaxanon.models.blinder_losses import discriminator_loss, joint_terms
from jaxanon.models.layers import MultiLayer, flatten


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
    networks: Networks,
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

    def loss_fn(params, batch: Batch):
        total, info, z = joint_terms(networks, scale, params, batch, released)
        safe = networks.decode(params, z, batch.shown, batch.public)
        fixed = jax.lax.stop_gradient(params)
        utility = cross_entropy(judge_fn(fixed, safe), batch.public, batch.weights)
        fooled = _criticise(critics, fixed, safe, batch)
        seen = _criticise(critics, params, jax.lax.stop_gradient(safe), batch)
        total = total + guide.utility * utility - guide.critic * fooled + seen
        return total, info | {"utility": utility, "critic": seen}

    return Objective((*VAE_GROUPS, "discriminators", "critics"), loss_fn)


def adversary_objective(networks: Networks, critics, *, released: bool = False):
    """What discriminators, and critics if there are any, learn while all else rests."""
    discriminate = discriminator_loss(networks, released=released)

    def loss_fn(params, batch: Batch):
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
