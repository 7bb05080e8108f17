"""Steady times for the rows of a stream: without rounding, and even in packets."""

import math
from typing import NamedTuple

import numpy as np

from jaxanon.recordings import rates

FEWEST, MOST, SPAN_S = 16, 512, 5.0  # First rows of a segment that show its times.
PIECE = 512  # Rows after which the line through the times is corrected.
BACK_S = 1.0  # A larger step back begins a new segment.
STEER = 0.01  # Largest relative change of the period, to follow a sensor's clock.
NEAR = 0.15  # Relative difference from the model's rate that missing rows explain.
MISSING = 0.05  # Largest fraction of missing rows whose rounding is undone.
SLACK = 0.25  # Periods between corrected times and the sensor's clock that are left.


class _Line(NamedTuple):
    """Times ``base + step * index`` of a sensor's clock."""

    base: float
    step: float


class Steady:
    """Corrects the times of rows as they arrive.

    Rounded times become multiples of a period, and the rows of packets are spaced
    evenly, as by ``rates.steady``. Other times do not change. The result does not
    depend on how rows are divided into calls. It follows from earlier rows alone.
    Rows wait only at the start and after a pause, until 16 rows and five seconds, or
    512 rows, have shown what their times are like.

    Args:
      channels: number of channels.
      model_hz: rate of the model, a likely rate of the rows.
      rate_hz: rate of the rows, if known.

    Attributes:
      seen_hz: rate of the first rows; NaN as long as it is unknown.

    Example:
      >>> times = np.round(np.arange(1, 1001) / 64, 2)
      >>> steady = Steady(1, 64.0)
      >>> parts = steady.push(times, np.zeros((1000, 1))), steady.close()
      >>> even = np.concatenate([times for times, _ in parts])
      >>> len(even), bool(np.abs(np.diff(even) - 1 / 64).max() < 1e-6)
      (1000, True)
    """

    def __init__(self, channels: int, model_hz: float, rate_hz: float | None = None):
        self._model_hz, self._rate_hz = model_hz, rate_hz
        self._times, self._samples = np.zeros(0), np.zeros((0, channels))
        self._track: _Regular | None = None
        self._rate: rates.Rate | None = None
        self.seen_hz = math.nan

    def push(self, times: np.ndarray, samples: np.ndarray):
        """Adds rows; returns the times and samples of the next rows that are final.

        Args:
          times: ``float64[n]`` s; NaN or infinite where unknown.
          samples: ``float64[n, channels]``.
        """
        times = np.where(np.isfinite(times), times, math.nan)
        self._times = np.concatenate([self._times, times])
        self._samples = np.concatenate([self._samples, samples])
        return self._follow(ended=False)

    def close(self):
        """Ends the stream; returns the times and samples of its remaining rows."""
        return self._follow(ended=True)

    def _follow(self, ended):
        corrected, done = [np.zeros(0)], 0
        while done < len(self._times):
            times = self._times[done:]
            if self._track is None:
                count = _enough(times)
                if count is None and not ended:
                    break
                self._track = self._lock(times[:count], self._samples[done:][:count])
            parts, lost = self._track.follow(times)
            corrected += parts
            done += sum(map(len, parts))
            if lost:
                self._track = None
        samples = self._samples[:done]
        self._times, self._samples = self._times[done:], self._samples[done:].copy()
        return np.concatenate(corrected), samples

    def _lock(self, times, samples):
        """Returns the correction of a segment that begins with these rows."""
        known = np.isfinite(times)
        times, samples = times[known], samples[known]
        steps = np.diff(np.maximum.accumulate(times))
        positive = steps[steps > 0]
        usual = float(np.median(positive)) if len(positive) else 0.0
        pause = max(rates.PAUSE_S, rates.PAUSE_STEPS * usual)
        regular = _Regular(pause)
        rest, _ = regular.follow(times)
        count = sum(map(len, rest))
        times, samples = times[:count], samples[:count]
        times = times[_is_new(times, samples)]
        if len(times) >= FEWEST or math.isnan(self.seen_hz):
            found = rates.estimate(times, self._rate_hz)
            if abs(found.rate_hz / self._model_hz - 1) <= NEAR:
                found = rates.estimate(times, self._rate_hz or self._model_hz)
            if math.isnan(self.seen_hz):
                self.seen_hz = found.rate_hz
            if len(times) >= FEWEST:
                self._rate = found
        times = times[times >= np.maximum.accumulate(times)]  # Without late rows.
        if self._rate is not None and len(times) > 2 and self._rate.rate_hz > 0:
            if self._rate.kind == "packets":
                hz = self._nominal(self._rate.rate_hz, 0.02)
                return _Packets(pause, times, self._rate.rate_hz, hz)
            if self._rate.kind == "rounded":
                line = _unrounded(times, self._rate)
                if line is not None:
                    hz = self._nominal(1 / line.step, rates.NICE)
                    return _Rounded(pause, times[0], line, hz, self._rate.resolution_s)
        return _Regular(pause)

    def _nominal(self, rate_hz, tolerance):
        """Returns the rate that a sensor with this measured rate was set to."""
        for likely in (self._rate_hz, self._model_hz):
            if likely and abs(rate_hz / likely - 1) <= tolerance:
                return likely
        return rates.nominal(rate_hz)


