"""What a model takes, and what a stream hands on: signatures, blocks and windows."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Signature(NamedTuple):
    """Of a model's windows, and of what a stream takes and gives."""

    time: int  # samples of a window
    channels: tuple[str, ...]
    units: tuple[str, ...]  # of each channel
    rate_hz: float


def read(described: Mapping) -> Signature:
    """The signature in a model file's description of its input.

    Args:
      described: ``input`` of the metadata.

    Raises:
      ValueError: if it contradicts itself, or windows come in batches.

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
            f"the model's input is not described ({type(error).__name__}: {error}); "
            "export it again."
        ) from error
    if batch != 1:
        raise ValueError(
            f"the model takes windows by {batch!r}, and a device has one at a time; "
            "export it with batch 1."
        )
    if time < 1 or not channels or len(units) != len(channels):
        raise ValueError(
            f"the model's input must have time >= 1 and a unit for each channel, got "
            f"time {time}, channels {channels} and units {units}; export it again."
        )
    if len(set(channels)) < len(channels):
        raise ValueError(f"two channels have one name in {channels}; export again.")
    if not (math.isfinite(rate_hz) and rate_hz > 0):
        raise ValueError(f"rate_hz must be > 0, got {rate_hz!r}; export again.")
    return Signature(time, channels, units, rate_hz)


def order(
    signature: Signature,
    channels: Sequence[str] | None,
    units: Sequence[str | None] | None,
    reorder: bool = False,
) -> list[int] | None:
    """Where each of a model's channels is among those that are pushed.

    Args:
      signature: of the model.
      channels: names of what is pushed, in its order; None declares nothing.
      units: of these channels, or without ``channels`` of the model's; None, or a None
        inside, declares nothing.
      reorder: whether another order of the same channels is put right.

    Returns:
      Indices, or None where the order is the model's.

    Raises:
      ValueError: for other channels, another order without ``reorder``, other units.

    Example:
      >>> model = Signature(4, ("x", "y"), ("g", "g"), 50.0)
      >>> order(model, ["y", "x"], None, reorder=True)
      [1, 0]
    """
    wanted = signature.channels
    given = wanted if channels is None else tuple(channels)
    if sorted(given) != sorted(wanted):
        raise ValueError(
            f"the model takes channels {list(wanted)}, and {list(given)} are pushed; "
            "choose those columns, or another model."
        )
    if given != wanted and not reorder:
        raise ValueError(
            f"the model takes channels in the order {list(wanted)}, and {list(given)} "
            "are pushed; push them in that order, or say reorder=True (--reorder)."
        )
    if units is not None and len(units) != len(given):
        raise ValueError(
            f"units must be {len(given)}, one for each channel, got {list(units)}."
        )
    places = [given.index(name) for name in wanted]
    for name, unit, place in zip(wanted, signature.units, places, strict=True):
        if units is not None and units[place] not in (None, unit):
            raise ValueError(
                f"the model takes {name!r} in {unit!r}, and it is pushed in "
                f"{units[place]!r}; convert it before."
            )
    return None if given == wanted else places


class Block(NamedTuple):
    """A stretch of the anonymized stream, or of nothing and why.

    Attributes:
      start: s, of its first sample, on the clock of the times that were pushed.
      rate_hz: of its samples.
      samples: ``float32[n, channels]``; in a gap NaN in every place, and ``n`` may be 0
        for a gap longer than is written out.
      gap: why there is nothing here; "" for samples.
      end: s, start of what follows.
    """

    start: float
    rate_hz: float
    samples: np.ndarray
    gap: str
    end: float


class Window(NamedTuple):
    """What one window was and became: for the live page alone, never for an outlet.

    Attributes:
      start: s, of its first sample, on the clock of the times that were pushed.
      raw: ``float32[time, channels]``.
      safe: ``float32[time, channels]``; None where the model failed.
    """

    start: float
    raw: np.ndarray
    safe: np.ndarray | None
