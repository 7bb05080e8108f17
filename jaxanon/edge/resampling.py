"""Resampling by a windowed sinc, sample by sample, without delay in the times."""

import fractions
import math

import numpy as np

CROSSINGS = 16  # Zero crossings of the sinc on each side.
BETA = 9.0  # Parameter of the Kaiser window: about 90 dB attenuation of aliases.
ROLLOFF = 0.9  # Cutoff frequency relative to the lower Nyquist frequency.
PHASES = 512  # Tabulated phases of the filter; others are interpolated.
AT_ONCE = 1 << 17  # Input samples in memory at a time.


def step(from_hz: float, to_hz: float) -> fractions.Fraction:
    """Returns the input samples per output sample.

    Example:
      >>> step(200.0, 50.0)
      Fraction(4, 1)
    """
    exact = fractions.Fraction(from_hz) / fractions.Fraction(to_hz)
    return exact.limit_denominator(1_000_000)


class Resampler:
    """State of resampling the pieces of a segment.

    Output sample m is at input position ``m * step``, counted from the segment's start.
    The filter's weights sum to 1. The first and last samples of a piece are repeated
    beyond its ends.

    Args:
      step: input samples per output sample.
      channels: number of channels.

    Example:
      >>> half = Resampler(step(100.0, 50.0), 1)
      >>> np.concatenate([half.push(np.ones((5, 1))), half.end()]).ravel().round(9)
      array([1., 1., 1.])
    """

    def __init__(self, step: fractions.Fraction, channels: int):
        self._step = step
        self.cutoff = ROLLOFF * min(1.0, 1 / float(step))
        self.half = math.ceil(CROSSINGS / self.cutoff)  # input samples on each side
        exact = step.denominator <= PHASES
        self._phases = step.denominator if exact else PHASES
        offsets = np.arange(1 - self.half, self.half + 1)
        positions = np.arange(self._phases + 1)[:, None] / self._phases - offsets
        inside = 1 - (positions * self.cutoff / CROSSINGS) ** 2
        taper = np.i0(BETA * np.sqrt(np.maximum(inside, 0))) * (inside >= 0)
        table = np.sinc(positions * self.cutoff) * taper
        self._table = table / table.sum(axis=1, keepdims=True)
        self._channels = channels
        self.begin(0)

    def begin(self, index: int) -> None:
        """Starts a piece at input sample ``index`` of the segment."""
        self.next = math.ceil(index / self._step)  # index of the next output sample
        self._held = np.zeros((0, self._channels))
        self._from = index - self.half  # index of the first held input sample
        self._until = index  # index of the next input sample
        self._new = True

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Adds ``float64[n, channels]``; returns the output samples that are final."""
        if not len(samples):
            return np.zeros((0, self._channels))
        if self._new:
            # Repeated, because the filter needs samples before the first.
            samples = np.concatenate([np.repeat(samples[:1], self.half, 0), samples])
            self._new, self._until = False, self._until - self.half
        self._held = np.concatenate([self._held, samples])
        self._until += len(samples)
        return self._settle(self._until - 1 - self.half)

    def end(self, beyond: bool = False) -> np.ndarray:
        """Ends the piece; returns outputs up to its last sample or one ``beyond``."""
        if self._new:
            return np.zeros((0, self._channels))
        last = self._until - 1
        rest = np.repeat(self._held[-1:], self.half + math.ceil(self._step) + 1, 0)
        self._held = np.concatenate([self._held, rest])
        if beyond:
            last = math.ceil(last / self._step) * self._step
        rest_out = self._settle(last)
        self._new = True
        return rest_out

    def _settle(self, last):
        """Returns output samples at positions up to ``last``."""
        until = math.floor(last / self._step) + 1
        parts = [np.zeros((0, self._channels))]
        count = max(1, AT_ONCE // (2 * self.half))
        for first in range(self.next, until, count):
            parts.append(self._at(np.arange(first, min(first + count, until))))
        self.next = max(self.next, until)
        floor = math.floor(self.next * self._step) - self.half
        drop = min(max(0, floor - self._from), len(self._held))
        # Copied, because a view would keep all earlier samples.
        self._held, self._from = self._held[drop:].copy(), self._from + drop
        return np.concatenate(parts)

    def _at(self, indices):
        numerator, denominator = self._step.numerator, self._step.denominator
        whole, rest = np.divmod(indices * numerator, denominator)
        begin = whole - self.half + 1 - self._from
        near = self._held[begin[:, None] + np.arange(2 * self.half)]
        phase = rest * self._phases / denominator
        row = phase.astype(np.int64)
        part = (phase - row)[:, None]
        taps = self._table[row]
        if part.any():
            taps = (1 - part) * taps + part * self._table[row + 1]
        return np.einsum("nk,nkc->nc", taps, near)
