"""Anonymization of the rows of a recording, with the output at the rows' own times.

It is the pipeline of ``jaxanon.edge.Stream`` in batches of windows: a regular grid,
overlapping windows, overlap-add. It gives the same stream.
"""

import collections
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jaxanon.edge.overlap_add import Timeline
from jaxanon.edge.resampling import Resampler, step
from jaxanon.edge.types import Block
from jaxanon.recordings import grid
from jaxanon.streaming.overlap_add import Segment

NO_TIME = "the row has no time"
BETWEEN = "samples are missing"
TOO_LATE = "the row is too late"
LAST = 8  # Segments that are kept for late rows.
KEPT_S = 10.0  # Duration of safe samples that are kept for late rows.
COUNTS = "rows", "released", "empty", "invalid", "duplicate", "late", "windows"


class Rows(NamedTuple):
    """Safe values of consecutive rows."""

    samples: np.ndarray  # float32[n, channels], NaN in a gap
    codes: np.ndarray  # int16[n], index of the reason of a gap in ``reasons``
    reasons: tuple[str, ...]  # the first is "", of rows in no gap

    @property
    def gaps(self) -> np.ndarray:
        """``object[n]``, the reason of a gap, else ""."""
        return np.array(self.reasons, object)[self.codes]


class Settings(NamedTuple):
    """Shape of the model's windows, and how a stream is cut."""

    time: int  # samples per window
    channels: int
    model_hz: float
    rate_hz: float  # of the stream's grid
    hop: int  # at the model's rate
    max_gap: float  # in periods of the grid
    longest_gap_s: float = 10.0  # longer gaps have no rows on the grid


class _Part(NamedTuple):
    """Consecutive samples of a segment within one call."""

    span: "_Span"
    begins: bool
    given: int  # samples of the segment on the grid so far
    windows: np.ndarray
    reason: str | None  # why the segment ends after them


class _Span:
    """A segment: its place in time, and its safe samples on the stream's grid."""

    def __init__(self, settings: Settings, start: float, epoch: int):
        self.start, self.epoch = start, epoch
        self.segment = Segment(settings.time, settings.channels, settings.hop)
        self.to_model: Resampler | None = None
        if settings.rate_hz != settings.model_hz:
            ratio = step(settings.rate_hz, settings.model_hz)
            self.to_model = Resampler(ratio, settings.channels)
            self.to_model.begin(0)
        self.given = 0  # samples on the grid
        self.ended = False
        self.reasons: dict[int, str] = {}  # index of a gap's first sample -> reason
        self.safe = np.zeros((0, settings.channels), np.float32)
        self.safe_at = 0  # index of the first sample of ``safe``

    @property
    def done(self) -> int:
        """Number of final samples."""
        return self.safe_at + len(self.safe)

    def put(self, block: Block):
        """Adds a block of this segment."""
        index = round((block.start - self.start) * block.rate_hz)
        count = round((block.end - block.start) * block.rate_hz)
        samples = block.samples
        if block.gap:
            samples = np.full((count, self.safe.shape[1]), np.nan, np.float32)
            self.reasons[index] = block.gap
        self.safe = np.concatenate([self.safe, samples])

    def reason(self, index: int) -> str:
        """Returns the reason of the gap at sample ``index``."""
        starts = [first for first in self.reasons if first <= index]
        return self.reasons[max(starts)] if starts else BETWEEN


