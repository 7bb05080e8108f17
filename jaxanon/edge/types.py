"""Signatures of models, and the blocks and windows of streams."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Signature(NamedTuple):
    """Shape, units and rate of a model's windows or of a stream."""

    time: int  # samples per window
    channels: tuple[str, ...]
    units: tuple[str, ...]  # of each channel
    rate_hz: float


def read(described: Mapping) -> Signature:
    """Reads the signature from a model file's description of its input.

    Args:
      described: ``input`` of the metadata.

    Raises:
      ValueError: if the description is inconsistent, or the batch size is not 1.

    Example:
      >>> read({"name": "windows", "batch": 1, "time": 4, "channels": ["x"],
      ...       "units": ["g"], "rate_hz": 50.0}).rate_hz
      50.0
    """
    try:
        time, batch = int(described["time"]), described["batch"]
        channels = tuple(map(str, described["channels"]))
        units = tuple(map(str, described["units"]))
        rate_hz = float(described["rate_hz"])
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model's input description is invalid ({type(error).__name__}: "
            f"{error}); export it again."
        ) from error
    if batch != 1:
        raise ValueError(
            f"the model's batch size must be 1, got {batch!r}; export it with batch 1."
        )
    if time < 1 or not channels or len(units) != len(channels):
        raise ValueError(
            f"the model's input must have time >= 1 and one unit per channel, got "
            f"time {time}, channels {channels} and units {units}; export it again."
        )
    if len(set(channels)) < len(channels):
        raise ValueError(f"channels must be unique, got {channels}; export again.")
    if not (math.isfinite(rate_hz) and rate_hz > 0):
        raise ValueError(f"rate_hz must be > 0, got {rate_hz!r}; export again.")
    return Signature(time, channels, units, rate_hz)


def order(
    signature: Signature,
    channels: Sequence[str] | None,
    units: Sequence[str | None] | None,
    reorder: bool = False,
) -> list[int] | None:
    """Returns the index of each of the model's channels among the pushed channels.

    Args:
      signature: signature of the model.
      channels: names of the pushed channels, in order. None skips the check.
      units: unit of each pushed channel; without ``channels``, of each of the model's.
        None, also as an entry, skips the check.
      reorder: whether to accept the channels in another order.

    Returns:
      Indices, or None if the order is the model's.

    Raises:
      ValueError: if channels or units differ, or the order differs and ``reorder`` is
        False.

    Example:
      >>> model = Signature(4, ("x", "y"), ("g", "g"), 50.0)
      >>> order(model, ["y", "x"], None, reorder=True)
      [1, 0]
    """
    wanted = signature.channels
    pushed = wanted if channels is None else tuple(channels)
    if sorted(pushed) != sorted(wanted):
        raise ValueError(
            f"channels must be {list(wanted)}, got {list(pushed)}; choose those "
            "columns, or another model."
        )
    if pushed != wanted and not reorder:
        raise ValueError(
            f"channels must be in the order {list(wanted)}, got {list(pushed)}; change "
            "the order, or pass reorder=True."
        )
    if units is not None and len(units) != len(pushed):
        raise ValueError(
            f"units must be {len(pushed)}, one for each channel, got {list(units)}."
        )
    indices = [pushed.index(name) for name in wanted]
    for name, unit, index in zip(wanted, signature.units, indices, strict=True):
        if units is not None and units[index] not in (None, unit):
            raise ValueError(
                f"channel {name!r} must be in {unit!r}, got {units[index]!r}; convert "
                "it first."
            )
    return None if pushed == wanted else indices


class Block(NamedTuple):
    """A part of the anonymized stream, or a gap with its reason.

    Attributes:
      start: time of the first sample in seconds, on the clock of the pushed times.
      rate_hz: rate of the samples.
      samples: ``float32[n, channels]``. In a gap, all values are NaN, and ``n`` is 0 if
        the gap is too long to be written out.
      gap: reason of a gap; "" for samples.
      end: time in seconds at which the next block starts.
    """

    start: float
    rate_hz: float
    samples: np.ndarray
    gap: str
    end: float


class Window(NamedTuple):
    """A window before and after anonymization, for the dashboard only.

    Attributes:
      start: time of the first sample in seconds, on the clock of the pushed times.
      raw: ``float32[time, channels]``.
      safe: ``float32[time, channels]``; None if the model failed.
    """

    start: float
    raw: np.ndarray
    safe: np.ndarray | None
