"""What a diffusion is told of a window: its classes, its statistics, or nothing."""

import fnmatch
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

MIN_STD = 1e-3  # Of standardised windows; what spreads less is said not to spread.


class Condition(NamedTuple):
    """What is known of each window of a batch; a tree of arrays, which may be stacked.

    An attribute of ``n`` classes has the class ``n`` where it is not known.
    """

    classes: dict[str, jax.Array]  # int32[batch] of each attribute
    features: jax.Array  # float[batch, d], statistics; of no account where not known
    known: jax.Array  # bool[batch]; whether the statistics are


def null_condition(sizes: dict[str, int], num_features: int, batch: int) -> Condition:
    """The condition that says nothing, for guidance to lean away from.

    Args:
      sizes: number of classes of each attribute.
      num_features: of the statistics.
      batch: windows.

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

    Each falls on its own, so that a network learns what any of them says by itself.

    Args:
      key: typed PRNG key.
      condition: of ``batch`` windows.
      sizes: number of classes of each attribute.
      rate: ``float[]`` in [0, 1].

    Example:
      >>> told = null_condition({"a": 2}, 1, 2)._replace(classes={"a": jnp.array([0, 1])})
      >>> drop_conditions(jax.random.key(0), told, {"a": 2}, 1.0).classes["a"]
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
    spread = class_std > MIN_STD
    score = (means - class_mean) / jnp.where(spread, class_std, 1)
    return jnp.concatenate([moments, jnp.where(spread, score, 0)], axis=1)


class AnalogBits(NamedTuple):
    """Standardised windows as a diffusion sees them, and back.

    A channel of ``K`` values, whole numbers from 0 to ``K - 1``, becomes the bits of
    its value, each -1 or 1; back it is the sign of each that counts. A measured channel
    stays as it is.

    Example:
      >>> bits = AnalogBits((0, 3), mean=(0.0, 1.0), std=(1.0, 2.0))
      >>> window = jnp.array([[[0.25, 0.5]]])  # 0.25, and the value 2.
      >>> bits.encode(window)
      Array([[[ 0.25, -1.  ,  1.  ]]], dtype=float32)
      >>> bits.decode(jnp.array([[[0.25, -0.3, 0.1]]]))
      Array([[[0.25, 0.5 ]]], dtype=float32)

    References:
      Chen, Zhang, Hinton, Analog bits, ICLR 2023.
    """

    values: tuple[int, ...]  # of each channel; 0 where it is measured
    mean: tuple[float, ...]  # of each channel, as they were standardised
    std: tuple[float, ...]

    @property
    def channels(self) -> int:
        """How many a diffusion sees."""
        return sum(self.widths)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many of them each channel becomes."""
        return tuple(map(_width, self.values))

    def encode(self, windows):
        """``float[..., channels]``, standardised, to ``float[..., self.channels]``.

        Values are rounded to whole numbers, and held within their range.
        """
        parts = []
        for channel, values in enumerate(self.values):
            own = windows[..., channel]
            if not values:
                parts.append(own[..., None])
                continue
            whole = jnp.round(own * self.std[channel] + self.mean[channel])
            whole = jnp.clip(whole, 0, values - 1).astype(jnp.int32)[..., None]
            shifts = jnp.arange(_width(values)).reshape((1,) * (whole.ndim - 1) + (-1,))
            parts.append(2.0 * ((whole >> shifts) & 1).astype(windows.dtype) - 1)
        return jnp.concatenate(parts, axis=-1)

    def decode(self, encoded):
        """The inverse; bits that make no value of the channel make its last one."""
        parts, first = [], 0
        for channel, values in enumerate(self.values):
            own = encoded[..., first : first + _width(values)]
            first += _width(values)
            if not values:
                parts.append(own)
                continue
            weights = 2 ** jnp.arange(_width(values))
            whole = jnp.sum((own > 0) * weights.reshape(_ones(own)), axis=-1)
            whole = jnp.minimum(whole, values - 1).astype(encoded.dtype)[..., None]
            parts.append((whole - self.mean[channel]) / self.std[channel])
        return jnp.concatenate(parts, axis=-1)

    def whole(self, windows):
        """Windows in physical units, their values without what rounding left."""
        few = np.array([values > 0 for values in self.values])
        whole = jnp.round(windows)
        whole = jnp.where(whole == 0, 0.0, whole)  # No -0.
        return jnp.where(few.reshape(_ones(windows)), whole, windows)


def parse_categories(
    channels: Sequence[str], categories: Sequence[str]
) -> tuple[int, ...]:
    """How many values each channel has, by names or patterns such as ``"door *=2"``.

    Args:
      channels: names of all.
      categories: ``"name"`` of a channel that is 0 or 1, or ``"name=K"`` of one that
        holds whole numbers from 0 to K - 1; ``*`` stands for anything. Of patterns that
        fit one channel the last holds.

    Returns:
      One number for each channel, 0 where it is measured.

    Raises:
      ValueError: for a name that fits no channel, or fewer than 2 values.

    Example:
      >>> parse_categories(("CO2", "door on", "mode"), ("* on", "mode=4"))
      (0, 2, 4)
    """
    found = dict.fromkeys(channels, 0)
    for told in categories:
        name, equals, count = told.rpartition("=")
        name, count = (name, count) if equals else (told, "2")
        fits = fnmatch.filter(channels, name)
        if not fits:
            raise ValueError(
                f"categories must name channels, of {tuple(channels)}, got {told!r}."
            )
        if not count.isdigit() or int(count) < 2:
            raise ValueError(
                f"categories must have at least 2 values, such as {name + '=4'!r}, got "
                f"{told!r}."
            )
        found |= dict.fromkeys(fits, int(count))
    return tuple(found[name] for name in channels)


def check_values(windows, channels: Sequence[str], values: Sequence[int]) -> None:
    """Refuses windows that hold anything but a channel's values.

    Args:
      windows: ``float[N, time, channels]``, in physical units, as NumPy.
      channels: their names.
      values: of ``parse_categories``.

    Raises:
      ValueError: naming the first channel, and value, that is wrong.

    Example:
      >>> check_values(np.zeros((1, 4, 1)), ("door",), (2,))
    """
    for channel, (name, count) in enumerate(zip(channels, values, strict=True)):
        own = windows[..., channel]
        wrong = own[(np.round(own) != own) | (own < 0) | (own >= count)]
        if count and wrong.size:
            raise ValueError(
                f"channel {name!r} must hold whole numbers from 0 to {count - 1}, got "
                f"{wrong.flat[0]}; leave it out of categories, or name more values."
            )


def _width(values):
    return max(1, (values - 1).bit_length()) if values else 1


def _ones(array):
    """The shape that puts an axis last beside ``array``."""
    return (1,) * (array.ndim - 1) + (-1,)
