"""What features learn by that shall be near in a class and far from others."""

import jax
import jax.numpy as jnp

from jaxanon.models.window_classifier import unit


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
