"""What discriminators learn where classes are missing: inherited, and kept smooth."""

import jax
import jax.numpy as jnp

from jaxanon.models.blinder import weighted_mean

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
