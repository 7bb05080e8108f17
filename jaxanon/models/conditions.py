"""Conditions of a diffusion model: classes and statistics of windows."""

import fnmatch
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

MIN_STD = 1e-3  # Standardised values that vary less have a z-score of 0.


class Condition(NamedTuple):
    """Known attributes and statistics of each window of a batch.

    An unknown attribute of ``n`` classes has the class ``n``.
    """

    classes: dict[str, jax.Array]  # int32[batch] of each attribute
    features: jax.Array  # float[batch, d], statistics; ignored where unknown
    known: jax.Array  # bool[batch], whether the statistics are known


def null_condition(sizes: dict[str, int], num_features: int, batch: int) -> Condition:
    """Returns the condition with everything unknown, for classifier-free guidance.

    Args:
      sizes: number of classes of each attribute.
      num_features: number of statistics.
      batch: number of windows.

    Example:
      >>> null_condition({"activity": 3}, 6, 2).classes["activity"]
      Array([3, 3], dtype=int32)
    """
    classes = {name: jnp.full(batch, size, jnp.int32) for name, size in sizes.items()}
    return Condition(classes, jnp.zeros((batch, num_features)), jnp.zeros(batch, bool))


def drop_conditions(
    key, condition: Condition, sizes: dict[str, int], rate
) -> Condition:
    """Makes each attribute, and the statistics, unknown with probability ``rate``.

    Each is dropped independently, so that a network learns to use each one alone.

    Args:
      key: typed PRNG key.
      condition: condition of ``batch`` windows.
      sizes: number of classes of each attribute.
      rate: ``float[]`` in [0, 1].

    Example:
      >>> known = null_condition({"a": 2}, 1, 2)
      >>> known = known._replace(classes={"a": jnp.array([0, 1])})
      >>> drop_conditions(jax.random.key(0), known, {"a": 2}, 1.0).classes["a"]
      Array([2, 2], dtype=int32)
    """
    drops = jax.random.bernoulli(key, rate, (1 + len(sizes), len(condition.known)))
    classes = {
        name: jnp.where(drop, size, condition.classes[name])
        for (name, size), drop in zip(sizes.items(), drops[1:], strict=True)
    }
    return condition._replace(classes=classes, known=condition.known & ~drops[0])


def moments(windows):
    """Returns mean and standard deviation of each channel of each window.

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
    """Returns mean, standard deviation and z-score, as features of a condition.

    The z-score is the distance of a window's mean from the mean of its class, in
    standard deviations of the class's means. It is 0 if these means do not vary.
    (Z-scores of single samples would reveal the window itself.)

    Args:
      moments: ``float[batch, 2 * channels]``, result of ``moments``.
      class_mean: ``float[batch, channels]``, mean of window means in the same class.
      class_std: ``float[batch, channels]``, standard deviation of these means.

    Returns:
      ``float[batch, 3 * channels]``.

    Example:
      >>> row = jnp.array([[2.0, 1.0]])
      >>> statistics(row, jnp.array([[1.0]]), jnp.array([[0.5]]))
      Array([[2., 1., 2.]], dtype=float32)

    References:
      PrivateHub, section 4.3.2 (features of each task).
    """
    means = moments[:, : class_mean.shape[1]]
    varies = class_std > MIN_STD
    score = (means - class_mean) / jnp.where(varies, class_std, 1)
    return jnp.concatenate([moments, jnp.where(varies, score, 0)], axis=1)


class AnalogBits(NamedTuple):
    """Encoding of discrete channels as bits, for diffusion models.

    A channel with ``K`` values, the integers from 0 to ``K - 1``, becomes the bits of
    its value, each -1 or 1. Decoding uses the sign of each bit. Continuous channels are
    unchanged.

    Example:
      >>> bits = AnalogBits((0, 3), mean=(0.0, 1.0), std=(1.0, 2.0))
      >>> window = jnp.array([[[0.25, 0.5]]])  # The second channel is 0.5 * 2 + 1 = 2.
      >>> bits.encode(window)
      Array([[[ 0.25, -1.  ,  1.  ]]], dtype=float32)
      >>> bits.decode(jnp.array([[[0.25, -0.3, 0.1]]]))
      Array([[[0.25, 0.5 ]]], dtype=float32)

    References:
      Chen, Zhang, Hinton, Analog bits, ICLR 2023.
    """

    values: tuple[int, ...]  # number of values of each channel; 0 if continuous
    mean: tuple[float, ...]  # mean of each channel, used to standardise it
    std: tuple[float, ...]

    @property
    def channels(self) -> int:
        """Number of encoded channels."""
        return sum(self.widths)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of encoded channels for each channel."""
        return tuple(map(_width, self.values))

    def encode(self, windows):
        """Encodes ``float[..., channels]`` to ``float[..., self.channels]``.

        Discrete values are rounded and clipped to their range.
        """
        parts = []
        for channel, values in enumerate(self.values):
            x = windows[..., channel]
            if not values:
                parts.append(x[..., None])
                continue
            whole = jnp.round(x * self.std[channel] + self.mean[channel])
            whole = jnp.clip(whole, 0, values - 1).astype(jnp.int32)[..., None]
            shifts = jnp.arange(_width(values)).reshape((1,) * (whole.ndim - 1) + (-1,))
            parts.append(2.0 * ((whole >> shifts) & 1).astype(windows.dtype) - 1)
        return jnp.concatenate(parts, axis=-1)

    def decode(self, encoded):
        """Inverts ``encode``; bits above the channel's last value decode to it."""
        parts, first = [], 0
        for channel, values in enumerate(self.values):
            x = encoded[..., first : first + _width(values)]
            first += _width(values)
            if not values:
                parts.append(x)
                continue
            weights = 2 ** jnp.arange(_width(values))
            whole = jnp.sum((x > 0) * weights.reshape(_ones(x)), axis=-1)
            whole = jnp.minimum(whole, values - 1).astype(encoded.dtype)[..., None]
            parts.append((whole - self.mean[channel]) / self.std[channel])
        return jnp.concatenate(parts, axis=-1)

    def whole(self, windows):
        """Rounds the discrete channels of windows in physical units to integers."""
        discrete = np.array([values > 0 for values in self.values])
        whole = jnp.round(windows)
        whole = jnp.where(whole == 0, 0.0, whole)  # Turns -0 into 0.
        return jnp.where(discrete.reshape(_ones(windows)), whole, windows)


