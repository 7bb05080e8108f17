"""Distortion of the signal by anonymization: shape, statistics and steps."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels
from jaxanon.kernels.checks import as_numpy, host_number, strings

CHUNK = 256  # Windows per call of a kernel; the last call is padded.

STATISTICS = ("mean", "std", "skewness", "kurtosis", "energy")

COUNTERS = ("threshold", "jerk_pace")

LOWEST_RATE_HZ = 2 * 3.667  # Twice the cutoff of the jerk-pace counter's lowpass.


def warping_distances(raw, safe) -> np.ndarray:
    """Returns the dynamic time warping distance of each window to its original.

    Each channel is warped separately over the whole window. The cost of a match is the
    absolute difference, and the totals are averaged over channels. Standardise windows
    whose channels have different units.

    Args:
      raw: ``float[N, time, channels]``, N at least 1.
      safe: ``float[N, time, channels]``, the same windows anonymized.

    Returns:
      ``float32[N]``, in the units of the windows; 0 for unchanged windows.

    Raises:
      ValueError: if shapes differ or are not of rank 3, or for no windows.

    Example:
      The delayed 3 costs nothing; the added 1 costs 1.

      >>> raw = np.float32([0, 3, 0, 0]).reshape(1, 4, 1)
      >>> safe = np.float32([0, 1, 3, 0]).reshape(1, 4, 1)
      >>> warping_distances(raw, safe)
      array([1.], dtype=float32)

    References:
      Boutet et al., DySAN, AsiaCCS 2021, table 1; the official program of Malekzadeh et
      al., Mobile sensor data anonymization, IoTDI 2019, for the cost.
    """
    return _in_chunks(_warped, *_alike(raw, safe))


@jax.jit
def _warped(raw, safe):
    by_channel = lambda x: jnp.swapaxes(x, 1, 2).reshape(-1, x.shape[1], 1)
    pairs = kernels.dtw(by_channel(raw), by_channel(safe), local_cost="absolute")
    return pairs.reshape(raw.shape[0], -1).mean(1)


def compare_statistics(raw, safe, channels: Sequence[str]) -> dict:
    """Compares statistics of raw and anonymized windows.

    The statistics are mean, standard deviation, skewness, kurtosis and energy.

    Args:
      raw: ``float[N, time, channels]``, in physical units, N at least 1.
      safe: ``float[N, time, channels]``, the same windows anonymized.
      channels: names of the channels.

    Returns:
      Nested dict by channel and statistic. ``raw`` and ``anonymized`` are means over
      windows, and ``relative_error`` is their difference relative to ``raw`` (None if
      that is 0). ``absolute_error`` is the mean absolute difference over windows, which
      includes differences that cancel in the means.

    Raises:
      ValueError: if shapes differ, are not of rank 3 or do not match ``channels``, or
        for no windows.

    Example:
      >>> raw = np.float32([[[1], [3]], [[2], [4]]])
      >>> row = compare_statistics(raw, raw[::-1], ["x"])["x"]["mean"]
      >>> row["relative_error"], row["absolute_error"]
      (0.0, 1.0)

    References:
      Boutet et al., DySAN, AsiaCCS 2021, figure 9.
    """
    strings(channels=channels)
    raw, safe = _alike(raw, safe)
    if len(channels) != raw.shape[2]:
        raise ValueError(
            f"channels must name the {raw.shape[2]} channels of the windows, got "
            f"{tuple(channels)}; give one name per channel."
        )
    before, after = (_in_chunks(_statistics, part) for part in (raw, safe))
    return {
        channel: {
            name: _change(before[:, i, j], after[:, i, j])
            for i, name in enumerate(STATISTICS)
        }
        for j, channel in enumerate(channels)
    }


@jax.jit
def _statistics(windows):
    statistics = kernels.window_statistics(windows)
    return jnp.stack([getattr(statistics, name) for name in STATISTICS], 1)


def step_errors(raw, safe, rate_hz: float) -> dict:
    """Compares step counts of raw and anonymized windows, by two step counters.

    Args:
      raw: ``float[N, time, axes]``, acceleration in m/s² with gravity, either three
        axes or the magnitude; N at least 1.
      safe: ``float[N, time, axes]``, the same windows anonymized.
      rate_hz: samples per second.

    Returns:
      Nested dict by counter: ``threshold`` counts half the crossings of 10.5 m/s²,
      ``jerk_pace`` is Adaptiv's counter. ``raw`` and ``anonymized`` are steps per
      window; ``relative_error`` and ``absolute_error`` are those of
      ``compare_statistics``. ``jerk_pace`` is None up to 7.334 Hz, the lowest rate for
      its filter.

    Raises:
      ValueError: if shapes differ or are not of rank 3, or for no windows.

    Example:
      >>> still = np.full((1, 4, 1), 9.81, np.float32)
      >>> walk = np.float32([9, 11, 9, 11]).reshape(1, 4, 1)
      >>> step_errors(walk, still, 50.0)["threshold"]["relative_error"]
      -1.0

    References:
      Boutet et al., DySAN, AsiaCCS 2021, section 4.3; the counters are those of
      ``jaxanon.kernels``.
    """
    raw, safe = _alike(raw, safe)
    host_number(rate_hz=rate_hz)
    result = {}
    for counter in COUNTERS:
        if counter == "jerk_pace" and rate_hz <= LOWEST_RATE_HZ:
            result[counter] = None
            continue
        count = functools.partial(_steps, counter=counter, rate_hz=float(rate_hz))
        result[counter] = _change(_in_chunks(count, raw), _in_chunks(count, safe))
    return result


@functools.partial(jax.jit, static_argnames=("counter", "rate_hz"))
def _steps(windows, *, counter, rate_hz):
    if counter == "threshold":
        return kernels.count_steps_threshold(windows)
    return kernels.count_steps_jerk_pace(windows, rate_hz)


def _alike(raw, safe):
    raw, safe = as_numpy("raw", raw, np.float32), as_numpy("safe", safe, np.float32)
    if raw.ndim != 3 or raw.shape != safe.shape or not len(raw):
        raise ValueError(
            "raw and safe must be the same windows, float[N, time, channels] with N at "
            f"least 1, got shapes {raw.shape} and {safe.shape}."
        )
    return raw, safe


def _in_chunks(function, *arrays):
    """Applies ``function`` in padded chunks, so that one program serves any N."""
    parts = []
    for start in range(0, len(arrays[0]), CHUNK):
        chunk = [array[start : start + CHUNK] for array in arrays]
        spare = CHUNK - len(chunk[0])
        padded = [np.pad(part, [(0, spare), (0, 0), (0, 0)]) for part in chunk]
        parts.append(np.asarray(function(*padded))[: len(chunk[0])])
    return np.concatenate(parts)


def _change(before, after):
    mean = lambda values: float(np.mean(values, dtype=np.float64))
    first, last = mean(before), mean(after)
    return {
        "raw": first,
        "anonymized": last,
        "relative_error": (last - first) / abs(first) if first else None,
        "absolute_error": mean(np.abs(after - before)),
    }
