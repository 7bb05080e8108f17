"""From one rate to another: a windowed sinc, sample by sample, its delay made good."""

import fractions
import math

import numpy as np

CROSSINGS = 16  # Zeros of the sinc on each side.
BETA = 9.0  # Of Kaiser's window: what aliases is about 90 dB down.
ROLLOFF = 0.9  # The cutoff, of the lower rate's half.
PHASES = 512  # Of a filter between whose phases is interpolated.
AT_ONCE = 1 << 17  # Neighbours of samples that are in memory at a time.


def step(from_hz: float, to_hz: float) -> fractions.Fraction:
    """Samples of the one rate from one of the other's to the next.

    Example:
      >>> step(200.0, 50.0)
      Fraction(4, 1)
    """
    exact = fractions.Fraction(from_hz) / fractions.Fraction(to_hz)
    return exact.limit_denominator(1_000_000)


class Resampler:
    """Resamples pieces of a segment. A class because filters remember.

    Sample m of what comes out is at ``m * step`` of what goes in, counted from the
    segment's beginning. The filter sums to 1 everywhere; beyond a piece's ends its
    first and last samples are repeated.

    Args:
      step: samples in for one out.
      channels: of a sample.

    Example:
      >>> half = Resampler(step(100.0, 50.0), 1)
      >>> np.concatenate([half.push(np.ones((5, 1))), half.end()]).ravel().round(9)
      array([1., 1., 1.])
    """

    def __init__(self, step: fractions.Fraction, channels: int):
        self._step = step
        self.cutoff = ROLLOFF * min(1.0, 1 / float(step))
        self.half = math.ceil(CROSSINGS / self.cutoff)  # samples in, on each side
        exact = step.denominator <= PHASES
        self._phases = step.denominator if exact else PHASES
        offsets = np.arange(1 - self.half, self.half + 1)
        places = np.arange(self._phases + 1)[:, None] / self._phases - offsets
        inside = 1 - (places * self.cutoff / CROSSINGS) ** 2
        taper = np.i0(BETA * np.sqrt(np.maximum(inside, 0))) * (inside >= 0)
        table = np.sinc(places * self.cutoff) * taper
        self._table = table / table.sum(axis=1, keepdims=True)
        self._channels = channels
        self.begin(0)

    def begin(self, index: int) -> None:
        """A piece begins at sample ``index`` of the segment."""
        self.next = math.ceil(index / self._step)  # index of the next sample out
        self._held = np.zeros((0, self._channels))
        self._from = index - self.half  # index of the first that is held
        self._until = index  # and of the first that is not here yet
        self._new = True

    def push(self, samples: np.ndarray) -> np.ndarray:
        """What the piece's next ``float64[n, channels]`` settle, as ``float64``."""
        if not len(samples):
            return np.zeros((0, self._channels))
        if self._new:
            # Repeated, so that the first sample has neighbours before it.
            samples = np.concatenate([np.repeat(samples[:1], self.half, 0), samples])
            self._new, self._until = False, self._until - self.half
        self._held = np.concatenate([self._held, samples])
        self._until += len(samples)
        return self._settle(self._until - 1 - self.half)

    def end(self, beyond: bool = False) -> np.ndarray:
        """The rest of the piece: up to its last sample, or the first one ``beyond``."""
        if self._new:
            return np.zeros((0, self._channels))
        last = self._until - 1
        rest = np.repeat(self._held[-1:], self.half + math.ceil(self._step) + 1, 0)
        self._held = np.concatenate([self._held, rest])
        if beyond:
            last = math.ceil(last / self._step) * self._step
        found = self._settle(last)
        self._new = True
        return found

    def _settle(self, last):
        """Samples out at places up to ``last``, whose neighbours are all held."""
        until = math.floor(last / self._step) + 1
        found = [np.zeros((0, self._channels))]
        count = max(1, AT_ONCE // (2 * self.half))
        for first in range(self.next, until, count):
            found.append(self._at(np.arange(first, min(first + count, until))))
        self.next = max(self.next, until)
        floor = math.floor(self.next * self._step) - self.half
        drop = min(max(0, floor - self._from), len(self._held))
        # A copy, or a view would keep all of what was pushed.
        self._held, self._from = self._held[drop:].copy(), self._from + drop
        return np.concatenate(found)

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
