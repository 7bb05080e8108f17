"""Anonymization of a stream of samples."""

import collections
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxanon.edge import types
from jaxanon.edge.guard import Anonymizer, Guard
from jaxanon.edge.overlap_add import Overlap, Timeline
from jaxanon.edge.resampling import Resampler, step
from jaxanon.edge.types import Block, Window
from jaxanon.recordings import grid

COUNTS = (
    *("pushed", "invalid", "duplicate", "late", "samples", "missing", "released"),
    *("raised", "late windows", "shape", "non-finite", "exhausted", "uncharged"),
    "inspect",
)


class Stream:
    """Anonymizes a stream of samples as they arrive.

    Samples are put on a grid at ``rate_hz`` (see ``Grid``), resampled to the model's
    rate if it differs (see ``Resampler``), and divided into overlapping windows. The
    windows are anonymized one by one in a thread, added up (see ``Overlap``) and
    resampled back. Output times lie on the grid, which begins at a segment's first
    sample: a sample's time moves by at most half a period. ``jaxanon anonymize`` gives
    the values at the times of the rows themselves. Rounded times and those of packets
    should pass ``recordings.steady.Steady`` first, as in ``jaxanon-edge run``.

    A window fails if the model raises, hangs, or returns NaN or another shape, or if
    the budget is exhausted. All its samples become a gap with the reason, including
    those in overlapping windows. Samples between segments and segments shorter than a
    window also become gaps. Raw samples are never released.

    An exception during a call, such as ``KeyboardInterrupt``, closes the stream.

    Memory is bounded by the samples of one call, a few windows and ten seconds of
    samples. Only one thread may call a stream at a time.

    Args:
      model: model from ``load``, or any object with ``signature`` and ``anonymize``.
      rate_hz: rate of input and output samples. None means the model's.
      hop: samples between consecutive windows, at the model's rate, in [1, time]. None
        means half a window.
      deadline_s: deadline of the model for one window.
      budget: ``Budget``, required if the model spends ε. ``UNBOUNDED`` does not count.
      inspect: callback for a ``Window`` of each window. Its exceptions are counted.
      channels, units: names and units of the input channels. None means the model's.
      reorder: whether to accept channels in another order.
      max_gap: maximum periods between samples, >= 1, that are interpolated. Longer ones
        become gaps.
      longest_gap_s: maximum duration of a gap that is written out in rows of NaN.

    Raises:
      ValueError: if an argument is out of range, channels, order or units differ from
        the model's, or a model that spends ε has no budget.

    Example:
      >>> from types import SimpleNamespace
      >>> model = SimpleNamespace(
      ...     signature=types.Signature(4, ("x",), ("g",), 50.0),
      ...     anonymize=lambda window: -window,
      ... )
      >>> stream = Stream(model)
      >>> times = np.array([7.0, 7.02, 7.04, 7.06, 7.08, 7.1])
      >>> blocks = stream.push(times, np.ones((6, 1))) + stream.close()
      >>> [(block.start, len(block.samples), block.gap) for block in blocks]
      [(7.0, 4, ''), (7.08, 2, '')]
    """

    def __init__(
        self,
        model: Anonymizer,
        rate_hz: float | None = None,
        hop: int | None = None,
        deadline_s: float = 1.0,
        budget: Any = None,
        inspect: Callable[[Window], Any] | None = None,
        *,
        channels: Sequence[str] | None = None,
        units: Sequence[str | None] | None = None,
        reorder: bool = False,
        max_gap: float = 3,
        longest_gap_s: float = 10.0,
    ):
        wanted = model.signature
        self._order = types.order(wanted, channels, units, reorder)
        rate = float(wanted.rate_hz if rate_hz is None else rate_hz)
        hop = max(1, wanted.time // 2) if hop is None else hop
        _check(rate, hop, wanted.time, max_gap, longest_gap_s)
        self.signature = wanted._replace(rate_hz=rate)
        self._rate, self._max_gap = wanted.rate_hz, max_gap
        self._guard, self._inspect = Guard(model, deadline_s, budget), inspect
        count = len(wanted.channels)
        self._grid = grid.Grid(rate, count, max_gap)
        self._overlap = Overlap(wanted.time, count, hop, self._rewrite)
        self._to_model: Resampler | None = None
        if rate != wanted.rate_hz:
            self._to_model = Resampler(step(rate, wanted.rate_hz), count)
        self._timeline = Timeline(rate, wanted.rate_hz, count, longest_gap_s)
        self._given = 0  # samples of the segment on the grid
        self._closed = False

    @property
    def latency_s(self) -> float:
        """Maximum delay of a sample's release after its time, without computation.

        It includes the last window that contains the sample, half a filter on each side
        if there is resampling, and the end of an interpolation. If samples stop, the
        rest is released only by the next sample or by ``close``.
        """
        wait = self.signature.time / self._rate + self._max_gap / self.signature.rate_hz
        back = self._timeline.half / self._rate
        if self._to_model is not None:
            wait += (self._to_model.half + 1) / self.signature.rate_hz
            wait += 1 / self._rate
        return wait + back

    @property
    def seen_rate_hz(self) -> float:
        """Rate of the samples between gaps; NaN before two samples.

        If it differs from ``rate_hz``, the model sees slower or faster signals than
        in training.
        """
        return self._grid.seen_rate_hz

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of samples and windows since the start, by outcome.

        Samples ``pushed``, including ``invalid``, ``duplicate`` and ``late`` ones (see
        ``Grid``). On the grid, ``samples`` that were released and ``missing`` ones.
        Windows ``released`` or not: the model ``raised``, was late (``late windows``),
        or returned another ``shape`` or ``non-finite`` numbers; the budget was
        ``exhausted`` or ``uncharged`` because of an error. Exceptions of ``inspect``.
        """
        totals = collections.Counter(self._grid.counts)
        totals.update(self._timeline.counts)
        totals.update(self._guard.counts)
        return {name: totals[name] for name in COUNTS}

    def push(self, times, samples) -> list[Block]:
        """Adds samples; returns blocks that are final.

        Args:
          times: ``float64[n]`` s, on any clock. Late and repeated samples are dropped.
          samples: ``float[n, channels]``, in the declared channels and units.

        Returns:
          Blocks, each starting at the end of the previous one, also across calls.

        Raises:
          ValueError: if shapes are wrong or the stream is closed.
        """
        times = np.asarray(times, np.float64)
        with np.errstate(over="ignore"):
            # Values outside float32 become infinite and are dropped as invalid.
            samples = np.asarray(samples, np.float64).astype(np.float32)
        samples = samples.astype(np.float64)
        count = len(self.signature.channels)
        if times.ndim != 1 or samples.shape != (len(times), count):
            raise ValueError(
                f"times and samples must be float[n] and float[n, {count}] (channels "
                f"{list(self.signature.channels)}), got shapes {times.shape} and "
                f"{samples.shape}."
            )
        if self._closed:
            raise ValueError("the stream is closed; open a new one.")
        self._grid.counts["pushed"] += len(times)
        if self._order is not None:
            samples = samples[:, self._order]
        return self._safely(lambda: self._grid.push(times, samples))

    def close(self) -> list[Block]:
        """Ends the stream; returns its remaining blocks."""
        if self._closed:
            return []
        blocks = self._safely(self._grid.close)
        self._closed = True
        self._guard.close()
        return blocks

    def _safely(self, events):
        """Returns the blocks of events; closes the stream if interrupted."""
        try:
            return self._follow(events())
        except BaseException:
            self._closed = True
            self._guard.close()
            raise

    def _follow(self, events):
        for event in events:
            if isinstance(event, grid.Begin):
                self._timeline.begin(event.start)
                self._overlap.begin()
                self._given = 0
                if self._to_model is not None:
                    self._to_model.begin(0)
            elif isinstance(event, grid.Samples):
                self._given += len(event.samples)
                self._add(event.samples)
            else:
                self._timeline.ends_at(self._given)
                if self._to_model is not None:
                    self._through(self._to_model.end(beyond=True))
                for piece in self._overlap.end():
                    self._timeline.add(piece)
                self._timeline.end(event.reason)
        return self._timeline.taken()

    def _add(self, samples):
        to_model = self._to_model
        self._through(samples if to_model is None else to_model.push(samples))

    def _through(self, samples):
        for piece in self._overlap.push(samples):
            self._timeline.add(piece)

    def _rewrite(self, index, raw):
        # Copied, because the model may write to its input.
        safe, reason = self._guard.rewrite(raw.copy())
        if self._inspect is not None:
            start = self._timeline.start + index / self._rate
            try:
                shown = None if safe is None else safe.copy()
                self._inspect(Window(start, raw, shown))
            except Exception:
                self._timeline.counts["inspect"] += 1
        return safe, reason


def _check(rate_hz, hop, time, max_gap, longest_gap_s):
    if not (math.isfinite(rate_hz) and rate_hz > 0):
        raise ValueError(f"rate_hz must be > 0 and finite, got {rate_hz!r}.")
    if isinstance(hop, bool) or not isinstance(hop, int) or not 1 <= hop <= time:
        raise ValueError(
            f"hop must be an integer in [1, {time}], the length of a window, got "
            f"{hop!r}."
        )
    if not (math.isfinite(max_gap) and max_gap >= 1):
        raise ValueError(
            f"max_gap must be finite and >= 1, in periods, got {max_gap!r}."
        )
    if not (math.isfinite(longest_gap_s) and longest_gap_s >= 0):
        raise ValueError(
            f"longest_gap_s must be finite and >= 0, got {longest_gap_s!r}."
        )
