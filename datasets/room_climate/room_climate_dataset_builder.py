"""The TFDS builder of room climate."""

from pathlib import Path

import numpy as np
from etils import epath

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

# Of a row: number, ms, s, node, four readings, people, activity, door, window.
TIME, NODE, READINGS, PEOPLE, ACTIVITY, COLUMNS = 1, 3, slice(4, 8), 8, 9, 12
UNTOLD = -1
LONGEST_S = 366 * 86_400  # The originals last some days.


class Builder(RecordingsBuilder):
    """Reads ``room_climate-location_<room>-measurement<number>.csv``."""

    name = "room_climate"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """One per stretch of an activity, by room, measurement and time."""
        read = set()
        for match, content in read_each(source, FILES):
            room, number = match.group(1), int(match.group(2))
            if (room, number) in read:
                raise ValueError(f"{match.string} is there twice; leave one of them.")
            read.add((room, number))
            rows, label = regular(read_measurement(match.string, content))
            for start, end in runs(label):
                if label[start] != UNTOLD:
                    labels = {"activity": label[start], "subject": ROOMS.index(room)}
                    yield rows[start:end], number, labels


def read_measurement(name: str, content: bytes) -> np.ndarray:
    """``float64[N, 12]`` in the order of time; ValueError naming a damaged file."""
    rows = read_numbers(name, content, COLUMNS, delimiter=",")
    odd = ~np.isin(rows[:, ACTIVITY], np.arange(len(ACTIVITIES)))
    if odd.any() or not np.isfinite(rows).all():
        raise ValueError(
            f"{name} holds NaN, infinity, or an activity that is none of 0 to "
            f"{len(ACTIVITIES) - 1} ({rows[odd, ACTIVITY][:1]}); get it anew."
        )
    for node in NODES:
        if (count := np.sum(rows[:, NODE] == node)) < 2:
            raise ValueError(
                f"{name} must hold 2 readings of node {node} at least, got {count}; "
                "it is truncated, get it anew."
            )
    lasts_s = np.ptp(rows[:, TIME]) / 1000
    if not EVERY_S <= lasts_s <= LONGEST_S:
        raise ValueError(
            f"{name} must last from {EVERY_S} s to {LONGEST_S} s, got {lasts_s:g} s; "
            "it is truncated or damaged, get it anew."
        )
    return rows[np.argsort(rows[:, TIME], kind="stable")]


def regular(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A measurement every ``EVERY_S`` seconds.

    Args:
      rows: ``float[N, 12]`` of ``read_measurement``.

    Returns:
      ``float32[n, channels]``, between readings on the line through them, and
      ``int[n]``, the activity; ``UNTOLD`` where somebody is there and has none.
    """
    seconds = (rows[:, TIME] - rows[0, TIME]) / 1000
    at = np.arange(0, seconds[-1], EVERY_S)
    parts = []
    for node in NODES:
        own = rows[:, NODE] == node
        parts += [np.interp(at, seconds[own], read) for read in rows[own, READINGS].T]
    last = np.searchsorted(seconds, at, side="right") - 1
    people, activity = rows[last][:, [PEOPLE, ACTIVITY]].astype(int).T
    label = np.where((activity == 0) & (people > 0), UNTOLD, activity)
    return np.stack(parts, axis=1).astype(np.float32), label