class SafeStream:
    """Anonymizes the rows of one recording.

    Args:
      settings: ``Settings``.
      anonymize: function from ``float32[N, time, channels]`` to the same shape. Windows
        that are not finite become gaps.
      on_grid: whether to return blocks on the grid instead of one row per row.

    Example:
      >>> settings = Settings(4, 1, 50.0, 50.0, 2, 3)
      >>> stream = SafeStream(settings, lambda windows: -windows)
      >>> times = 7 + np.array([0, 1, 2, 3.5, 4, 5]) / 50
      >>> rows = stream.push(times, np.ones((6, 1))), stream.close()
      >>> np.concatenate([each.samples for each in rows]).ravel().tolist()
      [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    """

    def __init__(self, settings: Settings, anonymize: Callable, on_grid: bool = False):
        self._settings, self._anonymize = settings, anonymize
        self._on_grid = on_grid
        rate, channels = settings.rate_hz, settings.channels
        self._grid = grid.Grid(rate, channels, settings.max_gap)
        self._timeline = Timeline(
            rate, settings.model_hz, channels, settings.longest_gap_s
        )
        self._spans: list[_Span] = []
        self._open: _Span | None = None
        self._epoch = 0  # number of times that the clock was set back
        self._times = np.zeros(0)  # of the rows that wait for their safe values
        self._epochs = np.zeros(0, np.int64)
        self._counts: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self._codes = {"": 0}  # Number of each reason.

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of rows and windows, by outcome, as in ``COUNTS``."""
        totals = self._counts + self._grid.counts
        return {name: totals[name] for name in COUNTS}

    @property
    def seen_rate_hz(self) -> float:
        """Rate of the rows between gaps; NaN before two rows."""
        return self._grid.seen_rate_hz

    def push(self, times: np.ndarray, samples: np.ndarray):
        """Adds rows; returns the values that are final.

        Args:
          times: ``float64[n]`` s, NaN where unknown.
          samples: ``float64[n, channels]`` in the model's units, NaN where missing.

        Returns:
          ``Rows`` of the next rows, in order; a list of ``Block`` if ``on_grid``.
        """
        with np.errstate(over="ignore"):  # Infinite values are dropped as invalid.
            samples = np.asarray(samples, np.float64).astype(np.float32)
        self._counts["rows"] += len(times)
        if not self._on_grid:
            self._times = np.concatenate([self._times, times])
            epochs = np.full(len(times), self._epoch)
            self._epochs = np.concatenate([self._epochs, epochs])
        events = self._grid.push(times, samples.astype(np.float64))
        return self._follow(events, closing=False)

    def close(self):
        """Ends the stream; returns its remaining rows or blocks."""
        return self._follow(self._grid.close(), closing=True)

    def _follow(self, events, closing):
        parts = list(self._parts(events))
        windows = [part.windows for part in parts]
        safe = windows[0] if windows else None
        if windows and sum(map(len, windows)):
            joined = windows[0] if len(windows) == 1 else np.concatenate(windows)
            safe = self._anonymize(joined)
            self._counts["windows"] += len(joined)
        blocks: list[Block] = []
        first = 0
        for part in parts:
            last = first + len(part.windows)
            assert safe is not None
            blocks += self._add(part, safe[first:last])
            first = last
        if self._on_grid:
            return blocks
        return self._rows(closing)

    def _parts(self, events) -> Iterator[_Part]:
        """Yields the windows of each segment within one call."""
        gathered: list[np.ndarray] = []
        begins = set_back = False
        for event in events:
            if isinstance(event, grid.Begin):
                if set_back:
                    self._set_back(event.start)
                self._open = _Span(self._settings, event.start, self._epoch)
                self._spans.append(self._open)
                begins, set_back = True, False
            elif isinstance(event, grid.Samples):
                gathered.append(event.samples)
            else:
                yield self._part(gathered, begins, event.reason)
                gathered, begins = [], False
                self._open = None
                set_back = event.reason == "the clock was set back"
        if self._open is not None:
            yield self._part(gathered, begins, None)

    def _part(self, gathered, begins, reason):
        span, channels = self._open, self._settings.channels
        assert span is not None
        samples = np.concatenate([np.zeros((0, channels)), *gathered])
        span.given += len(samples)
        if span.to_model is not None:
            samples = span.to_model.push(samples)
            if reason is not None:
                rest = span.to_model.end(beyond=True)
                samples = np.concatenate([samples, rest])
        windows = span.segment.windows(samples, reason is not None)
        return _Part(span, begins, span.given, windows, reason)

    def _set_back(self, start):
        """Assigns the waiting rows from time ``start`` on to the next epoch."""
        before, self._epoch = self._epoch, self._epoch + 1
        known = (self._epochs == before) & np.isfinite(self._times)
        highest = np.maximum.accumulate(np.where(known, self._times, -math.inf))
        found = np.flatnonzero(known & (highest > start) & (self._times == start))
        if len(found):
            self._epochs[found[0] :] = self._epoch

    def _add(self, part, safe) -> list[Block]:
        """Passes anonymized windows through the overlap-add and the timeline."""
        timeline, span = self._timeline, part.span
        if part.begins:
            timeline.begin(span.start)
        between = timeline.taken() if part.begins else []
        if part.reason is not None:
            timeline.ends_at(part.given)
        for piece in span.segment.add(safe):
            timeline.add(piece)
        if part.reason is not None:
            timeline.end(part.reason)
        blocks = timeline.taken()
        if not self._on_grid:
            for block in blocks:
                span.put(block)
        span.ended = part.reason is not None
        return between + blocks

    def _rows(self, closing) -> Rows:
        """Returns the values of the waiting rows up to the first that is not final."""
        settings = self._settings
        times = self._times
        samples = np.full((len(times), settings.channels), np.nan, np.float32)
        gaps = np.full(len(times), self._code(BETWEEN), np.int16)
        final = np.full(len(times), closing)
        unknown = ~np.isfinite(times)
        gaps[unknown], final[unknown] = self._code(NO_TIME), True
        for epoch in _distinct(self._epochs):
            spans = [span for span in self._spans if span.epoch == epoch]
            rows = np.flatnonzero((self._epochs == epoch) & ~unknown)
            if not spans or not len(rows):
                continue
            starts = np.array([span.start for span in spans])
            which = np.searchsorted(starts, times[rows], side="right") - 1
            gaps[rows[which < 0]] = self._code(TOO_LATE)
            final[rows[which < 0]] = True
            for number in _distinct(which[which >= 0]):
                mine = rows[which == number]
                self._place(spans[number], times[mine], mine, samples, gaps, final)
        if not closing and not unknown.all():
            # Late rows may turn out to be the first ones after a clock was set back.
            known = np.where(unknown, -math.inf, times)
            newest = np.flatnonzero(known == known.max())
            final[newest[-1] + 1 :] = False
        count = len(times) if final.all() else int(np.argmin(final))
        self._leave(count, closing)
        found = Rows(samples[:count], gaps[:count], (*self._codes,))
        missing = found.codes[np.isnan(found.samples).any(axis=1)]
        self._counts["released"] += count - len(missing)
        self._counts["empty"] += len(missing)
        numbers = np.bincount(missing, minlength=len(found.reasons)).tolist()
        self.reasons += dict(zip(found.reasons, numbers, strict=True))
        return found

    def _code(self, reason):
        return self._codes.setdefault(reason, len(self._codes))

    def _place(self, span, times, rows, samples, gaps, final):
        """Interpolates a segment at the times of rows."""
        positions = (times - span.start) * self._settings.rate_hz
        nearest = np.round(positions)
        spacing = float(np.spacing(np.abs(times).max()))
        tolerance = max(grid.NEAR, 4 * spacing * self._settings.rate_hz)
        on_grid = np.abs(positions - nearest) <= tolerance
        positions = np.where(on_grid, nearest, positions)
        if span.ended:
            inside = positions < span.done
            # The last row may be up to a period after the last point of the grid.
            positions = np.minimum(positions, span.done - 1)
            final[rows] = True
        else:
            inside = np.ceil(positions) < span.done
            final[rows] |= inside
        early = positions < span.safe_at
        gaps[rows[early]], final[rows[early]] = self._code(TOO_LATE), True
        inside &= ~early
        rows, positions = rows[inside], positions[inside] - span.safe_at
        if not len(rows):
            return
        left = np.floor(positions).astype(np.int64)
        part = (positions - left).astype(np.float32)[:, None]
        values = span.safe[left]
        if part.any():
            right = np.minimum(left + 1, len(span.safe) - 1)
            # A row on the grid does not depend on its neighbour, which may be a gap.
            after = np.where(part > 0, span.safe[right], 0)
            values = (1 - part) * values + part * after
        missing = np.isnan(values).any(axis=1)
        gaps[rows] = 0
        if missing.any():
            values[missing] = np.nan
            for row in np.flatnonzero(missing):
                reason = span.reason(int(left[row]) + span.safe_at)
                gaps[rows[row]] = self._code(reason)
        samples[rows] = values

    def _leave(self, count, closing):
        """Forgets released rows, and safe samples that no row can need."""
        self._times, self._epochs = self._times[count:], self._epochs[count:]
        if closing:
            self._spans = []
            return
        rate, known = self._settings.rate_hz, np.isfinite(self._times)
        kept = max(1, math.ceil(KEPT_S * rate))
        for span in self._spans:
            waiting = self._times[(self._epochs == span.epoch) & known]
            first = span.done - kept
            if len(waiting):
                earliest = (float(waiting.min()) - span.start) * rate
                first = min(first, math.floor(earliest) - 1)
            if first > span.safe_at:
                drop = min(first - span.safe_at, len(span.safe))
                span.safe, span.safe_at = span.safe[drop:].copy(), span.safe_at + drop
        # The last few segments suffice for late rows.
        earliest = self._times[known].min(initial=math.inf)
        needed = [
            span
            for span in self._spans[:-LAST]
            if earliest < span.start + span.done / rate
        ]
        self._spans = needed + self._spans[-LAST:]


def _distinct(numbers):
    """Returns the distinct values of small whole numbers, without sorting."""
    return np.flatnonzero(np.bincount(numbers))
