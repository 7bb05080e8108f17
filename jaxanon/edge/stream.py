"""A stream of samples, anonymized as it comes: what fails is a gap, never raw."""

import collections
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxanon.edge import grid, types
from jaxanon.edge.guard import Anonymizer, Guard
from jaxanon.edge.overlap_add import Overlap, Timeline
from jaxanon.edge.resampling import Resampler, step
from jaxanon.edge.types import Block, Window

COUNTS = (
    *("pushed", "invalid", "duplicate", "late", "samples", "missing", "released"),
    *("raised", "late windows", "shape", "non-finite", "exhausted", "uncharged"),
    "inspect",
)


class Stream:
    """Samples in, anonymized samples out. A class because a stream has a past.

    Samples are put on a grid at ``rate_hz`` (``Grid`` says how, and what it drops),
    resampled to the model's rate if that is another (``Resampler``), cut into windows
    that overlap, anonymized one by one in a thread, added up (``Overlap``) and
    resampled back. Times of what leaves are those of what came, without
    a delay.

    Whatever goes wrong with a window (the model raises, hangs, returns NaN or another
    shape; its budget is exhausted), all samples of that window leave as a gap with the
    reason, also those that another window has. So do samples between segments, and
    segments shorter than a window. Nothing leaves that no window was made of.

    Whoever interrupts a call (``KeyboardInterrupt``) has closed the stream.

    Memory is bounded by what one call pushes, a few windows and ten seconds of samples.
    One thread at a time calls a stream.

    Args:
      model: of ``load``; or anything with ``signature`` and ``anonymize``.
      rate_hz: of what is pushed and of what leaves; None is the model's.
      hop: samples, at the model's rate, from a window to the next; in [1, time]; None
        is half a window.
      deadline_s: of the model, for one window.
      budget: ``Budget``, where the model spends ε; ``UNBOUNDED`` keeps no account.
      inspect: gets a ``Window`` of each window; what it raises is counted, not raised.
      channels, units: of what is pushed; None: as the model has them.
      reorder: whether channels in another order are put in the model's.
      max_gap: periods from one sample to the next, >= 1; what is missing in between is
        interpolated, and beyond it a gap.
      longest_gap_s: the longest gap that is written out in rows of NaN.

    Raises:
      ValueError: for an argument out of its range; channels, order or units that
        contradict the model; a model that spends ε without a budget.

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
        own = model.signature
        self._order = types.order(own, channels, units, reorder)
        rate = float(own.rate_hz if rate_hz is None else rate_hz)
        hop = max(1, own.time // 2) if hop is None else hop
        _check(rate, hop, own.time, max_gap, longest_gap_s)
        self.signature = own._replace(rate_hz=rate)
        self._rate, self._max_gap = own.rate_hz, max_gap
        self._guard, self._inspect = Guard(model, deadline_s, budget), inspect
        count = len(own.channels)
        self._grid = grid.Grid(rate, count, max_gap)
        self._overlap = Overlap(own.time, count, hop, self._rewrite)
        self._there: Resampler | None = None
        if rate != own.rate_hz:
            self._there = Resampler(step(rate, own.rate_hz), count)
        self._timeline = Timeline(rate, own.rate_hz, count, longest_gap_s)
        self._given = 0  # samples of the segment on the grid
        self._closed = False

    @property
    def latency_s(self) -> float:
        """At most so long after its own time a sample leaves, beside computing.

        It waits for the last sample of the last window that has it, for half a filter
        on each side where there is resampling, and for the end of an interpolation.
        Where no samples come, nothing leaves until the next one, or ``close``.
        """
        wait = self.signature.time / self._rate + self._max_gap / self.signature.rate_hz
        back = self._timeline.half / self._rate
        if self._there is not None:
            wait += (self._there.half + 1) / self.signature.rate_hz + 1 / self._rate
        return wait + back

    @property
    def seen_rate_hz(self) -> float:
        """At which rate samples came, between gaps; NaN before two of them.

        Where that is not about ``rate_hz``, the model sees signals that are slower or
        faster than those that it was trained on.
        """
        return self._grid.seen_rate_hz

    @property
    def counts(self) -> dict[str, int]:
        """What became of samples and windows since the beginning, by name.

        Samples ``pushed``, and of them ``invalid``, ``duplicate`` and ``late`` (see
        ``Grid``); on the grid, ``samples`` that left and ``missing`` ones. Windows
        ``released``, or not: the model ``raised``, hung (``late windows``), returned
        another ``shape`` or ``non-finite`` numbers; the budget was ``exhausted`` or
        ``uncharged``, for it could not be written. What ``inspect`` raised.
        """
        found = collections.Counter(self._grid.counts)
        found.update(self._timeline.counts)
        found.update(self._guard.counts)
        return {name: found[name] for name in COUNTS}

    def push(self, times, samples) -> list[Block]:
        """Takes samples; gives what can leave.

        Args:
          times: ``float64[n]`` s, of any clock; late and repeated ones are dropped.
          samples: ``float[n, channels]``, in the declared channels and units.

        Returns:
          Blocks, each beginning where the one before ends, also across calls.

        Raises:
          ValueError: for other shapes, or after ``close``; nothing is taken.
        """
        times = np.asarray(times, np.float64)
        with np.errstate(over="ignore"):
            # What float32 cannot hold is infinite, and dropped as such.
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
            raise ValueError("the stream is closed; open another.")
        self._grid.counts["pushed"] += len(times)
        if self._order is not None:
            samples = samples[:, self._order]
        return self._safely(lambda: self._grid.push(times, samples))

    def close(self) -> list[Block]:
        """What is left, as ``push`` gives it; the stream takes no more."""
        if self._closed:
            return []
        blocks = self._safely(self._grid.close)
        self._closed = True
        self._guard.close()
        return blocks

    def _safely(self, events):
        """The blocks that events lead to; half done, nothing leaves any more."""
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
                if self._there is not None:
                    self._there.begin(0)
            elif isinstance(event, grid.Samples):
                self._given += len(event.samples)
                self._add(event.samples)
            else:
                self._timeline.ends_at(self._given)
                if self._there is not None:
                    self._through(self._there.end(beyond=True))
                for piece in self._overlap.end():
                    self._timeline.add(piece)
                self._timeline.end(event.reason)
        return self._timeline.taken()

    def _add(self, samples):
        self._through(samples if self._there is None else self._there.push(samples))

    def _through(self, samples):
        for piece in self._overlap.push(samples):
            self._timeline.add(piece)

    def _rewrite(self, index, raw):
        # The model's own copy: what it writes into it is nobody else's.
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
            f"hop must be a whole number in [1, {time}], the samples of a window, got "
            f"{hop!r}."
        )
    if not (math.isfinite(max_gap) and max_gap >= 1):
        raise ValueError(
            f"max_gap must be >= 1, in periods, and finite, got {max_gap!r}."
        )
    if not (math.isfinite(longest_gap_s) and longest_gap_s >= 0):
        raise ValueError(
            f"longest_gap_s must be >= 0 and finite, got {longest_gap_s!r}."
        )
