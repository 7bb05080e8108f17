"""What anonymization did to the signal itself: shape, statistics, steps."""

import functools
import re
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels

CHUNK = 256  # Windows per call of a kernel; the last call is padded.

STATISTICS = ("mean", "std", "skewness", "kurtosis", "energy")

COUNTERS = ("threshold", "jerk_pace")

LOWEST_RATE_HZ = 2 * 3.667  # That of the lowpass filter of the jerk-pace counter.


def warping_distances(raw, safe) -> np.ndarray:
    """How far each window was moved, by dynamic time warping.

    Each channel is warped on its own over the whole window, a match costs the absolute
    difference, and the channels' totals are averaged. Where channels have different
    units, give standardised windows.

    Args:
      raw: ``float[N, time, channels]``, N at least 1.
      safe: ``float[N, time, channels]``, the same windows anonymized.

    Returns:
      ``float32[N]``, in the units of the windows; 0 for windows that stayed.

    Raises:
      ValueError: if shapes are not alike and of rank 3, or there is no window.

    Example:
      The three that came late costs nothing, the one that was never there costs 1.

      >>> raw = np.float32([0, 3, 0, 0]).reshape(1, 4, 1)
      >>> safe = np.float32([0, 1, 3, 0]).reshape(1, 4, 1)
      >>> warping_distances(raw, safe)
      array([1.], dtype=float32)

    References:
      Boutet et al., DySAN, AsiaCCS 2021, table 1; the released program of Malekzadeh et
      al., Mobile sensor data anonymization, IoTDI 2019, for the cost.
    """
    return _in_chunks(_warped, *_alike(raw, safe))


@jax.jit
def _warped(raw, safe):
    one_by_one = lambda x: jnp.swapaxes(x, 1, 2).reshape(-1, x.shape[1], 1)
    pairs = kernels.dtw(one_by_one(raw), one_by_one(safe), local_cost="absolute")
    return pairs.reshape(raw.shape[0], -1).mean(1)


def compare_statistics(raw, safe, channels: Sequence[str]) -> dict:
    """Mean, deviation, skewness, kurtosis and energy, before and after.

    Args:
      raw: ``float[N, time, channels]``, in physical units, N at least 1.
      safe: ``float[N, time, channels]``, the same windows anonymized.
      channels: their names.

    Returns:
      By channel and statistic ``raw`` and ``anonymized``, means over the windows;
      ``relative_error``, their difference as a share of the former (None if that is
      0); and ``absolute_error``, the mean over windows of the size of the difference,
      which shows what cancels in the means.

    Raises:
      ValueError: if shapes are not alike, of rank 3 and with those channels, or there
        is no window.

    Example:
      >>> raw = np.float32([[[1], [3]], [[2], [4]]])
      >>> told = compare_statistics(raw, raw[::-1], ["x"])["x"]["mean"]
      >>> told["relative_error"], told["absolute_error"]
      (0.0, 1.0)

    References:
      Boutet et al., DySAN, AsiaCCS 2021, figure 9.
    """
    raw, safe = _alike(raw, safe)
    if len(channels) != raw.shape[2]:
        raise ValueError(
            f"channels must name the {raw.shape[2]} channels of the windows, got "
            f"{tuple(channels)}."
        )
    before, after = (_in_chunks(_statistics, part) for part in (raw, safe))
    return {
        channel: {
            name: _change(before[:, index, own], after[:, index, own])
            for index, name in enumerate(STATISTICS)
        }
        for own, channel in enumerate(channels)
    }


@jax.jit
def _statistics(windows):
    found = kernels.window_statistics(windows)
    return jnp.stack([getattr(found, name) for name in STATISTICS], 1)


