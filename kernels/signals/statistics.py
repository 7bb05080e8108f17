"""Statistics of windows per channel."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.precision import widened
from jaxanon.kernels.scaling import scaled
from jaxanon.kernels.signals.recordings import with_time
from jaxanon.kernels.sorting import in_order


class WindowStatistics(NamedTuple):
    """Statistics ``float[..., channels]``, in the units of the window unless noted."""

    mean: jax.Array  # all statistics use real samples only
    std: jax.Array  # population standard deviation (ddof 0)
    variance: jax.Array  # squared units
    minimum: jax.Array  # smallest sample
    maximum: jax.Array  # largest sample
    median: jax.Array  # mean of the two middle samples for an even number
    interquartile_range: jax.Array  # linear interpolation, as in NumPy
    skewness: jax.Array  # third standardised moment, no unit
    kurtosis: jax.Array  # fourth standardised moment minus 3, no unit
    energy: jax.Array  # sum of squares, squared units
    rms: jax.Array  # root of the mean square
    zero_crossings: jax.Array  # int32


def window_statistics(windows, mask=None) -> WindowStatistics:
    """Computes twelve statistics per channel of each window.

    Half precision is computed and returned in float32. Sums use scaled deviations from
    the minimum, so a large offset or an extreme scale does not reduce the accuracy of
    mean, deviation, moments or rms. Squared units overflow for values above 1e19 and
    underflow below 1e-19. Under ``jit`` unused statistics are not computed.

    A constant channel has ``std``, ``variance``, ``skewness`` and ``kurtosis`` of
    exactly 0 (SciPy gives NaN for the last two), with zero gradients. A window without
    real samples gives 0 everywhere. A NaN makes all statistics of its channel NaN,
    except the crossings. A crossing is a pair of adjacent real samples of which exactly
    one is < 0.

    Args:
      windows: ``float[..., time, channels]``.
      mask: ``bool[..., time]``, False where a sample is padding. None is all True.

    Returns:
      ``WindowStatistics``. For statistics of the spectrum, pass
      ``jnp.abs(jnp.fft.fft(windows, axis=-2))``.

    Raises:
      ValueError: if a shape is wrong.

    Example:
      >>> found = window_statistics(jnp.array([[-2.0], [4.0], [4.0], [-6.0]]))
      >>> found.mean, found.energy, found.zero_crossings
      (Array([0.], dtype=float32), Array([72.], dtype=float32), Array([2], dtype=int32))

    References:
      Boutet et al., DySAN: dynamically sanitizing motion sensor data, AsiaCCS 2021,
      appendix B.
    """
    windows = with_time(windows, "windows")
    mask = jnp.ones(windows.shape[:-1], bool) if mask is None else jnp.asarray(mask)
    if mask.shape != windows.shape[:-1] or mask.dtype != bool:
        raise ValueError(
            f"mask must be bool[..., time] of shape {windows.shape[:-1]}, got shape "
            f"{mask.shape} of {mask.dtype}; omit the channels axis."
        )
    if not windows.shape[-2]:  # Uses one masked sample instead of an empty axis.
        windows = jnp.zeros_like(windows, shape=_with_time(windows, 1))
        mask = jnp.zeros((*mask.shape[:-1], 1), bool)
    return _statistics(widened(windows), mask[..., None])


def _with_time(windows, time):
    return (*windows.shape[:-2], time, windows.shape[-1])


def _statistics(x, mask):
    num = jnp.sum(mask, axis=-2, dtype=x.dtype)
    some = num > 0
    x = jnp.where(mask, x, 0)
    average = lambda values: jnp.sum(values, axis=-2) / jnp.maximum(num, 1)
    minimum = jnp.min(jnp.where(mask, x, jnp.inf), axis=-2)
    maximum = jnp.max(jnp.where(mask, x, -jnp.inf), axis=-2)
    minimum, maximum = (jnp.where(some, v, 0) for v in (minimum, maximum))
    # Scaling to near 1 avoids overflow and underflow of squares. The scale is a power
    # of two and therefore exact.
    near, powers = scaled(x, axis=-2)
    restored = functools.partial(_restored, powers=powers)
    # The origin cancels in every result, so it needs no gradient.
    origin = jax.lax.stop_gradient(jnp.min(jnp.where(mask, near, jnp.inf), axis=-2))
    origin = jnp.where(some, origin, 0)
    above = jnp.where(mask, near - origin[..., None, :], 0)
    from_origin = average(above)
    deviation = jnp.where(mask, above - from_origin[..., None, :], 0)
    z, own_powers = scaled(deviation, axis=-2)
    second = average(z * z)
    varies = second != 0
    safe = jnp.where(varies, second, 1)
    std = restored(jnp.where(varies, _restored(jnp.sqrt(safe), own_powers), 0))
    ascending = in_order(jnp.where(mask, x, jnp.inf).swapaxes(-1, -2))
    # The minimum is already 0 without samples, and NaN with a NaN.
    known = some & ~jnp.isnan(minimum)
    quantile = lambda q: jnp.where(known, _quantile(ascending, num, q), minimum)
    return WindowStatistics(
        mean=restored(origin + from_origin),
        std=std,
        variance=std * std,
        minimum=minimum,
        maximum=maximum,
        median=quantile(0.5),
        interquartile_range=quantile(0.75) - quantile(0.25),
        skewness=jnp.where(varies, average(z**3) / safe**1.5, 0),
        kurtosis=jnp.where(varies, average(z**4) / safe**2 - 3, 0),
        energy=jnp.sum(x * x, axis=-2),
        rms=restored(_root(average(near * near))),
        zero_crossings=_zero_crossings(x, mask),
    )


def _quantile(ascending, num, q):
    """Interpolates between the nearest real samples; the first ``num`` are real."""
    place = q * jnp.maximum(num - 1, 0)
    low, high = jnp.floor(place), jnp.ceil(place)
    at = lambda i: jnp.take_along_axis(
        ascending, i.astype(jnp.int32)[..., None], axis=-1
    )[..., 0]
    first, second = at(low), at(high)
    # The difference of the two samples could overflow.
    between = (1 - (place - low)) * first + (place - low) * second
    return jnp.where(first == second, first, between)


def _restored(value, powers):
    """Undoes the scaling of ``scaled`` for ``float[..., channels]``."""
    first, second = powers
    return value * first[..., 0, :] * second[..., 0, :]


def _root(square):
    """Computes the square root with gradient 0 at 0."""
    some = square != 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)


def _zero_crossings(x, mask):
    below = x < 0
    crossed = (below[..., 1:, :] != below[..., :-1, :]) & mask[..., 1:, :]
    return jnp.sum(crossed & mask[..., :-1, :], axis=-2, dtype=jnp.int32)