def parse_categories(
    channels: Sequence[str], categories: Sequence[str]
) -> tuple[int, ...]:
    """Returns the number of values of each channel, from names or patterns.

    Args:
      channels: names of all channels.
      categories: ``"name"`` for a binary channel or ``"name=K"`` for a channel with
        integers from 0 to K - 1. Names may contain ``*``; the last matching pattern
        counts.

    Returns:
      One number per channel, 0 for a continuous channel.

    Raises:
      ValueError: if a name matches no channel, or for fewer than 2 values.

    Example:
      >>> parse_categories(("CO2", "door on", "mode"), ("* on", "mode=4"))
      (0, 2, 4)
    """
    counts = dict.fromkeys(channels, 0)
    for category in categories:
        name, equals, count = category.rpartition("=")
        name, count = (name, count) if equals else (category, "2")
        matches = fnmatch.filter(channels, name)
        if not matches:
            raise ValueError(
                f"categories must name channels among {tuple(channels)}, got "
                f"{category!r}."
            )
        if not count.isdigit() or int(count) < 2:
            raise ValueError(
                f"categories must have at least 2 values, such as {name + '=4'!r}, got "
                f"{category!r}."
            )
        counts |= dict.fromkeys(matches, int(count))
    return tuple(counts[name] for name in channels)


def check_values(windows, channels: Sequence[str], values: Sequence[int]) -> None:
    """Raises ValueError unless discrete channels hold only their values.

    Args:
      windows: ``float[N, time, channels]``, in physical units, as NumPy.
      channels: names of the channels.
      values: number of values of each channel, from ``parse_categories``.

    Raises:
      ValueError: with the first wrong channel and value.

    Example:
      >>> check_values(np.zeros((1, 4, 1)), ("door",), (2,))
    """
    for channel, (name, count) in enumerate(zip(channels, values, strict=True)):
        x = windows[..., channel]
        wrong = x[(np.round(x) != x) | (x < 0) | (x >= count)]
        if count and wrong.size:
            raise ValueError(
                f"channel {name!r} must hold whole numbers from 0 to {count - 1}, got "
                f"{wrong.flat[0]}; omit it from categories or declare more values."
            )


def _width(values):
    return max(1, (values - 1).bit_length()) if values else 1


def _ones(array):
    """Shape that broadcasts a vector along the last axis of ``array``."""
    return (1,) * (array.ndim - 1) + (-1,)
