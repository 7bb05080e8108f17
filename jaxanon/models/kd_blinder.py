"""What discriminators learn where classes are missing: inherited, and kept smooth."""

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp

from jaxanon.models.blinder import BlinderNetworks
from jaxanon.models.losses import weighted_mean

_FAR = -1e9  # A logit whose class has probability 0 in float32, and no NaN anywhere.


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
    """The loss of a client that lacks some of the classes, ``float[]``, in nats.

    The sum of three terms: cross-entropy over the classes present, so that the others
    are not unlearned; ``distillation`` times the divergence of the absent classes'
    softmax from the teacher's, at ``temperature`` and times its square; and minus
    ``smoothing`` times the entropy of the present classes' softmax.

    With one class present the first and the last are 0 whatever the logits, and with
    one class absent so is the second: a client that has one class learns nothing at all
    while it agrees with its teacher.

    Args:
      logits: ``float[batch, classes]``.
      teacher: the same, of the model that the client was sent; a constant.
      targets: ``float[batch, classes]``, one-hot, of classes present.
      weights: ``float[batch]``, 0 where a row is padding.
      present: ``bool[classes]``, which classes the client has.
      temperature: ``float[]`` > 0.
      distillation: ``float[]`` >= 0.
      smoothing: ``float[]`` >= 0.
      restricted: whether the cross-entropy leaves absent classes out. Over all of them
        it teaches a client of one class too, and pushes the others down.

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
    entropies = -jnp.sum(targets * _log_softmax(logits, graded), axis=-1)
    kept = _divergence(teacher / temperature, logits / temperature, ~present)
    own = _log_softmax(logits, present)
    smooth = -jnp.sum(jnp.where(present[None], jnp.exp(own) * own, 0), axis=-1)
    rows = entropies + distillation * temperature**2 * kept - smoothing * smooth
    return weighted_mean(rows, weights)


def _log_softmax(logits, among):
    """Of the classes ``among`` alone; 0 for the others."""
    own = jax.nn.log_softmax(jnp.where(among[None], logits, _FAR))
    return jnp.where(among[None], own, 0)


def _divergence(teacher, student, among):
    """KL(teacher ‖ student) over the classes ``among``; 0 where there are none.

    Its slope, the difference of the two distributions, is written out: where they agree
    it is exactly 0, while a rounding error is a whole step to Adam.
    """
    true, own = _log_softmax(teacher, among), _log_softmax(student, among)
    terms = jnp.where(among[None], jnp.exp(true) * (true - own), 0)
    slope = jnp.where(among[None], jnp.exp(own) - jnp.exp(true), 0)
    line = jnp.sum(jax.lax.stop_gradient(slope) * student, axis=-1)
    return jax.lax.stop_gradient(jnp.sum(terms, axis=-1) - line) + line


def rarity(counts):
    """``1 - n_c / n_max`` of each class, ``float[classes]``; 0 if there is no row.

    Example:
      >>> rarity(jnp.array([4, 1, 0]))
      Array([0.  , 0.75, 1.  ], dtype=float32)
    """
    most = jnp.max(counts)
    return jnp.where(most > 0, 1 - counts / jnp.maximum(most, 1), 0)


def class_covariance_root(z, labels, mask, num_classes: int):
    """A root of the classes' mean covariance, weighted by their counts.

    Normal rows times its transpose have that covariance. It may be singular, and is 0
    where there is no row; a class of one row has covariance 0.

    Args:
      z: ``float[n, latent]``.
      labels: ``int[n]`` in ``[0, num_classes)``.
      mask: ``bool[n]``, False where a row is padding.
      num_classes: a Python int >= 1.

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
    """Networks whose latents are moved on their way to what reads them.

    A latent's own mean and variance, and so its KL divergence, stay.

    Args:
      networks: ``BlinderNetworks``.
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
