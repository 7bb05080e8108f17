"""Cutting of grid points into windows of one class."""

import numpy as np

from jaxanon.datasets.importing.stretches import Piece, Recording
from jaxanon.datasets.importing.summary import REST


class Cutter:
    """State of cutting the pieces of recordings into windows.

    A window lies in one segment and has one combination of labels. Windows of a stretch
    begin every ``stride`` points from its first point, also across pieces.

    Args:
      length: points per window.
      stride: points between starts of windows.
      channels: number of channels.
      tally: ``summary.Tally`` of rows that are in no window.
    """

    def __init__(self, length: int, stride: int, channels: int, tally):
        self._length, self._stride, self._tally = length, stride, tally
        self._samples = np.zeros((0, channels), np.float32)
        self._close()

    def _close(self):
        """Forgets the open stretch: points held for its next windows."""
        self._samples = self._samples[:0]
        self._codes = self._rows = np.zeros(0, np.int64)
        self._code = None  # Labels of the open stretch.
        self._skip = 0  # Points to come before its next window.
        self._covered = -1  # Last row in one of its windows, or -1.
        self._rest = 0  # Rows after it so far.

    def cut(self, recording: Recording, piece: Piece) -> tuple[np.ndarray, np.ndarray]:
        """Returns windows ``float32[n, length, channels]`` and their label codes."""
        tally, length, stride = self._tally, self._length, self._stride
        samples, codes, rows = self._with_held(recording, piece)
        if not len(codes):
            return self._gather(samples, codes), codes
        gaps = piece.starts + len(self._codes)
        changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        begins = np.union1d(np.union1d(changes, gaps[gaps < len(codes)]), [0])
        begins = begins.astype(np.int64)
        ends = np.append(begins[1:], len(codes))
        continues = self._code == codes[0] and self._code is not None
        froms = begins.copy()
        froms[0] += self._skip if continues else 0
        room = ends - froms - length
        counts = np.where((room >= 0) & (codes[begins] >= 0), room // stride + 1, 0)
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.repeat(froms, counts) + stride * number

        # Rows after the last window of each stretch.
        last = np.minimum(froms + (counts - 1) * stride + length, len(rows)) - 1
        covered = np.where(counts > 0, rows[last], -1)
        if continues:
            covered[0] = max(covered[0], self._covered)
        rest = rows[ends - 1] - np.where(covered >= 0, covered, rows[begins] - 1)
        rest[codes[begins] < 0] = 0
        if self._rest and not continues:  # The open stretch ended with its piece.
            tally.lose(REST + "a label change", self._rest, recording.source)
        self._rest = int(rest[-1])
        rest[-1] *= not piece.is_open
        before_gap = np.isin(ends, gaps)
        at_end = ends == len(codes)
        for cause, which in {
            "short stretch": covered < 0,
            REST + "a gap": (covered >= 0) & before_gap,
            REST + "a label change": (covered >= 0) & ~before_gap & ~at_end,
            REST + "the end": (covered >= 0) & ~before_gap & at_end,
        }.items():
            tally.lose(cause, int(rest[which].sum()), recording.source)
        # A change through points between two classes is one change.
        changed = ~before_gap & ~at_end & (codes[begins] >= 0)
        at_border = self._code is not None and self._code >= 0 and not continues
        tally.events["label changes"] += int(changed.sum()) + int(at_border)

        tally.windows += len(starts)
        windows, labels = self._gather(samples, starts), codes[starts]
        if piece.is_open:
            begin = int(froms[-1] + counts[-1] * stride)
            self._samples, self._codes = samples[begin:].copy(), codes[begin:]
            self._rows, self._code = rows[begin:], codes[-1]
            self._skip = max(0, begin - len(codes))
            self._covered = int(covered[-1])
        else:
            self._close()
        return windows, labels

    def _with_held(self, recording, piece):
        """Returns samples, label codes and rows of held and new points."""
        first, last = piece.rows[[0, -1]] if len(piece.rows) else (0, -1)
        if piece.mixed is None and last - first + 1 == len(piece.rows):
            codes = recording.codes[first : last + 1]
        else:
            codes = recording.codes[piece.rows]
        if piece.mixed is not None:
            after = np.minimum(piece.rows + 1, len(recording.codes) - 1)
            # A point between two classes belongs to none.
            codes[piece.mixed & (recording.codes[after] != codes)] = -1
        held = len(self._codes)
        samples = np.empty((held + len(codes), self._samples.shape[1]), np.float32)
        samples[:held] = self._samples
        for channel in range(samples.shape[1]):  # Faster than all at once.
            samples[held:, channel] = piece.samples[:, channel]
        if not held:
            return samples, codes, piece.rows
        codes = np.concatenate([self._codes, codes])
        return samples, codes, np.concatenate([self._rows, piece.rows])

    def _gather(self, samples, starts):
        """Returns windows from each start, copied in one pass."""
        width = samples.shape[1]
        if not len(starts):
            return np.zeros((0, self._length, width), np.float32)
        flat = np.lib.stride_tricks.as_strided(
            samples,
            (len(samples) - self._length + 1, self._length * width),
            (samples.strides[0], samples.itemsize),
            writeable=False,
        )
        return flat[starts].reshape(-1, self._length, width)
