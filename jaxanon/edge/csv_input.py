"""CSV rows from a file or a pipe, immediately or at their recorded pace."""

import gzip
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jaxanon.edge.types import Signature
from jaxanon.recordings import units
from jaxanon.recordings.csv_rows import Rows

PIECE_S = 0.1  # Maximum duration of a piece.
LONGEST_WAIT_S = 2.0  # Longer gaps in a recording are skipped.


def open_rows(
    source: str | os.PathLike,
    signature: Signature | None = None,
    time: str | None = None,
    time_format: str | None = None,
    rate_hz: float | None = None,
) -> Rows:
    """Opens a CSV file, or ``-`` for standard input; the caller must close it.

    Args:
      source: path; a name that ends in ``.gz`` is decompressed.
      signature: signature of the model, whose channels are read; others are ignored.
        None reads all columns.
      time: column with times; None looks for a usual name.
      time_format: format of the times; None detects it.
      rate_hz: rate of the rows, which helps to detect the unit of times; None takes the
        model's.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if there is no header, or it lacks a column.

    Example:
      >>> open_rows("nowhere.csv")
      Traceback (most recent call last):
      ...
      FileNotFoundError: file nowhere.csv does not exist; name one, or - to read a pipe.
    """
    options: dict[str, Any] = {"time": time, "time_format": time_format}
    if signature is not None:
        known = rate_hz or signature.rate_hz
        options["channels"] = signature.channels
        options["rate_hz"] = None if known == 1.0 else known  # 1 is unknown.
    if str(source) == "-":
        stdin = open(sys.stdin.fileno(), "rb", closefd=False)
        return Rows(stdin, "the input", **options)
    if not os.path.isfile(source):
        raise FileNotFoundError(
            f"file {source} does not exist; name one, or - to read a pipe."
        )
    zipped = str(source).lower().endswith(".gz")
    file = gzip.open(source) if zipped else open(source, "rb")
    try:
        return Rows(file, str(source), **options)
    except ValueError:
        file.close()
        raise


def converted(
    rows: Rows, signature: Signature
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields rows in the units of a model; columns without a unit stay as they are.

    Args:
      rows: rows of the channels of ``signature``, in its order.
      signature: signature of the model.

    Raises:
      ValueError: if a unit does not convert.
    """
    scale, offset = np.ones(len(rows.units)), np.zeros(len(rows.units))
    pairs = zip(rows.channels, rows.units, signature.units, strict=True)
    for index, (channel, unit, wanted) in enumerate(pairs):
        if unit and wanted and unit != wanted:
            try:
                scale[index], offset[index] = units.conversion(unit, wanted)
            except ValueError:
                raise ValueError(
                    f"channel {channel!r} must be in {wanted!r}, got {unit!r}; convert "
                    "it first."
                ) from None
    unchanged = (scale == 1).all() and (offset == 0).all()
    return iter(rows) if unchanged else _scaled(rows, scale, offset)


def _scaled(rows, scale, offset):
    for times, samples in rows:
        yield times, samples * scale + offset


def paced(
    rows: Iterable, rate_hz: float, speed: float | None, stop: threading.Event
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields rows in pieces of a tenth of a second, each when its time has come.

    The clock starts at the first row, and restarts where times jump.

    Args:
      rows: pairs ``(times float64[n] s, samples float[n, channels])``.
      rate_hz: rate of the rows.
      speed: recorded seconds per second. None yields rows immediately, for sensors.
      stop: event that ends the iteration.

    Yields:
      Pairs as in ``rows``.

    Example:
      >>> rows = [(np.arange(8) / 50, np.zeros((8, 1)))]
      >>> [len(times) for times, _ in paced(rows, 50.0, None, threading.Event())]
      [5, 3]
    """
    count = max(1, round(PIECE_S * rate_hz))
    start = None
    for times, samples in rows:
        for first in range(0, len(times), count):
            part = slice(first, first + count)
            if speed is not None:
                now, last = time.monotonic(), float(times[part][-1]) / speed
                if start is None:
                    start = now - float(times[0]) / speed
                if -LONGEST_WAIT_S < start + last - now < LONGEST_WAIT_S:
                    stop.wait(max(0.0, start + last - now))
                else:
                    start = now - last  # The recorded clock jumped.
            if stop.is_set():
                return
            yield times[part], samples[part]
