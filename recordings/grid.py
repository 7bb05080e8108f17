"""Resampling of a stream of timed samples onto a regular grid."""

import collections
import math
from typing import NamedTuple

import numpy as np

from jaxanon.recordings import rates

NEAR = 1e-6  # Tolerance of a sample's distance from the grid, in periods.
RECENT_S = 10.0  # Time during which repeated samples are recognized.
PERIODS = 2.0**52  # Maximum periods from zero that float64 distinguishes.
BACK_S = 1.0  # Time of late samples after which the clock counts as set back.


class Begin(NamedTuple):
    """Start of a segment, at the time of its first sample."""

    start: float


class Samples(NamedTuple):
    """The next samples of a segment, ``float64[n, channels]`` on its grid."""

    samples: np.ndarray


class End(NamedTuple):
    """End of a segment, with the reason."""

    reason: str


class Grid:
    """State of resampling a stream onto a grid.

    A segment's grid begins at its first sample. Samples within 1e-6 of a period of the
    grid (or within float64's resolution of time) pass unchanged. Grid points between
    samples are interpolated linearly. A gap of more than ``max_gap`` periods ends a
    segment. ``counts`` counts dropped samples:

    - ``invalid``: NaN or infinity in a channel or the time, or a time at which float64
      does not distinguish periods (such as Unix time in ns instead of s);

    - ``duplicate``: the time of the previous sample, or time and values of a sample
      within the last ten seconds;
    - ``late``: earlier than a previous sample. A second of consecutive late samples
      with increasing times means that the clock was set back, and starts a new segment.

    Args:
      rate_hz: rate of the grid.
      channels: number of channels.
      max_gap: maximum gap within a segment, in periods.

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
        self._last = -math.inf  # time of the latest sample
        self._origin: float | None = None
        self._position, self._sample = -1.0, np.zeros(channels)
        self._intervals, self._periods = 0, 0.0  # within segments
        self._next = 0  # index of the next grid point

    @property
    def seen_rate_hz(self) -> float:
        """Mean rate of the samples in segments so far; NaN before the first."""
        if not self._periods:
            return math.nan
        return self._rate * self._intervals / self._periods

    def push(self, times: np.ndarray, samples: np.ndarray) -> list:
        """Resamples ``float64[n, channels]`` at times ``float64[n]``, in seconds.

        Returns:
          ``Begin``, ``Samples`` and ``End``, in order.
        """
        events: list = []
        valid = np.abs(times) < PERIODS / self._rate  # False for NaN.
        valid &= np.isfinite(samples).all(axis=1)
        if not valid.all():
            self.counts["invalid"] += int(len(times) - valid.sum())
            times, samples = times[valid], samples[valid]
        while len(times):
            done = self._forward(times, samples, events)
            times, samples = times[done:], samples[done:]
        return events

    def _forward(self, times, samples, events):
        """Consumes samples until the clock was set back; returns their number."""
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
        """Consumes samples with increasing times after all previous ones."""
        self._last = float(times[-1])
        self._remember(times, samples)
        while len(times):
            if self._origin is None:
                self._origin, self._position, self._next = float(times[0]), -1.0, 0
                self._sample = samples[0].copy()
                events.append(Begin(self._origin))
            positions = self._positions(times)
            before = 0.0 if self._position < 0 else self._position
            gaps = np.diff(positions, prepend=before) > self._max_gap + NEAR
            until = int(np.argmax(gaps)) if gaps.any() else len(times)
            if until:
                self._intervals += until - (self._position < 0)
                self._periods += float(positions[until - 1]) - before
                events.append(Samples(self._points(positions[:until], samples[:until])))
            if until < len(times):
                events.append(End("samples are missing"))
                self._origin = None
            times, samples = times[until:], samples[until:]

    def _positions(self, times):
        """Returns positions on the grid, in periods from its start."""
        positions = (times - self._origin) * self._rate
        nearest = np.round(positions)
        most = max(abs(float(times[-1])), abs(float(times[0])))
        tolerance = max(NEAR, 4 * float(np.spacing(most)) * self._rate)
        return np.where(np.abs(positions - nearest) <= tolerance, nearest, positions)

    def _points(self, positions, samples):
        """Returns the grid points up to the last sample."""
        points = np.arange(self._next, math.floor(positions[-1]) + 1, dtype=np.float64)
        self._next += len(points)
        if np.array_equal(points, positions):
            values_at = samples
        else:
            where = np.concatenate([[self._position], positions])
            known = np.concatenate([self._sample[None], samples])
            right = np.searchsorted(where, points, side="left")
            left = np.maximum(right - 1, 0)
            span = where[right] - where[left]
            part = np.ones_like(points)
            np.divide(points - where[left], span, out=part, where=span > 0)
            before, after = (1 - part)[:, None], part[:, None]
            values_at = before * known[left] + after * known[right]
        self._position, self._sample = float(positions[-1]), samples[-1].copy()
        return values_at

    def close(self) -> list:
        """Ends the stream; returns an ``End`` if a segment is open."""
        self._drop_behind()
        if self._origin is None:
            return []
        self._origin, self._last = None, -math.inf
        return [End("the stream ended")]


class Kept(NamedTuple):
    """Rows of a recording that a ``Grid`` would not drop.

    Attributes:
      rows: bool[rows]; None if all rows are kept.
      resets: indices of the rows at which the clock had been set back.
      counts: numbers of dropped rows, ``duplicate`` and ``late``.
    """

    rows: np.ndarray | None
    resets: np.ndarray
    counts: collections.Counter[str]


def forward(
    times: np.ndarray, samples: np.ndarray, rate_hz: float, shared: bool = False
) -> Kept:
    """Finds the rows of a whole recording that a ``Grid`` uses, without a loop.

    Args:
      times: finite ``float64[rows]`` in order of arrival.
      samples: finite ``float[rows, channels]``.
      rate_hz: rate of the grid.
      shared: whether to keep rows that repeat the time of the row before them.

    Example:
      >>> kept = forward(np.array([0.0, 0.2, 0.1, 0.3, 0.3]), np.zeros((5, 1)), 10.0)
      >>> kept.rows, kept.counts["late"], kept.counts["duplicate"]
      (array([ True,  True, False,  True, False]), 1, 1)
    """
    counts: collections.Counter[str] = collections.Counter()
    before, after = times[:-1], times[1:]
    if bool((after >= before).all() if shared else (after > before).all()):
        return Kept(None, np.zeros(0, np.int64), counts)
    patience = max(8, math.ceil(BACK_S * rate_hz))
    kept, resets, begin = np.zeros(len(times), bool), [], 0
    while begin < len(times):
        rest = times[begin:]
        high = np.concatenate([[-math.inf], np.maximum.accumulate(rest)[:-1]])
        newer = rest >= high if shared else rest > high
        end = _first_reset(rest, newer, high, patience)
        kept[begin : begin + end] = newer[:end]
        _count_dropped(counts, rest[:end], samples[begin : begin + end], newer[:end])
        begin += end
        if begin < len(times):
            resets.append(begin)
    return Kept(kept, np.array(resets, np.int64), counts)


def _first_reset(times, newer, high, patience):
    """Returns the first row after which the clock counts as set back, or all rows.

    It begins ``patience`` rows with increasing times, all before the last time.
    """
    behind = ~newer & (times != high)
    if np.count_nonzero(behind) < patience:
        return len(times)
    rows = np.flatnonzero(behind | newer)  # Repeats of the last time do not count.
    ends = newer[rows].copy()
    late = times[rows]
    ends[1:] |= late[1:] < late[:-1]  # A step back restarts it.
    again = np.concatenate([[False], late[1:] == late[:-1]])
    counted = ~newer[rows] & ~(again & ~ends)
    number = np.cumsum(counted)
    starts = np.flatnonzero(ends)
    where = np.searchsorted(starts, np.arange(len(rows)), side="right") - 1
    before = np.where(where >= 0, (number - counted)[starts[where]], 0)
    enough = counted & (number - before >= patience)
    if not enough.any():
        return len(times)
    first = int(np.argmax(enough))
    first = int(starts[where[first]]) if where[first] >= 0 else 0
    first += int(newer[rows[first]])
    return int(rows[first])


def _count_dropped(counts, times, samples, newer):
    dropped = np.flatnonzero(~newer)
    if not len(dropped):
        return
    kept = np.flatnonzero(newer)
    at = np.minimum(np.searchsorted(times[kept], times[dropped]), len(kept) - 1)
    there = times[kept[at]] == times[dropped]
    latest = np.maximum.accumulate(times)[dropped] == times[dropped]
    same = (samples[kept[at]] == samples[dropped]).all(axis=1)
    repeated = int(np.count_nonzero(latest | (there & same)))
    counts["duplicate"] += repeated
    counts["late"] += len(dropped) - repeated


def segments(
    times: np.ndarray, rate_hz: float, max_gap: float, resets: np.ndarray | None = None
) -> np.ndarray:
    """Returns the first row of each segment between gaps.

    Args:
      times: ``float64[rows]``, increasing except at ``resets``.
      rate_hz: rate of the grid.
      max_gap: maximum gap within a segment, in periods.
      resets: rows at which the clock had been set back.

    Example:
      >>> segments(np.array([0.0, 0.1, 0.2, 0.9, 1.0]), 10.0, max_gap=3)
      array([0, 3])
    """
    if not len(times):
        return np.zeros(0, np.int64)
    most = max(-float(times.min()), float(times.max()))
    largest = (max_gap + NEAR) / rate_hz + 4 * float(np.spacing(most))
    starts = rates.steps_where(times, lambda steps: steps > largest)
    return np.unique(
        np.concatenate([[0], starts, () if resets is None else resets]).astype(np.int64)
    )


class Points(NamedTuple):
    """Grid points of segments.

    Attributes:
      samples: ``float[points, channels]``.
      rows: ``int64[points]``, the row at or before each point.
      exact: ``bool[points]``, whether a point is a row; None if all points are rows.
    """

    samples: np.ndarray
    rows: np.ndarray
    exact: np.ndarray | None


def positions(times: np.ndarray, rate_hz: float, starts: np.ndarray) -> np.ndarray:
    """Returns positions of rows on the grids of their segments, in periods."""
    sizes = np.diff(starts, append=len(times))
    if len(starts) == 1:
        where = (times - times[0]) * rate_hz
    else:
        where = (times - np.repeat(times[starts], sizes)) * rate_hz
    nearest = np.round(where)
    tolerance = max(NEAR, 4 * float(np.spacing(np.abs(times).max())) * rate_hz)
    near = np.abs(where - nearest) <= tolerance
    return nearest if near.all() else np.where(near, nearest, where)


def interpolate(where: np.ndarray, samples: np.ndarray, starts: np.ndarray) -> Points:
    """Returns the grid points between the first and last row of each segment.

    Args:
      where: ``float64[rows]``, positions on the grid that increase in each segment.
      samples: ``float[rows, channels]``.
      starts: first row of each segment; the first is 0.

    Example:
      >>> interpolate(np.array([0.0, 1.5, 3.0]), np.array([[0.0], [3.0], [6.0]]),
      ...             np.array([0])).samples.ravel()
      array([0., 2., 4., 6.])
    """
    first = np.ceil(where)
    counts = np.empty(len(where), np.int64)
    np.subtract(first[1:], first[:-1], out=counts[:-1], casting="unsafe")
    last = np.append(starts[1:], len(where)) - 1
    counts[last] = first[last] == where[last]
    rows = np.arange(len(where))
    if (counts == 1).all() and np.array_equal(first, where):
        return Points(samples, rows, None)
    rows = np.repeat(rows, counts)
    points = first[rows]
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    points += inside
    exact = points == where[rows]
    after = np.minimum(rows + 1, len(where) - 1)
    part = np.zeros(len(rows))
    np.divide(points - where[rows], where[after] - where[rows], out=part, where=~exact)
    part = part[:, None].astype(samples.dtype, copy=False)
    values_at = (1 - part) * samples[rows] + part * samples[after]
    return Points(values_at, rows, exact)
