"""Rows of CSV from a file or a pipe, as they come or at the pace of their own clock."""

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator

import numpy as np

from jaxanon.recordings.csv_rows import Rows

PIECE_S = 0.1  # Rows come by as much, at most.
LONGEST_WAIT_S = 2.0  # A longer silence in a recording is not waited out.


def open_rows(source: str | os.PathLike) -> Rows:
    """Opens a file of rows, or ``-``, the standard input; ``close`` it.

    Raises:
      FileNotFoundError: without the file.
      ValueError: without a header.

    Example:
      >>> open_rows("nowhere.csv")
      Traceback (most recent call last):
      ...
      FileNotFoundError: there is no file nowhere.csv; name one, or - to read a pipe.
    """
    if str(source) == "-":
        return Rows(open(sys.stdin.fileno(), "rb", closefd=False), "the input")
    if not os.path.isfile(source):
        raise FileNotFoundError(
            f"there is no file {source}; name one, or - to read a pipe."
        )
    file = open(source, "rb")
    try:
        return Rows(file, str(source))
    except ValueError:
        file.close()
        raise


def paced(
    rows: Iterable, rate_hz: float, speed: float | None, stop: threading.Event
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows in pieces of a tenth of a second, none before its time has come.

    The clock begins with the first row, and anew where times jump.

    Args:
      rows: of ``(times float64[n] s, samples float[n, channels])``.
      rate_hz: of the rows.
      speed: seconds of the recording per second; None takes rows as they come, as
        those of a sensor do.
      stop: ends it.

    Yields:
      As ``rows``.

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
                    start = now - last  # The clock jumped.
            if stop.is_set():
                return
            yield times[part], samples[part]
