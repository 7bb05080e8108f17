"""Overlap-add of anonymized windows, and their division into blocks."""

import collections
import fractions
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxanon.edge.resampling import Resampler, step
from jaxanon.edge.types import Block

SHORT = "the segment is shorter than a window"


class Piece(NamedTuple):
    """The next part of a segment: ``count`` samples, or a gap with its reason."""

    count: int
    samples: np.ndarray | None  # float64[count, channels]
    reason: str = ""


def weights(time: int) -> np.ndarray:
    """Returns the squared sine over a window, ``float64[time]``, > 0 everywhere.

    Example:
      >>> weights(2)
      array([0.5, 0.5])
    """
    return np.sin(np.pi * (np.arange(time) + 0.5) / time) ** 2


class Overlap:
    """Overlap-add of the windows of a segment.

    Windows start at multiples of ``hop``, and one more ends at the segment's end if
    necessary. Each output sample is the mean over the windows that contain it, weighted
    by ``weights``. Unchanged windows therefore reproduce the segment, including its
    ends. A failed window becomes a gap over its whole length. A sample is released when
    the last window that contains it is anonymized, and never changes afterwards.


    Args:
      time, channels: size of a window.
      hop: samples between the starts of consecutive windows, in [1, time].
      rewrite: function from the index of the window's first sample and
        ``float32[time, channels]`` to the same shape and "", or to None and a reason.

    Example:
      >>> overlap = Overlap(4, 1, 2, lambda index, window: (-window, ""))
      >>> pieces = overlap.push(np.ones((5, 1))) + overlap.end()
      >>> [(piece.count, float(piece.samples[0, 0])) for piece in pieces]
      [(2, -1.0), (3, -1.0)]
    """

    def __init__(self, time: int, channels: int, hop: int, rewrite: Callable):
        self._time, self._hop, self._rewrite = time, hop, rewrite
        self._window = weights(time)
        self._channels = channels
        self.begin()

    def begin(self) -> None:
        """Starts a new segment; discards the rest of the previous one."""
        self._raw = np.zeros((0, self._channels))
        self._kept = 0  # released samples in ``_raw``, for the segment's last window
        self._start = 0  # index in the segment of the first unreleased sample
        self._sum = np.zeros((self._time, self._channels))
        self._weight = np.zeros(self._time)
        self._bad, self._reason = 0, ""  # length and reason of a gap at ``_start``

    def push(self, samples: np.ndarray) -> list[Piece]:
        """Adds ``float64[n, channels]``; returns the pieces that are final."""
        raw = np.concatenate([self._raw, samples]) if len(self._raw) else samples
        at, pieces = self._kept, []
        while len(raw) - at >= self._time:
            self._add(raw[at : at + self._time], self._start, 0)
            pieces += self._leave(self._hop)
            at += self._hop
        first = max(0, at - self._hop)
        # Copied, because the caller owns the array, which may be large.
        self._raw, self._kept = raw[first:].copy(), at - first
        return pieces

    def end(self) -> list[Piece]:
        """Ends the segment; returns its remaining pieces."""
        count = len(self._raw) - self._kept
        if self._start == 0:
            pieces = [Piece(count, None, SHORT)] if count else []
        else:
            if count > self._time - self._hop:
                begin = self._start + count - self._time
                self._add(self._raw[-self._time :], begin, self._time - count)
            pieces = self._leave(count)
        self.begin()
        return pieces

    def _add(self, raw, index, left):
        """Adds a window without its first ``left`` samples, which were released."""
        safe, reason = self._rewrite(index, raw.astype(np.float32))
        count = self._time - left
        if safe is None:
            self._bad, self._reason = count, reason
            return
        part = self._window[left:]
        self._sum[:count] += part[:, None] * safe[left:].astype(np.float64)
        self._weight[:count] += part

    def _leave(self, count):
        """Returns the next ``count`` samples, whose windows are all complete."""
        bad = min(count, self._bad)
        pieces = [Piece(bad, None, self._reason)] if bad else []
        if count > bad:
            mean = self._sum[bad:count] / self._weight[bad:count, None]
            pieces.append(Piece(count - bad, mean))
        for rows in (self._sum, self._weight):
            rows[: self._time - count] = rows[count:].copy()
            rows[self._time - count :] = 0
        self._bad -= bad
        self._start += count
        return pieces