def step_errors(raw, safe, rate_hz: float) -> dict:
    """Steps that a pedometer counts, before and after, by both counters.

    Args:
      raw: ``float[N, time, axes]``, acceleration in m/s² with gravity, three axes or
        their magnitude as one; N at least 1.
      safe: ``float[N, time, axes]``, the same windows anonymized.
      rate_hz: samples per second.

    Returns:
      By counter (``threshold``: half the crossings of 10.5 m/s²; ``jerk_pace``:
      Adaptiv's) ``raw`` and ``anonymized`` steps per window, ``relative_error`` and
      ``absolute_error`` as in ``compare_statistics``. ``jerk_pace`` is None at a rate too
      low for its filter, 7.334 Hz.

    Raises:
      ValueError: if shapes are not alike and of rank 3, or there is no window.

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
    found = {}
    for counter in COUNTERS:
        if counter == "jerk_pace" and rate_hz <= LOWEST_RATE_HZ:
            found[counter] = None
            continue
        count = functools.partial(_steps, counter=counter, rate_hz=float(rate_hz))
        found[counter] = _change(_in_chunks(count, raw), _in_chunks(count, safe))
    return found


@functools.partial(jax.jit, static_argnames=("counter", "rate_hz"))
def _steps(windows, *, counter, rate_hz):
    if counter == "threshold":
        return kernels.count_steps_threshold(windows)
    return kernels.count_steps_jerk_pace(windows, rate_hz)


def _alike(raw, safe):
    raw, safe = np.asarray(raw, np.float32), np.asarray(safe, np.float32)
    if raw.ndim != 3 or raw.shape != safe.shape or not len(raw):
        raise ValueError(
            "raw and safe must be the same windows, float[N, time, channels] with N at "
            f"least 1, got shapes {raw.shape} and {safe.shape}."
        )
    return raw, safe


def _in_chunks(function, *arrays):
    """``function`` of rows, a chunk at a time, so that one program serves any N."""
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


UNITS = {"g": 9.80665, "m/s^2": 1.0}  # In m/s².

LESS_GRAVITY = ("userAcceleration", "body_acc")  # What a person adds, alone.


def acceleration(windows, channels: Sequence[str], units: Sequence[str]):
    """The acceleration with gravity, in m/s², or None if there is none.

    Every channel in g or m/s^2 counts as an axis. Where gravity has channels of its own
    (``gravity.x``), they are added to those that end alike (``userAcceleration.x``).
    Where it has none, ``userAcceleration.x`` and ``body_acc_x`` are left out: gravity
    was taken from them, and how they lay to it is not to be had from them.

    Args:
      windows: ``float[N, time, channels]`` in physical units.
      channels: their names.
      units: their units.

    Returns:
      ``float32[N, time, axes]``, or None.

    Raises:
      ValueError: if windows have another number of channels than there are names, or
        names than units.

    Example:
      >>> windows = np.array([[[0.5, 0.25, 90.0]]])
      >>> names = ("gravity.x", "userAcceleration.x", "rotationRate.x")
      >>> acceleration(windows, names, ("g", "g", "rad/s")).round(3)
      array([[[7.355]]], dtype=float32)
    """
    windows = np.asarray(windows)
    if windows.shape[-1:] != (len(channels),):
        raise ValueError(
            f"windows must have {len(channels)} channels, one for each name, got shape "
            f"{windows.shape}."
        )
    axes: dict[str, list[int]] = {}
    apart = any(name.startswith("gravity.") for name in channels)
    for index, (name, unit) in enumerate(zip(channels, units, strict=True)):
        if unit in UNITS and (apart or _sensor(name) not in LESS_GRAVITY):
            axis = name.partition(".")[2] if apart else name
            axes.setdefault(axis, []).append(index)
    if not axes:
        return None
    factors = np.array([UNITS.get(unit, 0.0) for unit in units])
    scaled = windows * factors.astype(np.float32)
    together = [scaled[..., own].sum(-1) for own in axes.values()]
    return np.stack(together, -1).astype(np.float32)


def _sensor(name: str) -> str:
    """A channel's name less its axis."""
    return re.sub(r"[._][xyz]$", "", name)
