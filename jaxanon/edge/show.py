"""Turns a stream that runs into events for the live page: the only place raw goes."""

import collections
import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxanon.edge import readings
from jaxanon.edge.blocks import Block, Window
from jaxanon.edge.feed import Feed
from jaxanon.edge.pacing import paced

PASSING = frozenset({"raw", "safe"})


class Timed:
    """A model whose windows are timed. A class because it remembers the last ones.

    Args:
      model: has ``signature`` and ``anonymize``; all else is passed on.
    """

    def __init__(self, model: Any):
        self._model = model
        self.latencies_ms: collections.deque = collections.deque(maxlen=100)

    def __getattr__(self, name):
        return getattr(self._model, name)

    def anonymize(self, window):
        """As the model does."""
        start = time.perf_counter()
        safe = self._model.anonymize(window)
        self.latencies_ms.append(1000 * (time.perf_counter() - start))
        return safe


class Show:
    """Sends what happens to a feed. A class because it counts and averages.

    Args:
      feed: of the page.
      model: ``Timed``.
      reader: ``Readings``, or None without attackers.
      asked: its questions.
    """

    def __init__(
        self,
        feed: Feed,
        model: Timed,
        reader: readings.Readings | None,
        asked: Sequence[readings.Question],
    ):
        self._feed, self._model = feed, model
        self._reader, self._asked = reader, asked
        self._windows = self._failed = 0
        self._begun = False

    def raw(self, times, samples) -> None:
        """Samples as they are pushed, ``float64[n]`` and ``float[n, channels]``."""
        known = [time for time in map(float, times) if math.isfinite(time)]
        if not self._begun and known:  # From here on the page counts its seconds.
            self._feed.send("origin", {"t": known[0]})
            self._begun = True
        self._feed.send("raw", {"t": _numbers(times), "x": _numbers(samples)})

    def safe(self, block: Block) -> None:
        """A block as it leaves."""
        x = [] if block.gap else _numbers(block.samples)
        about = {"start": block.start, "end": block.end, "rate_hz": block.rate_hz}
        self._feed.send("safe", about | {"gap": block.gap, "x": x})

    def window(self, window: Window) -> None:
        """What attackers make of a window; ``inspect`` of a stream."""
        self._windows += 1
        self._failed += window.safe is None
        latencies, found, trouble = self._model.latencies_ms, [], ""
        if self._reader is not None:
            try:
                found = self._reader.add(window)
            except Exception as error:  # The show goes on without them.
                trouble = f"The attackers failed: {error}"
        answers = [
            {
                "raw": None if answer.raw is None else _numbers(answer.raw),
                "safe": None if answer.safe is None else _numbers(answer.safe),
                "sentence": readings.sentence(question, answer),
            }
            for question, answer in zip(self._asked, found, strict=False)
        ]
        about = {
            "windows": self._windows,
            "failed": self._failed,
            "latency_ms": latencies[-1] if latencies else None,
            "median_ms": float(np.median(latencies)) if latencies else None,
            "trouble": trouble,
        }
        self._feed.send("read", about | {"answers": answers})


def play(
    rows: Iterable,
    stream: Any,
    show: Show,
    speed: float | None,
    stop: threading.Event,
    order: Sequence[int] | None = None,
) -> None:
    """Pushes rows through a stream at their pace, and shows both ends.

    Args:
      rows: of ``(times float64[n] s, samples float[n, channels])``.
      stream: has ``signature``, ``push`` and ``close``.
      show: of the page.
      speed, stop: as ``paced`` takes them.
      order: of the model's channels among those of the rows; None is the same.
    """
    try:
        rate_hz = stream.signature.rate_hz
        for times, samples in paced(rows, rate_hz, speed, stop):
            show.raw(times, samples if order is None else samples[:, order])
            for block in stream.push(times, samples):
                show.safe(block)
    finally:
        for block in stream.close():
            show.safe(block)


def _numbers(values):
    """Nested lists for JSON, with None for what is not finite."""
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    if finite.all():
        return values.tolist()
    values = values.astype(object)
    values[~finite] = None
    return values.tolist()
