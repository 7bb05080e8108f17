"""Events and activities of a home by the minute."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.recordings import runs

MINUTE = 60  # s
DAY = 24 * 60  # minutes
DAWN = 4 * 60  # Minute at which a day begins, when people sleep.
BEFORE, AFTER = 15, 14  # Minutes of a window before and after the labelled minute.
NOTHING = -1


class Spans(NamedTuple):
    """Intervals of time with a kind."""

    start: np.ndarray  # int64[N], s, on the home's clock
    end: np.ndarray  # int64[N], s, > start
    kind: np.ndarray  # int64[N]


def states(events: Spans, origin: int, minutes: int, kinds: int):
    """Returns the activity and changes of each kind of sensor in each minute.

    Args:
      events: intervals in which sensors were on, by kind of sensor.
      origin: second at which the first minute begins.
      minutes: number of minutes.
      kinds: number of kinds of sensors.

    Returns:
      ``float32[minutes, kinds]``, the fraction of the minute with at least one sensor
      on, and ``float32[minutes, kinds]``, 1 if a sensor went on or off, else 0.

    Example:
      >>> half = Spans(np.array([30]), np.array([90]), np.array([0]))
      >>> on, changed = states(half, 0, 3, 1)
      >>> on[:, 0], changed[:, 0]
      (array([0.5, 0.5, 0. ], dtype=float32), array([1., 1., 0.], dtype=float32))
    """
    seconds = minutes * MINUTE
    on = np.zeros((minutes, kinds), np.float32)
    changed = np.zeros((minutes, kinds), np.float32)
    for kind in range(kinds):
        of_kind = events.kind == kind
        step = np.zeros(seconds + 1, np.int32)
        for times, sign in ((events.start, 1), (events.end, -1)):
            seen = times[of_kind] - origin
            np.add.at(step, np.clip(seen, 0, seconds), sign)
            inside = seen[(seen >= 0) & (seen < seconds)]
            changed[inside // MINUTE, kind] = 1
        active = np.cumsum(step[:-1]) > 0
        on[:, kind] = active.reshape(minutes, MINUTE).mean(axis=1)
    return on, changed


def doing(activities: Spans, origin: int, minutes: int) -> np.ndarray:
    """Returns the longest activity of each minute, ``NOTHING`` without one.

    Of two equally long activities, the one that began last counts.

    Args:
      activities: annotated activities.
      origin: second at which the first minute begins.
      minutes: number of minutes.

    Returns:
      ``int[minutes]``.

    Example:
      >>> two = Spans(np.array([0, 60]), np.array([180, 100]), np.array([5, 7]))
      >>> doing(two, 0, 4).tolist()  # Activity 5 is longer in the second minute.
      [5, 5, 5, -1]
    """
    label = np.full(minutes, NOTHING)
    most = np.zeros(minutes, np.int64)
    order = np.argsort(activities.start, kind="stable")
    for start, end, kind in zip(*(part[order] for part in activities), strict=True):
        start, end = max(start - origin, 0), min(end - origin, minutes * MINUTE)
        within = np.arange(start // MINUTE, -(-end // MINUTE))
        spent = np.minimum(end, (within + 1) * MINUTE)
        spent = spent - np.maximum(start, within * MINUTE)
        wins = within[spent >= most[within]]
        label[wins] = kind
        most[wins] = spent[spent >= most[within]]
    return label


def stretches(label: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yields consecutive minutes of one activity of one day, with their context.

    Args:
      label: ``int[days * DAY]`` from ``doing``, starting at the beginning of a day.

    Yields:
      ``(first, end, kind)``: minutes ``first`` to ``end`` (exclusive) of one day, of
      which all but the first ``BEFORE`` and the last ``AFTER`` have that kind.
    """
    day = np.arange(len(label)) // DAY
    for start, end in runs(day * 1000 + label):
        dawn = day[start] * DAY
        first = max(start - BEFORE, dawn)
        last = min(end + AFTER, dawn + DAY)
        if label[start] != NOTHING and last - first >= BEFORE + 1 + AFTER:
            yield int(first), int(last), int(label[start])


def day_begun(second: int) -> int:
    """Returns the second at which the day of ``second`` begins."""
    dawn = DAWN * MINUTE
    return int((second - dawn) // (DAY * MINUTE) * (DAY * MINUTE) + dawn)


def time_of_day(origin: int, minutes: int) -> np.ndarray:
    """Returns sine and cosine of the time of day, ``float32[minutes, 2]``."""
    angle = 2 * np.pi * (origin // MINUTE + np.arange(minutes)) / DAY
    return np.stack([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
