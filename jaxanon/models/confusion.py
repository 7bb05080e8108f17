"""Losses of whoever wants a reader to keep guessing, and of the reader."""

import jax
import jax.numpy as jnp

CONFUSIONS = ("chance", "released")


def confusion(logits, labels, form: str = "chance"):
    """How far readers are from guessing.

    Args:
      logits: ``float[batch, classes]``, of a private attribute.
      labels: ``int[batch]``, its true classes.
      form: ``"chance"`` is the cross-entropy of the guess that knows nothing, whose
        least value, ``log(classes)``, belongs to that guess alone; of two classes it is
        the published binary cross-entropy against 0.5. ``"released"`` is the identity
        version's, ``-log(1 - p[label]) - log(1 - max p)``: with more than two classes
        it is least where the true one alone is excluded, which tells something of it.

    Returns:
      ``float[]``, the mean.

    Example:
      >>> even, sure = jnp.zeros((1, 2)), jnp.array([[9.0, 0.0]])
      >>> label = jnp.array([0])
      >>> confusion(even, label), confusion(even, label, "released")
      (Array(0.6931472, dtype=float32), Array(1.3862944, dtype=float32))
      >>> bool(confusion(sure, label) > 4)
      True

    References:
      Malekzadeh et al., Mobile Sensor Data Anonymization, IoTDI 2019, section 4; both
      forms from the released programs.
    """
    if form == "chance":
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
