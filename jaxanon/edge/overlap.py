"""Windows cut from a segment, rewritten one by one, and added up again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SHORT = "the segment is shorter than a window"


class Piece(NamedTuple):
    """What follows in a segment: samples, or why ``count`` of them are a gap."""

    count: int
    samples: np.ndarray | None  # float64[count, channels]
    reason: str = ""


def weights(time: int) -> np.ndarray:
    """The squared sine over a window, > 0 everywhere, ``float64[time]``.

    Example:
      >>> weights(2)
      array([0.5, 0.5])
    """
    return np.sin(np.pi * (np.arange(time) + 0.5) / time) ** 2


class Overlap:
    """Overlap-add over a segment. A class because windows overlap.

    Windows begin at the multiples of ``hop``; where the segment's end is in none of
    them, another ends there. Every sample is the mean of the windows that have it,
    weighted by ``weights``: windows that come back as they were give the segment as it
    was, its ends too. A window that does not come back is a gap, all of it. A sample
    leaves when the last window that has it is rewritten; one that left stays.

    Args:
      time, channels: of a window.
      hop: samples from a window's beginning to the next one's, in [1, time].
      rewrite: of the window's first sample's index and ``float32[time, channels]``
        gives the same shape and "", or None and why not.

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
        """A new segment; whatever is left of another is forgotten."""
        self._raw = np.zeros((0, self._channels))
        self._kept = 0  # of ``_raw``, samples that left: a last window may need them
        self._start = 0  # index, in the segment, of the first that did not
        self._sum = np.zeros((self._time, self._channels))
        self._weight = np.zeros(self._time)
        self._bad, self._reason = 0, ""  # how many from there on are a gap, and why

    def push(self, samples: np.ndarray) -> list[Piece]:
        """What can leave once the segment's next ``float64[n, channels]`` are here."""
        raw = np.concatenate([self._raw, samples]) if len(self._raw) else samples
        at, pieces = self._kept, []
        while len(raw) - at >= self._time:
            self._add(raw[at : at + self._time], self._start, 0)
            pieces += self._leave(self._hop)
            at += self._hop
        first = max(0, at - self._hop)
        # A copy: what was pushed may be large, and the caller's.
        self._raw, self._kept = raw[first:].copy(), at - first
        return pieces

    def end(self) -> list[Piece]:
        """What is left of the segment."""
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
        """Adds a window, without its first ``left`` samples, which are gone."""
        safe, reason = self._rewrite(index, raw.astype(np.float32))
        count = self._time - left
        if safe is None:
            self._bad, self._reason = count, reason
            return
        part = self._window[left:]
        self._sum[:count] += part[:, None] * safe[left:].astype(np.float64)
        self._weight[:count] += part

    def _leave(self, count):
        """The next ``count`` samples, all of whose windows are there."""
        bad = min(count, self._bad)
        pieces = [Piece(bad, None, self._reason)] if bad else []
        if count > bad:
            found = self._sum[bad:count] / self._weight[bad:count, None]
            pieces.append(Piece(count - bad, found))
        for rows in (self._sum, self._weight):
            rows[: self._time - count] = rows[count:].copy()
            rows[self._time - count :] = 0
        self._bad -= bad
        self._start += count
        return pieces
