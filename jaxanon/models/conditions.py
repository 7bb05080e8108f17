"""What a diffusion is told of a window: its classes, its statistics, or nothing."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

LEAST_STD = 1e-3  # Of standardised windows; what spreads less is said not to spread.


class Condition(NamedTuple):
    """What is known of each window of a batch; a tree of arrays, which may be stacked.

    An attribute of ``n`` classes has the class ``n`` where it is not known.
    """

    classes: dict[str, jax.Array]  # int32[batch] of each attribute
    features: jax.Array  # float[batch, d], statistics; of no account where not known
    known: jax.Array  # bool[batch]; whether the statistics are


def nothing(sizes: dict[str, int], num_features: int, batch: int) -> Condition:
    """The condition that says nothing, for guidance to lean away from.

    Args:
      sizes: number of classes of each attribute.
      num_features: of the statistics.
      batch: windows.

    Example:
      >>> nothing({"activity": 3}, 6, 2).classes["activity"]
      Array([3, 3], dtype=int32)
    """
    classes = {name: jnp.full(batch, size, jnp.int32) for name, size in sizes.items()}
    return Condition(classes, jnp.zeros((batch, num_features)), jnp.zeros(batch, bool))


def forget(key, condition: Condition, sizes: dict[str, int], rate) -> Condition:
    """Makes each attribute, and the statistics, unknown with probability ``rate``.

    Each falls on its own, so that a network learns what any of them says by itself.

    Args:
      key: typed PRNG key.
      condition: of ``batch`` windows.
      sizes: number of classes of each attribute.
      rate: ``float[]`` in [0, 1].

    Example:
      >>> told = nothing({"a": 2}, 1, 2)._replace(classes={"a": jnp.array([0, 1])})
      >>> forget(jax.random.key(0), told, {"a": 2}, 1.0).classes["a"]
      Array([2, 2], dtype=int32)
    """
    falls = jax.random.bernoulli(key, rate, (1 + len(sizes), len(condition.known)))
    classes = {
        name: jnp.where(fall, size, condition.classes[name])
        for (name, size), fall in zip(sizes.items(), falls[1:], strict=True)
    }
    return condition._replace(classes=classes, known=condition.known & ~falls[0])


def moments(windows):
    """Mean and standard deviation of each channel of each window.

    Args:
      windows: ``float[batch, time, channels]``.

    Returns:
      ``float[batch, 2 * channels]``, means first; population standard deviations.

    Example:
      >>> moments(jnp.array([[[1.0], [3.0]]]))
      Array([[2., 1.]], dtype=float32)
    """
    return jnp.concatenate([windows.mean(axis=1), windows.std(axis=1)], axis=1)


def statistics(moments, class_mean, class_std):
    """Mean, standard deviation and z-score, as a condition.

    The z-score is how many standard deviations a window's mean lies from the mean of
    its class's windows; 0 where those do not differ. (A z-score of every sample would
    tell the window itself.)

    Args:
      moments: ``float[batch, 2 * channels]``, of ``moments``.
      class_mean: ``float[batch, channels]``, mean of the means of a window's class.
      class_std: ``float[batch, channels]``, their standard deviation.

    Returns:
      ``float[batch, 3 * channels]``.

    Example:
      >>> told = jnp.array([[2.0, 1.0]])
      >>> statistics(told, jnp.array([[1.0]]), jnp.array([[0.5]]))
      Array([[2., 1., 2.]], dtype=float32)

    References:
      PrivateHub, section 4.3.2 (features of each task).
    """
    means = moments[:, : class_mean.shape[1]]
    spread = class_std > LEAST_STD
    score = (means - class_mean) / jnp.where(spread, class_std, 1)
    return jnp.concatenate([moments, jnp.where(spread, score, 0)], axis=1)
