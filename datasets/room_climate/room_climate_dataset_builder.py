"""TFDS builder of room climate."""

from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.recordings import runs
from jaxanon.datasets.room_climate.description import (
    ACTIVITIES,
    CHANNELS,
    DATASET,
    EVERY_S,
    NODES,
)
from jaxanon.datasets.room_climate.location import FILES, ROOMS
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.tables import read_numbers

# Columns: number, ms, s, node, four readings, people, activity, door, window.
TIME, NODE, READINGS, PEOPLE, ACTIVITY, COLUMNS = 1, 3, slice(4, 8), 8, 9, 12
UNLABELLED = -1
MAX_S = 366 * 86_400  # The originals last a few days.


class Builder(RecordingsBuilder):
    """Reads ``room_climate-location_<room>-measurement<number>.csv``."""

    name = "room_climate"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per stretch of an activity, by room and time."""
        seen = set()
        for match, content in read_each(source, FILES):
            room, number = match.group(1), int(match.group(2))
            if (room, number) in seen:
                raise ValueError(
                    f"measurements must be unique, got {match.string} twice; remove "
                    "one."
                )
            seen.add((room, number))
            rows, label = interpolate(read_measurement(match.string, content))
            for start, end in runs(label):
                if label[start] != UNLABELLED:
                    labels = {"activity": label[start], "subject": ROOMS.index(room)}
                    yield rows[start:end], number, labels


def read_measurement(name: str, content: bytes) -> np.ndarray:
    """Parses ``float64[N, 12]`` in order of time; raises ValueError for damage."""
    rows = read_numbers(name, content, COLUMNS, delimiter=",")
    wrong = ~np.isin(rows[:, ACTIVITY], np.arange(len(ACTIVITIES)))
    if wrong.any() or not np.isfinite(rows).all():
        raise ValueError(
            f"{name} must hold finite numbers and activities from 0 to "
            f"{len(ACTIVITIES) - 1}, got NaN, infinity or {rows[wrong, ACTIVITY][:1]}; "
            "download it again."
        )
    for node in NODES:
        if (count := np.sum(rows[:, NODE] == node)) < 2:
            raise ValueError(
                f"{name} must hold at least 2 readings of node {node}, got {count}; "
                "it is truncated, download it again."
            )
    duration_s = np.ptp(rows[:, TIME]) / 1000
    if not EVERY_S <= duration_s <= MAX_S:
        raise ValueError(
            f"{name} must last from {EVERY_S} s to {MAX_S} s, got {duration_s:g} s; "
            "it is truncated or damaged, download it again."
        )
    return rows[np.argsort(rows[:, TIME], kind="stable")]


def interpolate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interpolates a measurement to one row every ``EVERY_S`` seconds.

    Args:
      rows: ``float[N, 12]`` from ``read_measurement``.

    Returns:
      ``float32[n, channels]``, linear interpolation of the readings, and ``int[n]``,
      the activity, ``UNLABELLED`` if people are present without an activity.
    """
    seconds = (rows[:, TIME] - rows[0, TIME]) / 1000
    times = np.arange(0, seconds[-1], EVERY_S)
    parts = []
    for node in NODES:
        mask = rows[:, NODE] == node
        readings = rows[mask, READINGS].T
        parts += [np.interp(times, seconds[mask], values) for values in readings]
    last = np.searchsorted(seconds, times, side="right") - 1
    people, activity = rows[last][:, [PEOPLE, ACTIVITY]].astype(int).T
    label = np.where((activity == 0) & (people > 0), UNLABELLED, activity)
    return np.stack(parts, axis=1).astype(np.float32), label
