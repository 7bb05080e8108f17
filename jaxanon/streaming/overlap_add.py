"""Overlap-add of many anonymized windows at once."""

import numpy as np

from jaxanon.edge.overlap_add import SHORT, Piece, weights

NOT_FINITE = "the model returned NaN or infinity"


class Segment:
    """State of the overlap-add of one segment, in batches of windows.

    The result equals ``edge.overlap_add.Overlap``, which takes windows one by one:
    windows start at multiples of ``hop``, one more ends at the segment's end if
    necessary, and a window that is not finite becomes a gap.

    Args:
      time, channels: size of a window.
      hop: samples between the starts of consecutive windows, in [1, time].

    Example:
      >>> segment = Segment(4, 1, 2)
      >>> windows = segment.windows(np.ones((5, 1)), ended=True)
      >>> windows.shape
      (2, 4, 1)
      >>> [piece.count for piece in segment.add(-windows)]
      [5]
    """

    def __init__(self, time: int, channels: int, hop: int):
        self._time, self._hop = time, hop
        self._blocks = -(-time // hop)  # blocks of ``hop`` samples in a window
        self._weights = np.zeros(self._blocks * hop)
        self._weights[:time] = weights(time)
        self._raw = np.zeros((0, channels))
        self._raw_at = 0  # index in the segment of the first sample of ``_raw``
        self._next = 0  # start of the next window; earlier samples are released
        self._count = 0  # samples so far
        self._whole = 0  # whole windows that wait for ``add``
        self._rest: int | None = None  # samples after them, once the segment ended
        length = self._blocks * hop
        self._sum, self._weight = np.zeros((length, channels)), np.zeros(length)
        self._bad = np.zeros(length, bool)

    def windows(self, samples: np.ndarray, ended: bool) -> np.ndarray:
        """Adds samples; returns the windows that they complete.

        Args:
          samples: ``float64[n, channels]``.
          ended: whether the segment ends after them.

        Returns:
          ``float32[N, time, channels]``, to be passed to ``add`` in anonymized form.
        """
        time, hop = self._time, self._hop
        raw = np.concatenate([self._raw, samples])
        self._count += len(samples)
        self._whole = max(0, (self._count - self._next - time) // hop + 1)
        starts = self._next + hop * np.arange(self._whole)
        following = self._next + hop * self._whole
        if ended:
            self._rest = self._count - following
            if following > 0 and self._rest > time - hop:
                starts = np.append(starts, self._count - time)
        starts = starts.astype(np.int64) - self._raw_at
        if len(starts):
            view = np.lib.stride_tricks.sliding_window_view(raw, time, axis=0)
            found = view[starts].transpose(0, 2, 1).astype(np.float32)
        else:
            found = np.zeros((0, time, raw.shape[1]), np.float32)
        kept = max(0, following - hop)  # The last window may begin here.
        self._raw, self._raw_at = raw[kept - self._raw_at :].copy(), kept
        return found

    def add(self, safe: np.ndarray) -> list[Piece]:
        """Adds the anonymized windows; returns the pieces that are final."""
        count, hop, blocks = self._whole, self._hop, self._blocks
        channels = self._sum.shape[1]
        finite = np.asarray(np.isfinite(safe).all(axis=(1, 2)))
        total = np.zeros((count + blocks, hop, channels))
        weight = np.zeros((count + blocks, hop))
        bad = np.zeros((count + blocks, hop), bool)
        total[:blocks] = self._sum.reshape(blocks, hop, channels)
        weight[:blocks] = self._weight.reshape(blocks, hop)
        bad[:blocks] = self._bad.reshape(blocks, hop)
        shares = self._weights.reshape(blocks, hop)
        good = finite[:count]
        # From the last block of a window to its first, so that each sample adds up in
        # the order of the windows.
        for block in range(blocks - 1, -1, -1):
            first = block * hop
            part = safe[:count, first : min(first + hop, self._time)]
            if not good.all():
                part = np.where(good[:, None, None], part, 0)
            share, width = shares[block], part.shape[1]
            into = slice(block, block + count)
            total[into, :width] += share[:width, None] * part.astype(np.float64)
            weight[into] += share * good[:, None]
            bad[into] |= (share > 0) & ~good[:, None]
        total, weight, bad = (
            each.reshape((count + blocks) * hop, *each.shape[2:])
            for each in (total, weight, bad)
        )
        done = count * hop
        first = self._next
        self._next += done
        if self._rest is None:
            self._sum, self._weight, self._bad = total[done:], weight[done:], bad[done:]
            return _pieces(total[:done], weight[:done], bad[:done])
        if self._next == 0:
            return [Piece(self._rest, None, SHORT)] if self._rest else []
        if len(safe) > count:  # The last window, without its released samples.
            left, until = self._time - self._rest, done + self._rest
            if finite[-1]:
                share = self._weights[left : self._time]
                total[done:until] += share[:, None] * safe[-1, left:].astype(np.float64)
                weight[done:until] += share
            else:
                bad[done:until] = True
        end = self._count - first
        return _pieces(total[:end], weight[:end], bad[:end])


def _pieces(total, weight, bad):
    """Returns the weighted means, and gaps where windows failed."""
    if not len(total):
        return []
    edges = np.flatnonzero(bad[1:] != bad[:-1]) + 1
    pieces = []
    for begin, end in zip([0, *edges], [*edges, len(bad)], strict=True):
        if bad[begin]:
            pieces.append(Piece(int(end - begin), None, NOT_FINITE))
        else:
            mean = total[begin:end] / weight[begin:end, None]
            pieces.append(Piece(int(end - begin), mean))
    return pieces
