"""Samples as they come, put on a regular grid; what is wrong with them, counted."""

import collections
import math
from typing import NamedTuple

import numpy as np

NEAR = 1e-6  # Of a period: so near to the grid a sample is on it.
RECENT_S = 10.0  # So long a sample is known again that is sent again.
PERIODS = 2.0**52  # From zero on; float64 can tell no more of them apart.
BACK_S = 1.0  # So long the clock must run behind to be one that was set back.


class Begin(NamedTuple):
    """A segment begins: its first sample's time."""

    start: float


class Samples(NamedTuple):
    """The next samples of a segment, ``float64[n, channels]`` on its grid."""

    samples: np.ndarray


class End(NamedTuple):
    """A segment ends, and why."""

    reason: str


class Grid:
    """Puts a stream on a grid. A class because a stream has a past.

    A segment's grid begins at its first sample. Samples on it within 1e-6 of a period
    (or what float64 can tell of the time) pass as they are; grid points in between are
    interpolated linearly. Times in no segment: neighbours more than ``max_gap`` periods
    apart end one. ``counts`` counts what was dropped:

    - ``invalid``: a NaN or infinity in any channel; a time that is one, or of which
      float64 cannot tell the periods (from 1970 on in ns, say, and not in s);
    - ``duplicate``: the time of the sample before, or time and values of one of the
      last ten seconds;
    - ``late``: earlier than a sample that came before. A second's worth of samples in a
      row, each later than the one before, is a clock that was set back: a new segment.

    Args:
      rate_hz: of the grid.
      channels: of a sample.
      max_gap: periods.

    Example:
      >>> grid = Grid(50.0, 1, max_gap=3)
      >>> begin, samples = grid.push(np.array([7.0, 7.04]), np.array([[1.0], [3.0]]))
      >>> begin.start, samples.samples.ravel().round(9)
      (7.0, array([1., 2., 3.]))
      >>> grid.close()
      [End(reason='the stream ended')]
    """

    def __init__(self, rate_hz: float, channels: int, max_gap: float):
        self.counts: collections.Counter[str] = collections.Counter()
        self._rate, self._max_gap = rate_hz, max_gap
        self._patience = max(8, math.ceil(BACK_S * rate_hz))
        self._behind_times: list[float] = []
        self._behind: list[np.ndarray] = []
        self._most_recent = math.ceil(RECENT_S * rate_hz)
        self._recent_times, self._recent = np.zeros(0), np.zeros((0, channels))
        self._last = -math.inf  # time of the newest sample
        self._origin: float | None = None
        self._position, self._sample = -1.0, np.zeros(channels)
        self._intervals, self._periods = 0, 0.0  # between neighbours, in segments
        self._next = 0  # index, on the grid, of the next point

    @property
    def seen_rate_hz(self) -> float:
        """The mean rate of the samples in segments so far; NaN before there is one."""
        if not self._periods:
            return math.nan
        return self._rate * self._intervals / self._periods

    def push(self, times: np.ndarray, samples: np.ndarray) -> list:
        """What the samples ``float64[n, channels]`` at ``float64[n]`` seconds become.

        Returns:
          ``Begin``, ``Samples`` and ``End``, in their order.
        """
        events: list = []
        valid = np.abs(times) < PERIODS / self._rate  # NaN is not.
        valid &= np.isfinite(samples).all(axis=1)
        if not valid.all():
            self.counts["invalid"] += int(len(times) - valid.sum())
            times, samples = times[valid], samples[valid]
        while len(times):
            done = self._forward(times, samples, events)
            times, samples = times[done:], samples[done:]
        return events

    def _forward(self, times, samples, events):
        """Takes samples until the clock was set back; how many that were."""
        high = np.maximum.accumulate(np.concatenate([[self._last], times]))[:-1]
        newer = times > high
        edges = np.flatnonzero(newer[1:] != newer[:-1]) + 1
        for begin, end in zip([0, *edges], [*edges, len(times)], strict=True):
            if newer[begin]:
                self._drop_behind()
                self._take(times[begin:end], samples[begin:end], events)
                continue
            for index in range(begin, end):
                if self._was_set_back(float(times[index]), samples[index]):
                    self._restart(events)
                    return index + 1
        return len(times)

    def _drop_behind(self):
        self.counts["late"] += len(self._behind)
        self._behind_times, self._behind = [], []

    def _was_set_back(self, time, sample):
        again = self._behind and time == self._behind_times[-1]
        if time == self._last or again or self._is_recent(time, sample):
            self.counts["duplicate"] += 1
            return False
        if self._behind and time < self._behind_times[-1]:
            self._drop_behind()
        self._behind_times.append(time)
        self._behind.append(sample.copy())
        return len(self._behind) >= self._patience

    def _is_recent(self, time, sample):
        where = np.searchsorted(self._recent_times, time)
        there = where < len(self._recent) and self._recent_times[where] == time
        return there and bool((self._recent[where] == sample).all())

    def _remember(self, times, samples):
        most = self._most_recent
        if len(times) < most:
            times = np.concatenate([self._recent_times, times])
            samples = np.concatenate([self._recent, samples])
        self._recent_times, self._recent = times[-most:].copy(), samples[-most:].copy()

    def _restart(self, events):
        self._recent_times, self._recent = self._recent_times[:0], self._recent[:0]
        events.append(End("the clock was set back"))
        self._origin = None
        times, samples = np.array(self._behind_times), np.stack(self._behind)
        self._behind_times, self._behind = [], []
        self._take(times, samples, events)

    def _take(self, times, samples, events):
        """Samples whose times rise, all after those before."""
        self._last = float(times[-1])
        self._remember(times, samples)
        while len(times):
            if self._origin is None:
                self._origin, self._position, self._next = float(times[0]), -1.0, 0
                self._sample = samples[0].copy()
                events.append(Begin(self._origin))
            positions = self._positions(times)
            before = 0.0 if self._position < 0 else self._position
            apart = np.diff(positions, prepend=before) > self._max_gap + NEAR
            until = int(np.argmax(apart)) if apart.any() else len(times)
            if until:
                self._intervals += until - (self._position < 0)
                self._periods += float(positions[until - 1]) - before
                events.append(Samples(self._points(positions[:until], samples[:until])))
            if until < len(times):
                events.append(End("samples are missing"))
                self._origin = None
            times, samples = times[until:], samples[until:]

    def _positions(self, times):
        """Where on the grid, in periods from its beginning."""
        positions = (times - self._origin) * self._rate
        nearest = np.round(positions)
        most = max(abs(float(times[-1])), abs(float(times[0])))
        tolerance = max(NEAR, 4 * float(np.spacing(most)) * self._rate)
        return np.where(np.abs(positions - nearest) <= tolerance, nearest, positions)

    def _points(self, positions, samples):
        """The grid's points up to the last of the samples."""
        points = np.arange(self._next, math.floor(positions[-1]) + 1, dtype=np.float64)
        self._next += len(points)
        if np.array_equal(points, positions):
            found = samples
        else:
            where = np.concatenate([[self._position], positions])
            values = np.concatenate([self._sample[None], samples])
            right = np.searchsorted(where, points, side="left")
            left = np.maximum(right - 1, 0)
            span = where[right] - where[left]
            part = np.ones_like(points)
            np.divide(points - where[left], span, out=part, where=span > 0)
            found = (1 - part)[:, None] * values[left] + part[:, None] * values[right]
        self._position, self._sample = float(positions[-1]), samples[-1].copy()
        return found

    def close(self) -> list:
        """What is left at the end of the stream: an ``End``, where one is open."""
        self._drop_behind()
        if self._origin is None:
            return []
        self._origin, self._last = None, -math.inf
        return [End("the stream ended")]
