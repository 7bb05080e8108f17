"""KD-Blinder's losses and latent noise for clients with missing classes."""

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp

from jaxanon.models.blinder import BlinderNetworks
from jaxanon.models.losses import weighted_mean

_FAR = -1e9  # A logit with probability 0 in float32 that causes no NaN.


def inheritance_loss(
    logits,
    teacher,
    targets,
    weights,
    present,
    *,
    temperature=2.0,
    distillation=1.0,
    smoothing=0.002,
    restricted: bool = True,
):
    """Returns the loss of a client that lacks some classes, ``float[]``, in nats.

    The loss is the sum of three terms:

    1. the cross-entropy over the present classes, which preserves the absent ones;
    2. ``distillation`` times the KL divergence of the absent classes' softmax from the
       teacher's, at ``temperature`` and multiplied by its square;
    3. minus ``smoothing`` times the entropy of the present classes' softmax.

    With one present class, the first and the last term are 0 for all logits. With one
    absent class, so is the second. A client with one class therefore has no gradient
    while it agrees with its teacher.

    Args:
      logits: ``float[batch, classes]``.
      teacher: ``float[batch, classes]``, logits of the received model; a constant.
      targets: ``float[batch, classes]``, one-hot, of present classes.
      weights: ``float[batch]``, 0 for padding.
      present: ``bool[classes]``, whether the client has each class.
      temperature: ``float[]`` > 0.
      distillation: ``float[]`` >= 0.
      smoothing: ``float[]`` >= 0.
      restricted: whether to restrict the cross-entropy to present classes. Otherwise a
        client with one class learns too, and suppresses the others.

    Example:
      >>> logits, targets = jnp.zeros((1, 3)), jnp.array([[1.0, 0.0, 0.0]])
      >>> has = jnp.array([True, True, False])
      >>> inheritance_loss(logits, logits, targets, jnp.ones(1), has, smoothing=0)
      Array(0.6931472, dtype=float32)

    References:
      Shuai et al., BalanceFL: Addressing Class Imbalance in Long-tail Federated
      Learning, IPSN 2022; Hinton et al., Distilling the Knowledge in a Neural Network,
      2015, section 2 (the square of the temperature).
    """
    graded = present if restricted else jnp.ones_like(present)
    cross_entropy = -jnp.sum(targets * _log_softmax(logits, graded), axis=-1)
    kl = _divergence(teacher / temperature, logits / temperature, ~present)
    logs = _log_softmax(logits, present)
    entropy = -jnp.sum(jnp.where(present[None], jnp.exp(logs) * logs, 0), axis=-1)
    rows = cross_entropy + distillation * temperature**2 * kl - smoothing * entropy
    return weighted_mean(rows, weights)


def _log_softmax(logits, among):
    """Log-softmax over the classes ``among``; 0 for the others."""
    logs = jax.nn.log_softmax(jnp.where(among[None], logits, _FAR))
    return jnp.where(among[None], logs, 0)


def _divergence(teacher, student, among):
    """KL(teacher ‖ student) over the classes ``among``; 0 without classes.

    The gradient, the difference of the two distributions, is explicit so that it is
    exactly 0 where they agree. Adam would turn a rounding error into a full step.
    """
    true, logs = _log_softmax(teacher, among), _log_softmax(student, among)
    terms = jnp.where(among[None], jnp.exp(true) * (true - logs), 0)
    slope = jnp.where(among[None], jnp.exp(logs) - jnp.exp(true), 0)
    line = jnp.sum(jax.lax.stop_gradient(slope) * student, axis=-1)
    return jax.lax.stop_gradient(jnp.sum(terms, axis=-1) - line) + line


def rarity(counts):
    """Returns ``1 - n_c / n_max`` of each class, ``float[classes]``; 0 without rows.

    Example:
      >>> rarity(jnp.array([4, 1, 0]))
      Array([0.  , 0.75, 1.  ], dtype=float32)
    """
    largest = jnp.max(counts)
    return jnp.where(largest > 0, 1 - counts / jnp.maximum(largest, 1), 0)


def class_covariance_root(z, labels, mask, num_classes: int):
    """Returns a root of the mean within-class covariance, weighted by class counts.

    Standard normal rows times its transpose have that covariance. It may be singular.
    It is 0 without rows, and a class with one row has covariance 0.

    Args:
      z: ``float[n, latent]``.
      labels: ``int[n]`` in ``[0, num_classes)``.
      mask: ``bool[n]``, False for padding.
      num_classes: number of classes, a Python int >= 1.

    Returns:
      ``float[latent, latent]``.

    Example:
      >>> z, labels = jnp.array([[1.0], [5.0], [9.0]]), jnp.array([0, 0, 1])
      >>> root = class_covariance_root(z, labels, jnp.ones(3, bool), 2)
      >>> abs(float((root @ root.T)[0, 0]) - 8 / 3) < 1e-5
      True

    References:
      Shuai et al., BalanceFL, IPSN 2022; Yang and Ardakanian, Blinder, ACM TOSN 2023,
      section 7, baseline 4.
    """
    z = jnp.where(mask[:, None], z, 0)
    exact = jax.lax.Precision.HIGHEST
    hot = jax.nn.one_hot(labels, num_classes, dtype=z.dtype) * mask[:, None]
    counts = jnp.maximum(jnp.sum(hot, axis=0), 1)
    means = jnp.matmul(hot.T, z, precision=exact) / counts[:, None]
    centred = (z - jnp.matmul(hot, means, precision=exact)) * mask[:, None]
    covariance = jnp.matmul(centred.T, centred, precision=exact)
    covariance = covariance / jnp.maximum(jnp.sum(mask), 1)
    values, vectors = jnp.linalg.eigh(covariance)
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def shift_latents(networks: BlinderNetworks, shift) -> BlinderNetworks:
    """Returns networks that add ``shift`` to the inputs of decoder and discriminators.

    The mean and variance of the latents, and their KL divergence, stay the same.

    Args:
      networks: Blinder's networks.
      shift: ``float[batch, latent]``.
    """
    return cast(BlinderNetworks, _Shifted(networks, shift))


class _Shifted(NamedTuple):
    networks: BlinderNetworks
    shift: jax.Array

    def encode(self, params, windows):
        return self.networks.encode(params, windows)

    def decode(self, params, z, private, public):
        return self.networks.decode(params, z + self.shift, private, public)

    def discriminate(self, params, z):
        return self.networks.discriminate(params, z + self.shift)