def _enough(times):
    """Returns the number of first rows that show what times are like, or None."""
    finite = np.isfinite(times)
    count = np.cumsum(finite)
    first = times[np.argmax(finite)] if len(times) else 0.0
    span = np.fmax.accumulate(times) - first
    enough = (count >= FEWEST) & (span >= SPAN_S) | (count >= MOST)
    enough[4 * MOST :] = True  # Hardly a row has a time.
    return int(np.argmax(enough)) + 1 if enough.any() else None


def _is_new(times, samples):
    """Returns which rows do not repeat the row before them.

    Rows of a packet share a time, and may have equal numbers if a sensor rests.
    """
    shared = np.diff(times) == 0
    again = shared & (np.diff(samples, axis=0) == 0).all(axis=1)
    few = again.sum() < 0.9 * shared.sum() or not np.diff(samples, axis=0).any()
    if shared.sum() > 0.2 * len(times) and few:
        return slice(None)
    return np.append(True, ~again)[: len(times)]


def _unrounded(times, rate) -> _Line | None:
    """Returns the clock that rounding explains; None if there is none."""
    error = rate.resolution_s * rate.rate_hz / 2
    span = float(times[-1] - times[0])
    if error < 1e-6 or error >= 0.5 or span <= 0:
        return None
    # The rate at which the phases of the rows agree most. Missing rows lower the
    # measured rate.
    since = times - times[0]
    below = min(MISSING, 2 * rate.resolution_s / span)
    count = 64 + round(8 * MISSING * len(times))
    likely = rate.rate_hz * (1 + np.linspace(-below, MISSING, count))
    sums = np.exp(2j * np.pi * likely[:, None] * since).sum(axis=1)
    best = int(np.argmax(np.abs(sums)))
    phase = float(np.angle(sums[best])) / (2 * np.pi)
    index = np.round(since * likely[best] - phase)
    if len(times) < FEWEST:
        line = _Line(float(times[0]) + phase / likely[best], 1 / likely[best])
    else:
        step, base = np.polyfit(index, since, 1)
        line = _Line(float(times[0] + base), float(step))
    distance = np.abs((times - line.base) / line.step - index)
    repeats = np.diff(times) == 0
    whole = (np.diff(index) > 0) | repeats
    explained = np.mean(distance <= 1.5 * error + 0.05) >= 0.99
    return line if whole.all() and explained else None


class _Regular:
    """Times that stay as they are, up to a pause or a clock that was set back."""

    def __init__(self, pause: float):
        self._pause = pause
        self._high: float | None = None  # latest time so far

    def follow(self, times) -> tuple[list[np.ndarray], bool]:
        """Returns corrected times in parts, and whether the segment ends after them."""
        if self._high is None:
            finite = times[np.isfinite(times)]
            self._high = float(finite[0]) if len(finite) else None
        if self._high is None:
            return [times], False
        high = np.fmax.accumulate(np.append(self._high, times))
        beyond = (times > high[:-1] + self._pause) | (times < high[:-1] - BACK_S)
        ended = bool(beyond.any())
        count = int(np.argmax(beyond)) if ended else len(times)
        parts, lost = self._correct(times[:count], high[: count + 1])
        return parts, ended or lost

    def _correct(self, times, high):
        self._high = float(high[-1])
        return [times], False