class Timeline:
    """Assembly of the pieces of consecutive segments into blocks.

    Args:
      rate_hz: output rate.
      model_hz: rate of the pieces.
      channels: number of channels.
      longest_gap_s: maximum duration of a gap that is written out in rows.

    Example:
      >>> timeline = Timeline(50.0, 50.0, 1, 10.0)
      >>> timeline.begin(7.0)
      >>> timeline.add(Piece(2, None, "the model raised KeyError"))
      >>> [(block.gap, block.end) for block in timeline.taken()]
      [('the model raised KeyError', 7.04)]
    """

    def __init__(
        self, rate_hz: float, model_hz: float, channels: int, longest_gap_s: float
    ):
        self.counts: collections.Counter[str] = collections.Counter()
        self.start = 0.0  # time of the segment's start, in seconds
        self._rate, self._channels = rate_hz, channels
        self._longest = longest_gap_s
        self._step = fractions.Fraction(1)
        self._back: Resampler | None = None
        if rate_hz != model_hz:
            self._step = step(model_hz, rate_hz)
            self._back = Resampler(self._step, channels)
        self._blocks: list[Block] = []
        self._rows: list[np.ndarray] = []  # consecutive samples since the last block
        self._gap = ""  # or the reason why these samples are missing
        self._cut_at = 0  # index in the segment of the first sample after the blocks
        self._index = 0  # index in the segment of the next sample
        self._limit: int | None = None  # length of the segment, once known
        self._at = 0  # index of the next sample at the model's rate
        self._inside = False  # whether the filter is inside a piece
        self._why = ""  # reason of the segment's last gap
        self._ended: tuple[float, str] | None = None  # end and reason of last segment

    @property
    def half(self) -> int:
        """Samples at the model's rate that the output resampler waits for."""
        return 0 if self._back is None else self._back.half

    def begin(self, start: float) -> None:
        """Starts a segment at ``start`` s, after a gap since the previous one."""
        if self._ended is not None:
            end, reason = self._ended
            length = start - end
            # If the clock was set back, the gap has no rows.
            rows = round(length * self._rate) if 0 < length <= self._longest else 0
            self.counts["missing"] += max(0, round(length * self._rate))
            self._blocks.append(self._block(end, self._nothing(rows), reason, start))
        self.start, self._index, self._cut_at, self._at = start, 0, 0, 0
        self._limit, self._inside, self._why = None, False, ""

    def add(self, piece: Piece) -> None:
        """Adds a piece of the segment, at the model's rate."""
        if self._back is None:
            if piece.samples is None:
                self._leave_out(self._index + piece.count, piece.reason)
            else:
                self._put(piece.samples)
            return
        if piece.samples is None:
            self._finish()
            self._at += piece.count
            self._leave_out(math.ceil(self._at / self._step), piece.reason)
            return
        if not self._inside:
            self._back.begin(self._at)
            self._inside = True
        self._at += piece.count
        self._put(self._back.push(piece.samples))

    def _finish(self):
        """Flushes the filter at the end of a piece."""
        if self._back is not None and self._inside:
            self._put(self._back.end())
            self._inside = False

    def ends_at(self, count: int) -> None:
        """Sets the segment's length to ``count``; later samples are dropped."""
        self._limit = count

    def end(self, reason: str) -> None:
        """Ends the segment for ``reason``, after its last piece."""
        self._finish()
        if self._limit is not None:
            self._leave_out(self._limit, self._why or reason)
        self._cut()
        self._ended = self.start + self._index / self._rate, reason

    def _put(self, samples):
        if self._limit is not None:
            samples = samples[: max(0, self._limit - self._index)]
        if len(samples):
            if self._gap:
                self._cut()
            self._rows.append(samples)
            self._index += len(samples)

    def _leave_out(self, until, reason):
        """Adds a gap up to sample ``until`` of the segment."""
        if self._limit is not None:
            until = min(until, self._limit)
        if until > self._index:
            if self._gap != reason:
                self._cut()
            self._gap = self._why = reason
            self._index = until

    def _cut(self):
        """Completes a block from the samples or the gap since the last one."""
        count = self._index - self._cut_at
        if not count:
            return
        start = self.start + self._cut_at / self._rate
        end = self.start + self._index / self._rate
        if self._gap:
            rows = count if count / self._rate <= self._longest else 0
            block = self._block(start, self._nothing(rows), self._gap, end)
            self.counts["missing"] += count
        else:
            samples = np.concatenate(self._rows).astype(np.float32)
            block = self._block(start, samples, "", end)
            self.counts["samples"] += count
        self._blocks.append(block)
        self._rows, self._gap, self._cut_at = [], "", self._index

    def _block(self, start, samples, gap, end):
        return Block(start, self._rate, samples, gap, end)

    def _nothing(self, rows):
        return np.full((rows, self._channels), np.nan, np.float32)

    def taken(self) -> list[Block]:
        """Returns the blocks since the last call."""
        self._cut()
        blocks, self._blocks = self._blocks, []
        return blocks
