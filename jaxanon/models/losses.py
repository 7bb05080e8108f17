"""Losses for classifiers, adversarial training, features and latents."""

import jax
import jax.numpy as jnp

from jaxanon.models.classifiers import unit

CONFUSIONS = ("chance", "official")


def confusion(logits, labels, variant: str = "chance"):
    """Returns a loss that is low if a classifier of a private attribute is confused.

    Args:
      logits: ``float[batch, classes]``, of a private attribute.
      labels: ``int[batch]``, its true classes.
      variant: ``"chance"`` is the cross-entropy against the uniform distribution. Its
        minimum, ``log(classes)``, is reached only by uniform predictions. For two
        classes, it is the published binary cross-entropy against 0.5. ``"official"`` is
        the loss of the identity version, ``-log(1 - p[label]) - log(1 - max p)``. For
        more than two classes, its minimum excludes the true class, which leaks
        information about it.

    Returns:
      ``float[]``, the mean over the batch.

    Example:
      >>> even, sure = jnp.zeros((1, 2)), jnp.array([[9.0, 0.0]])
      >>> label = jnp.array([0])
      >>> confusion(even, label), confusion(even, label, "official")
      (Array(0.6931472, dtype=float32), Array(1.3862944, dtype=float32))
      >>> bool(confusion(sure, label) > 4)
      True

    References:
      Malekzadeh et al., Mobile Sensor Data Anonymization, IoTDI 2019, section 4; both
      forms from the official programs.
    """
    if variant == "chance":
        return -jnp.mean(jax.nn.log_softmax(logits))
    surest = jnp.argmax(logits, axis=1)
    return -jnp.mean(_log_other(logits, labels) + _log_other(logits, surest))


def _log_other(logits, classes):
    """Log of one minus a class probability, precise where the latter is near 1."""
    mask = jax.nn.one_hot(classes, logits.shape[1], dtype=bool)
    others = jnp.where(mask, -jnp.inf, logits)
    total = jax.nn.logsumexp(logits, axis=1)
    return jax.nn.logsumexp(others, axis=1) - total


def distance_from_uniform(logits):
    """Returns the mean distance of probabilities from uniform; GEN's second term.

    It is ``mean |1 / classes - p|`` over rows and classes.

    Example:
      >>> distance_from_uniform(jnp.array([[99.0, 0.0], [0.0, 0.0]]))
      Array(0.25, dtype=float32)

    References:
      Malekzadeh et al., Protecting Sensory Data against Sensitive Inferences, W-P2DS
      2018, section 3.
    """
    return jnp.mean(jnp.abs(1 / logits.shape[1] - jax.nn.softmax(logits)))


def weighted_cross_entropy(logits, labels, weights):
    """Returns the mean cross-entropy under row weights; 0 if all weights are 0.

    Example:
      >>> even = jnp.zeros((2, 2))
      >>> labels = jnp.array([0, 1])
      >>> weighted_cross_entropy(even, labels, jnp.array([3.0, 0.0]))
      Array(0.6931472, dtype=float32)
    """
    logs = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -weights @ logs[:, 0] / jnp.maximum(jnp.sum(weights), 1e-6)


def kernel_squares(params):
    """Returns the sum of squares of all kernels with more than one output.

    This is Keras's ``l2`` regularization of these kernels.

    Example:
      >>> layer = {"kernel": jnp.full((2, 3), 2.0), "bias": jnp.ones(3)}
      >>> kernel_squares({"a": layer, "b": {"kernel": jnp.ones((5, 1))}})
      Array(24., dtype=float32)
    """
    leaves = jax.tree_util.tree_leaves_with_path(params)
    kernels = [
        leaf
        for path, leaf in leaves
        if getattr(path[-1], "key", None) == "kernel" and leaf.shape[-1] > 1
    ]
    return sum((jnp.sum(leaf**2) for leaf in kernels), jnp.zeros(()))


def supervised_contrastive_loss(features, labels, temperature):
    """Returns the supervised contrastive loss of features.

    A row selects another with probability proportional to ``exp(cosine /
    temperature)``. The loss of a row is the mean negative log-probability of the other
    rows of its class; a row without such others is ignored.

    Args:
      features: ``float[n, d]``, n at least 2; they are scaled to length 1.
      labels: ``int[n]``.
      temperature: ``float[]`` > 0.

    Returns:
      ``float32[]``, the mean over rows in nats; 0 if all rows are ignored. It is
      ``log(n - 1)`` if all features are equal.

    Raises:
      ValueError: for a single row, or labels that are not one per row.

    Example:
      >>> labels = jnp.array([0, 0, 1])
      >>> f"{supervised_contrastive_loss(jnp.ones((3, 2)), labels, 0.5):.4f}"  # log 2
      '0.6931'

    References:
      Khosla et al., Supervised contrastive learning, NeurIPS 2020, equation 2.
    """
    if len(features) < 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            "features must be float[n, d] with n >= 2, and labels int[n], got shapes "
            f"{features.shape} and {labels.shape}."
        )
    directions = unit(features)
    similarity = directions @ directions.T / temperature
    itself = jnp.eye(len(labels), dtype=bool)
    positive = (labels[:, None] == labels[None]) & ~itself
    others = jnp.where(itself, -jnp.inf, similarity)
    logs = similarity - jax.nn.logsumexp(others, axis=1, keepdims=True)
    count = jnp.sum(positive, axis=1)
    rows = -jnp.sum(jnp.where(positive, logs, 0), axis=1) / jnp.maximum(count, 1)
    return jnp.sum(rows) / jnp.maximum(jnp.sum(count > 0), 1)