class _Tracked(_Regular):
    """Rows on a line in time that is corrected after each piece of rows."""

    gains = 0.5, 0.2  # Corrections of the line's level and slope.
    slack = SLACK  # Periods.

    def __init__(self, pause, start, index, line, hz):
        super().__init__(pause)
        self._line, self._hz = line, hz
        self._start, self._index = start, index  # corrected time at an index
        self._offset = start - (line.base + line.step * index)
        self._period = 1 / hz
        self._gathered: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = 0  # gathered rows of the piece

    def _correct(self, times, high):
        parts, done, lost = [], 0, False
        while done < len(times) and not lost:
            part = slice(done, done + PIECE - self._count)
            some, before = times[part], high[:-1][part]
            index, late = self._indices(some, before)
            corrected = self._start + (index - self._index) * self._period
            parts.append(np.where(late, corrected - self._period / 2, corrected))
            used = np.isfinite(some) & ~late
            self._gathered.append((some[used], index[used]))
            self._count, done = self._count + len(some), done + len(some)
            if self._count == PIECE:
                lost = self._end_piece()
        self._high = float(high[done])
        return parts, lost

    def _end_piece(self):
        """Corrects the line; returns whether it no longer explains the times."""
        pairs = zip(*self._gathered, strict=True)
        times, index = (np.concatenate(each) for each in pairs)
        self._gathered, self._count = [], 0
        if len(times) < FEWEST:
            return False
        line = self._line
        error = times - (line.base + line.step * index)
        center = float(index.mean())
        spread = index - center
        slope = float((error * spread).sum() / max(1.0, (spread**2).sum()))
        level, turn = self.gains
        step = line.step + turn * slope
        base = line.base + line.step * center + level * float(error.mean())
        self._line = line = _Line(base - step * center, step)
        last = float(index.max())
        self._start += (last - self._index) * self._period
        self._index = last
        behind = (line.base + step * last + self._offset - self._start) * self._hz
        turn = min(max(behind / PIECE, -STEER), STEER) if self._strays(behind) else 0.0
        self._period = (1 + turn) / self._hz
        return self._is_lost(error, behind)

    def _strays(self, behind):
        return abs(behind) > self.slack

    def _indices(self, times, high):
        """Returns the index of each row, and which rows take none of their own."""
        raise NotImplementedError

    def _is_lost(self, error, behind):
        raise NotImplementedError


class _Rounded(_Tracked):
    """Rounded times: each row has the nearest index."""

    def __init__(self, pause, start, line, hz, resolution_s):
        self._largest = (1.5 * resolution_s / 2 / line.step + 0.05) * line.step
        index = float(np.round((start - line.base) / line.step))
        super().__init__(pause, float(start), index, line, hz)

    def _indices(self, times, high):
        index = np.round((times - self._line.base) / self._line.step)
        return index, np.zeros(len(times), bool)

    def _is_lost(self, error, behind):
        return bool(np.mean(np.abs(error) <= self._largest) < 0.9)


class _Packets(_Tracked):
    """Rows in packets: each row has the next index, after those of lost packets."""

    gains = 0.2, 0.1

    def __init__(self, pause, times, rate_hz, hz):
        self._rate, self._high = rate_hz, float(times[0])
        self._begin, self._usual, self._last = float(times[0]), 0.0, -1.0
        begins = times[np.append(True, np.diff(times) > 1 / rate_hz)]
        if len(begins) >= 4:
            self._usual = float(np.median(np.diff(begins)))
        before = np.append(times[0], times[:-1])
        index, _ = self._indices(times, before)
        late = times - index / hz
        line = _Line(float(late.mean()), 1 / hz)
        super().__init__(pause, float(late.min()), 0.0, line, hz)
        self._begin, self._last = float(times[0]), -1.0
        self.slack = max(SLACK, self._usual * hz)

    def _indices(self, times, high):
        finite = np.isfinite(times)
        late = times < high
        index = self._last + np.cumsum(finite & ~late)
        begins = np.flatnonzero(times - high > 1 / self._rate)
        if len(begins):
            spans = np.diff(times[begins], prepend=self._begin)
            self._begin = float(times[begins[-1]])
            if self._usual:
                # A delay of up to 0.7 packets is not a loss.
                lost = np.maximum(np.floor(spans / self._usual + 0.3) - 1, 0)
                rows = np.zeros(len(times))
                rows[begins] = lost * round(self._usual * self._rate)
                index = index + np.cumsum(rows)
        self._last = float(index[-1]) if len(index) else self._last
        return np.where(finite, index, np.nan), late

    def _is_lost(self, error, behind):
        return abs(behind) > 3 * self.slack + self._hz
