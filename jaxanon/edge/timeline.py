"""What leaves a stream, block after block, in the clock of what came."""

import collections
import fractions
import math

import numpy as np

from jaxanon.edge.blocks import Block
from jaxanon.edge.overlap import Piece
from jaxanon.edge.resampling import Resampler, step


class Timeline:
    """Puts pieces of segments into blocks. A class because one follows the other.

    Args:
      rate_hz: of what leaves.
      model_hz: of the pieces.
      channels: of a sample.
      longest_gap_s: the longest gap that is written out in rows.

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
        self.start = 0.0  # s, of the segment
        self._rate, self._channels = rate_hz, channels
        self._longest = longest_gap_s
        self._step = fractions.Fraction(1)
        self._back: Resampler | None = None
        if rate_hz != model_hz:
            self._step = step(model_hz, rate_hz)
            self._back = Resampler(self._step, channels)
        self._blocks: list[Block] = []
        self._rows: list[np.ndarray] = []  # that follow one another, in no block yet
        self._gap = ""  # or why the samples since the last block are missing
        self._cut_at = 0  # in the segment, of the first sample in no block yet
        self._index = 0  # of the next one
        self._limit: int | None = None  # samples of the segment, once that is known
        self._at = 0  # of the model's samples, the next
        self._inside = False  # Does the filter have a piece under way?
        self._why = ""  # there was the last gap of the segment
        self._ended: tuple[float, str] | None = None  # when the last segment did, why

    @property
    def half(self) -> int:
        """Samples of the model's that the way back waits for."""
        return 0 if self._back is None else self._back.half

    def begin(self, start: float) -> None:
        """A segment begins at ``start`` s; a gap leads to it from the last one."""
        if self._ended is not None:
            end, reason = self._ended
            length = start - end
            # Also where the clock was set back: a gap without rows.
            rows = round(length * self._rate) if 0 < length <= self._longest else 0
            self.counts["missing"] += max(0, round(length * self._rate))
            self._blocks.append(self._block(end, self._nothing(rows), reason, start))
        self.start, self._index, self._cut_at, self._at = start, 0, 0, 0
        self._limit, self._inside, self._why = None, False, ""

    def add(self, piece: Piece) -> None:
        """A piece of the segment, at the model's rate."""
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
        """What the filter still holds of its piece."""
        if self._back is not None and self._inside:
            self._put(self._back.end())
            self._inside = False

    def ends_at(self, count: int) -> None:
        """The segment has ``count`` samples; pieces beyond them count for nothing."""
        self._limit = count

    def end(self, reason: str) -> None:
        """All pieces of the segment are there; ``reason``, why it ended."""
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
        """A gap up to sample ``until`` of the segment."""
        if self._limit is not None:
            until = min(until, self._limit)
        if until > self._index:
            if self._gap != reason:
                self._cut()
            self._gap = self._why = reason
            self._index = until

    def _cut(self):
        """A block of what follows one another."""
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
        """The blocks since the last call."""
        self._cut()
        blocks, self._blocks = self._blocks, []
        return blocks
