"""What data sets of metered homes share: gaps, clocks, and the hour to come.

Their recordings are stretches without a gap, a row a minute. The first column is the
minute of the local day (0 to 1439), the second what the home takes, the others single
circuits or appliances. ``trial`` is the first minute, counted from 1970.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxanon.datasets.description import Forecast, Preset
from jaxanon.datasets.recordings import Recording

DAY = 1440  # Minutes.
HOUR = 60
AHEAD = 60  # Minutes whose mean is predicted.
FEWEST = 7 * DAY  # Minutes that a client must have.
TOLERANCE = 15  # Minutes without a reading that are bridged.
CLOCK = ("time_sin", "time_cos")


def stretches(
    minutes: np.ndarray, rows: np.ndarray, tolerance: int = TOLERANCE
) -> Iterator[tuple[int, np.ndarray]]:
    """Cuts what a meter read at gaps that are too long.

    Args:
      minutes: ``int[n]``, when; ascending, no minute twice.
      rows: ``float[n, columns]``, what was read then.
      tolerance: in a gap of up to so many minutes the last reading holds.

    Yields:
      ``(first, rows)`` of each stretch, one row for every minute from ``first`` on.

    Example:
      >>> found = stretches(np.array([3, 5, 9]), np.array([[1.0], [2.0], [4.0]]), 1)
      >>> [(first, rows.ravel().tolist()) for first, rows in found]
      [(3, [1.0, 1.0, 2.0]), (9, [4.0])]
    """
    steps = np.diff(minutes)
    for part in np.split(
        np.arange(len(minutes)), np.flatnonzero(steps > tolerance + 1) + 1
    ):
        if len(part):
            held = np.append(np.diff(minutes[part]), 1)
            yield int(minutes[part[0]]), np.repeat(rows[part], held, axis=0)


def repeated(rows: np.ndarray, least: int) -> np.ndarray:
    """Which rows say again, ``least`` times or more, what the row before them said.

    Meters that are read anew each minute do not do that; files do in which gaps were
    filled with the last reading.

    Args:
      rows: ``float[n, columns]``.
      least: length of a run of repetitions, the first reading not counted.

    Returns:
      ``bool[n]``.

    Example:
      >>> repeated(np.array([[5.0], [5.0], [5.0], [6.0], [6.0]]), 2).tolist()
      [False, True, True, False, False]
    """
    again = np.append(False, (rows[1:] == rows[:-1]).all(axis=1))
    edges = np.flatnonzero(np.diff(again, prepend=False, append=False))
    for start, end in edges.reshape(-1, 2):
        again[start:end] = end - start >= least
    return again


def whole_hours(recordings: Sequence[Recording], least: int) -> list[Recording]:
    """Every recording from its first full hour to its last, if it is long enough.

    Those who have less than ``FEWEST`` minutes altogether are left out.

    Args:
      recordings: as this module describes them.
      least: minutes, of a recording that is worth keeping.
    """
    kept, total = [], {}
    for one in recordings:
        start = int(-one.rows[0, 0] % HOUR)
        count = (len(one.rows) - start) // HOUR * HOUR
        if count >= least:
            rows = one.rows[start : start + count]
            kept.append(one._replace(rows=rows, trial=one.trial + start))
            who = one.labels["subject"]
            total[who] = total.get(who, 0) + count
    return [one for one in kept if total[one.labels["subject"]] >= FEWEST]


def by_month(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings cut where months end; a home's month is a client, "home, 2014-06"."""
    parts = []
    for one in recordings:
        minutes = one.trial + np.arange(len(one.rows))
        months = minutes.astype("datetime64[m]").astype("datetime64[M]")
        starts = np.append(0, np.flatnonzero(months[1:] != months[:-1]) + 1)
        for start, rows in zip(starts, np.split(one.rows, starts[1:]), strict=True):
            who = f"{one.labels['subject']}, {months[start]}"
            labels = one.labels | {"subject": who}
            parts.append(Recording(rows, one.trial + int(start), labels))
    return parts


def with_clock(columns: Sequence[int]) -> Callable[[np.ndarray], np.ndarray]:
    """``derive`` of a preset: these columns, and the time of day on a circle.

    Example:
      >>> with_clock([1])(np.array([[720.0, 300.0]])).round(6)
      array([[300.,   0.,  -1.]])
    """

    def derive(rows):
        angle = rows[:, :1].astype(np.float64) * (2 * np.pi / DAY)
        return np.concatenate(
            [rows[:, list(columns)], np.sin(angle), np.cos(angle)], axis=1
        )

    return derive


def hour_ahead(
    about: str,
    every: int,
    channels: dict[str, int],
    *,
    unit: str,
    arrange: Callable[[list], list] = list,
    **more,
) -> Preset:
    """The last 24 hours as means of ``every`` minutes; what the next hour takes.

    A window begins each full hour. The target ``power`` is the mean of the first
    channel over the 60 minutes that follow; channels are followed by the sine and the
    cosine of the time of day.

    Args:
      about: of the preset.
      every: minutes of a sample; a divisor of 60.
      channels: name -> column of the recordings, what is predicted first.
      unit: of them.
      arrange: of the preset, before recordings are brought to whole hours.
      **more: of the preset.
    """
    length, ahead = DAY // every, AHEAD // every
    least = DAY + AHEAD
    return Preset(
        about=about,
        channels=(*channels, *CLOCK),
        units=(unit,) * len(channels) + ("1",) * len(CLOCK),
        length=length,
        stride=HOUR // every,
        every=every,
        derive=with_clock([*channels.values()]),
        arrange=lambda recordings: whole_hours(arrange(recordings), least),
        targets={"power": Forecast(unit, next(iter(channels)), ahead)},
        **more,
    )
