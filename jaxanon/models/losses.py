"""Losses of classifiers, of those that confuse them, and of features and latents."""

import jax
import jax.numpy as jnp

from jaxanon.models.classifiers import unit

CONFUSIONS = ("chance", "official")


def confusion(logits, labels, variant: str = "chance"):
    """How far readers are from guessing.

    Args:
      logits: ``float[batch, classes]``, of a private attribute.
      labels: ``int[batch]``, its true classes.
      variant: ``"chance"`` is the cross-entropy of the guess that knows nothing, whose
        least value, ``log(classes)``, belongs to that guess alone; of two classes it is
        the published binary cross-entropy against 0.5. ``"official"`` is the identity
        version's, ``-log(1 - p[label]) - log(1 - max p)``: with more than two classes
        it is least where the true one alone is excluded, which tells something of it.

    Returns:
      ``float[]``, the mean.

    Example:
      >>> even, sure = jnp.zeros((1, 2)), jnp.array([[9.0, 0.0]])
      >>> label = jnp.array([0])
      >>> confusion(even, label), confusion(even, label, "official")
      (Array(0.6931472, dtype=float32), Array(1.3862944, dtype=float32))
      >>> bool(confusion(sure, label) > 4)
      True

    References:
      Malekzadeh et al., Mobile Sensor Data Anonymization, IoTDI 2019, section 4; both
      forms from the released programs.
    """
    if variant == "chance":
        return -jnp.mean(jax.nn.log_softmax(logits))
    surest = jnp.argmax(logits, axis=1)
    return -jnp.mean(_log_other(logits, labels) + _log_other(logits, surest))


def _log_other(logits, classes):
    """Log of one minus the probability of a class, exact where that is near 1."""
    own = jax.nn.one_hot(classes, logits.shape[1], dtype=bool)
    others = jnp.where(own, -jnp.inf, logits)
    total = jax.nn.logsumexp(logits, axis=1)
    return jax.nn.logsumexp(others, axis=1) - total


def off_chance(logits):
    """Mean distance of probabilities from those of a guess; GEN's second term.

    Of two classes, ``mean |0.5 - p|``; of any number the mean over classes.

    Example:
      >>> off_chance(jnp.array([[99.0, 0.0], [0.0, 0.0]]))
      Array(0.25, dtype=float32)

    References:
      Malekzadeh et al., Protecting Sensory Data against Sensitive Inferences, W-P2DS
      2018, section 3.
    """
    return jnp.mean(jnp.abs(1 / logits.shape[1] - jax.nn.softmax(logits)))


def weighted_cross_entropy(logits, labels, weights):
    """Mean cross-entropy with a weight for each row; 0 where all weights are.

    Example:
      >>> even = jnp.zeros((2, 2))
      >>> labels = jnp.array([0, 1])
      >>> weighted_cross_entropy(even, labels, jnp.array([3.0, 0.0]))
      Array(0.6931472, dtype=float32)
    """
    logs = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -weights @ logs[:, 0] / jnp.maximum(jnp.sum(weights), 1e-6)


def kernel_squares(params):
    """Sum of the squares of all kernels with more than one output, as Keras's ``l2``.

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
    """How unlikely a row's features are to pick one of its class among all others.

    A row picks another with probability proportional to ``exp(cosine / temperature)``.
    Of each row the negative logarithm is averaged over others of its class; a row
    without such others does not count.

    Args:
      features: ``float[n, d]``, n at least 2; their lengths do not matter.
      labels: ``int[n]``.
      temperature: ``float[]`` > 0.

    Returns:
      ``float32[]``, the mean over rows that count, in nats; 0 where none does. Where
      all features are alike it is ``log(n - 1)``.

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
            "features must be float[n, d] of two rows at least, with one of labels for "
            f"each, got shapes {features.shape} and {labels.shape}."
        )
    directions = unit(features)
    likeness = directions @ directions.T / temperature
    own = jnp.eye(len(labels), dtype=bool)
    alike = (labels[:, None] == labels[None]) & ~own
    others = jnp.where(own, -jnp.inf, likeness)
    logs = likeness - jax.nn.logsumexp(others, axis=1, keepdims=True)
    number = jnp.sum(alike, axis=1)
    each = -jnp.sum(jnp.where(alike, logs, 0), axis=1) / jnp.maximum(number, 1)
    return jnp.sum(each) / jnp.maximum(jnp.sum(number > 0), 1)


def balanced_error(logits, labels, groups, num_groups: int, *, absent: bool = False):
    """Mean over groups of the probability that the true class does not get.

    With rows grouped by their labels it is the balanced error rate of a guess drawn by
    the probabilities: 0 at best, ``1 - 1 / classes`` for a guess that does not look,
    and 1 at worst.

    Args:
      logits: ``float[batch, classes]``.
      labels: ``int[batch]``, the true classes.
      groups: ``int[batch]`` in ``[0, num_groups)``.
      num_groups: how many there are.
      absent: count a group without rows as one without error, as the released program
        does; else it does not count.

    Returns:
      ``float[]``.

    Example:
      Three rows of class 0, all guessed, and one of class 1, missed.

      >>> logits = jnp.array([[50.0, 0.0]] * 4)
      >>> labels = jnp.array([0, 0, 0, 1])
      >>> balanced_error(logits, labels, labels, 2)
      Array(0.5, dtype=float32)

    References:
      Boutet et al., DySan, AsiaCCS 2021, eq. 1. Its range is [0, 1], not [0, 0.5].
    """
    right = jnp.take_along_axis(jax.nn.softmax(logits), labels[:, None], axis=1)
    member = jax.nn.one_hot(groups, num_groups)
    counts = jnp.sum(member, axis=0)
    errors = (1 - right[:, 0]) @ member / jnp.maximum(counts, 1)
    return jnp.sum(errors) / (num_groups if absent else jnp.sum(counts > 0))


def from_chance(error, num_classes: int, *, signed: bool = False):
    """How far a balanced error is from that of a guess that does not look.

    Args:
      error: ``float[]``.
      num_classes: of the attribute.
      signed: negative beyond chance, as published; a sanitizer that goes on beyond it
        makes windows that tell the class by its opposite.

    Example:
      >>> error = jnp.float32(0.75)
      >>> from_chance(error, 2), from_chance(error, 2, signed=True)
      (Array(0.25, dtype=float32), Array(-0.25, dtype=float32))
    """
    left = (1 - 1 / num_classes) - error
    return left if signed else jnp.abs(left)


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