def balanced_error(logits, labels, groups, num_groups: int, *, absent: bool = False):
    """Returns one minus the probability of the true class, averaged over groups.

    With rows grouped by label, it is the balanced error rate of predictions drawn from
    the probabilities: 0 at best, ``1 - 1 / classes`` at chance level, 1 at worst.

    Args:
      logits: ``float[batch, classes]``.
      labels: ``int[batch]``, the true classes.
      groups: ``int[batch]`` in ``[0, num_groups)``.
      num_groups: number of groups.
      absent: whether a group without rows counts as free of errors, as in the official
        program; else it is ignored.

    Returns:
      ``float[]``.

    Example:
      Three rows of class 0 are predicted correctly, one of class 1 is not.

      >>> logits = jnp.array([[50.0, 0.0]] * 4)
      >>> labels = jnp.array([0, 0, 0, 1])
      >>> balanced_error(logits, labels, labels, 2)
      Array(0.5, dtype=float32)

    References:
      Boutet et al., DySan, AsiaCCS 2021, eq. 1. Its range is [0, 1], not [0, 0.5].
    """
    correct = jnp.take_along_axis(jax.nn.softmax(logits), labels[:, None], axis=1)
    onehot = jax.nn.one_hot(groups, num_groups)
    counts = jnp.sum(onehot, axis=0)
    errors = (1 - correct[:, 0]) @ onehot / jnp.maximum(counts, 1)
    return jnp.sum(errors) / (num_groups if absent else jnp.sum(counts > 0))


def distance_from_chance(error, num_classes: int, *, signed: bool = False):
    """Returns the distance of a balanced error from chance level.

    Args:
      error: balanced error, ``float[]``.
      num_classes: number of classes.
      signed: whether the result is negative above chance level, as published. A
        sanitizer that exceeds chance level leaks the class by its opposite.

    Example:
      >>> error = jnp.float32(0.75)
      >>> distance_from_chance(error, 2), distance_from_chance(error, 2, signed=True)
      (Array(0.25, dtype=float32), Array(-0.25, dtype=float32))
    """
    distance = (1 - 1 / num_classes) - error
    return distance if signed else jnp.abs(distance)


def kl_to_standard_normal(mean, log_variance):
    """Returns KL(N(mean, e^log_variance) ‖ N(0, 1)), summed over the last axis.

    The result is in nats.

    Example:
      >>> kl_to_standard_normal(jnp.array([[2.0, 0.0]]), jnp.zeros((1, 2)))
      Array([2.], dtype=float32)
    """
    terms = mean**2 + jnp.exp(log_variance) - 1 - log_variance
    return 0.5 * jnp.sum(terms, axis=-1)


def weighted_mean(values, weights):
    """Returns the weighted mean of ``float[batch]``; 0 if all weights are 0."""
    total = jnp.sum(weights)
    return jnp.sum(values * weights) / jnp.where(total > 0, total, 1)


def cross_entropy(logits, targets, weights, *, official: bool = False):
    """Returns the weighted mean cross-entropy, ``float[]``, in nats.

    Chance level is ``log(classes)``. With ``official``, it is the loss of Blinder's
    program, a binary cross-entropy with the softmax as its logits. For two classes,
    that loss is between 0.503 and 1.003, and 0.724 for a uniform guess.

    Args:
      logits: ``float[batch, classes]``.
      targets: ``float[batch, classes]``, one-hot.
      weights: ``float[batch]``.
      official: whether to use the loss of Blinder's program.

    Example:
      >>> uniform, target = jnp.zeros((1, 2)), jnp.array([[1.0, 0.0]])
      >>> [f"{cross_entropy(uniform, target, jnp.ones(1), official=r):.4f}"
      ...  for r in (False, True)]
      ['0.6931', '0.7241']
    """
    if official:
        p = jax.nn.softmax(logits)
        rows = jnp.mean(jax.nn.softplus(p) - targets * p, axis=-1)
    else:
        rows = -jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1)
    return weighted_mean(rows, weights)
