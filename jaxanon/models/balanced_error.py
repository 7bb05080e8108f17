"""The balanced error of soft guesses, and how far it is from that of guessing."""

import jax
import jax.numpy as jnp


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
