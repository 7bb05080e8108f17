"""Shared parts of data sets of metered homes: gaps, clocks and hour-ahead forecasts.

A recording has no gaps and one row per minute. The first column is the minute of the
local day (0 to 1439), the second the home's total power, the others single circuits or
appliances. ``trial`` is the first minute, counted from 1970.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxanon.datasets.description import Forecast, Preset
from jaxanon.datasets.recordings import Recording

DAY = 1440  # Minutes.
HOUR = 60
AHEAD = 60  # Minutes of the forecast target.
MIN_TOTAL = 7 * DAY  # Minimum minutes of a client.
TOLERANCE = 15  # Maximum minutes of a gap to fill.
CLOCK = ("time_sin", "time_cos")


def stretches(
    minutes: np.ndarray, rows: np.ndarray, tolerance: int = TOLERANCE
) -> Iterator[tuple[int, np.ndarray]]:
    """Splits meter readings at long gaps and fills short gaps with the last reading.

    Args:
      minutes: ``int[n]``, minute of each reading, strictly ascending.
      rows: ``float[n, columns]``, readings.
      tolerance: longest gap to fill, in minutes.

    Yields:
      ``(first, rows)`` of each stretch, with one row per minute from ``first`` on.

    Example:
      >>> parts = stretches(np.array([3, 5, 9]), np.array([[1.0], [2.0], [4.0]]), 1)
      >>> [(first, rows.ravel().tolist()) for first, rows in parts]
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
    """Marks rows in runs of at least ``least`` repetitions of the row before the run.

    Such runs are gaps that were filled with the last reading; real meters fluctuate.

    Args:
      rows: ``float[n, columns]``.
      least: minimum number of repetitions, without the first reading.

    Returns:
      ``bool[n]``.

    Example:
      >>> repeated(np.array([[5.0], [5.0], [5.0], [6.0], [6.0]]), 2).tolist()
      [False, True, True, False, False]
    """
    repeats = np.append(False, (rows[1:] == rows[:-1]).all(axis=1))
    edges = np.flatnonzero(np.diff(repeats, prepend=False, append=False))
    for start, end in edges.reshape(-1, 2):
        repeats[start:end] = end - start >= least
    return repeats


def whole_hours(recordings: Sequence[Recording], least: int) -> list[Recording]:
    """Trims each recording to full hours and drops short recordings and clients.

    Args:
      recordings: recordings in the layout of this module.
      least: minimum minutes of a recording; a client needs ``MIN_TOTAL`` in total.
    """
    trimmed, total = [], {}
    for recording in recordings:
        start = int(-recording.rows[0, 0] % HOUR)
        count = (len(recording.rows) - start) // HOUR * HOUR
        if count >= least:
            rows = recording.rows[start : start + count]
            trimmed.append(recording._replace(rows=rows, trial=recording.trial + start))
            subject = recording.labels["subject"]
            total[subject] = total.get(subject, 0) + count
    return [each for each in trimmed if total[each.labels["subject"]] >= MIN_TOTAL]


def by_month(recordings: Sequence[Recording]) -> list[Recording]:
    """Splits recordings at ends of months; the subject becomes "home, 2014-06"."""
    parts = []
    for recording in recordings:
        minutes = recording.trial + np.arange(len(recording.rows))
        months = minutes.astype("datetime64[m]").astype("datetime64[M]")
        starts = np.append(0, np.flatnonzero(months[1:] != months[:-1]) + 1)
        pieces = np.split(recording.rows, starts[1:])
        for start, rows in zip(starts, pieces, strict=True):
            subject = f"{recording.labels['subject']}, {months[start]}"
            labels = recording.labels | {"subject": subject}
            parts.append(Recording(rows, recording.trial + int(start), labels))
    return parts


def with_clock(columns: Sequence[int]) -> Callable[[np.ndarray], np.ndarray]:
    """Returns ``derive`` of a preset: columns, and the time of day on a circle.

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
    """Returns a preset that predicts the next hour from the last 24 hours.

    A window starts at each full hour. The target ``power`` is the mean of the first
    channel over the 60 minutes after the window. Sine and cosine of the time of day are
    the last two channels.

    Args:
      about: description of the preset.
      every: minutes per sample, a divisor of 60.
      channels: column of each channel in the recordings, the predicted channel first.
      unit: unit of the channels.
      arrange: ``arrange`` of the preset, applied before trimming to full hours.
      **more: further fields of the preset.
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
