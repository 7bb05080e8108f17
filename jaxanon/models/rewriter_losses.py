"""What the networks of ``rewriter`` learn by, as functions of ``(params, batch)``."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.models.blinder import cross_entropy, kl_to_standard_normal, sample
from jaxanon.models.rewriter import Rewriter

VALUES = 512  # A window's squared error counts as that of so many values.
SHRINK = 75  # The released loss is so many times smaller.
FORMS = ("plain", "released")


class Batch(NamedTuple):
    """Windows with everything random about them already drawn."""

    windows: jax.Array  # float[batch, time, channels], standardised
    private: tuple  # of float[batch, classes], one-hot, for each private attribute
    noise: jax.Array  # float[batch, latent], N(0, 1)


def rewriter_loss(
    networks: Rewriter,
    params,
    batch: Batch,
    *,
    beta=0.0,
    reading=0.0,
    form: str = "plain",
):
    """Squared error, KL divergence and what the readers lose, per window.

    ``"plain"`` is ``256 · error + beta · KL + reading · CE`` with the mean squared
    error of a window's values, KL in nats and the readers' cross-entropy in nats: the
    negative evidence bound of a window of 512 values with unit variance, whatever
    number of values it has. For ``½‖x̂ − x‖² + β KL``, β is ``beta`` times values / 512.

    ``"released"`` is the published programs' ``(512 · error + 2 beta · KL) / 150``,
    which is the same over 75, with ``binary_cross_entropy`` for the readers. Their
    ``c`` is ``beta``; their weight of the adversary, 0.2, is a ``reading`` of -15.

    Args:
      networks: ``Rewriter``.
      params: of all its groups.
      batch: ``Batch``; the decoder is told the true classes.
      beta: weight of the KL divergence, a float or ``float[]``.
      reading: weight of the readers' loss; negative for an adversary's.
      form: one of ``FORMS``.

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
        loss = reader_loss(networks, params, z, batch.private, form=form)
        total, info = total + reading * loss, info | {"reader": loss}
    total = total / SHRINK if form == "released" else total
    return total, {"loss": total} | info


def reader_loss(networks: Rewriter, params, z, private, *, form: str = "plain"):
    """The readers' cross-entropy of latents, ``float[]``, summed over attributes."""
    if form == "released":
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
