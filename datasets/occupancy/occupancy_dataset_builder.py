"""TFDS builder of occupancy."""

import csv
import datetime
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.occupancy.description import COLUMNS, DATASET, PEOPLE
from jaxanon.datasets.occupancy.location import FILES
from jaxanon.datasets.recordings import runs
from jaxanon.datasets.sources import read_each

DATE, TIME, COUNT = "Date", "Time", "Room_Occupancy_Count"
MAX_GAP = np.timedelta64(300, "s")


class Readings(NamedTuple):
    """Readings of the room's nodes, and the number of people."""

    clock: np.ndarray  # datetime64[s][N], ascending
    rows: np.ndarray  # float64[N, channels]
    people: np.ndarray  # int64[N]


class Builder(RecordingsBuilder):
    """Reads ``Occupancy_Estimation.csv``."""

    name = "occupancy"
    dataset = DATASET
    num_channels = len(COLUMNS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per stretch of equal occupancy, in order of time."""
        for match, content in read_each(source, FILES):
            clock, rows, people = read_table(match.string, content)
            trial = np.cumsum(np.diff(clock, prepend=clock[0]) > MAX_GAP)
            for start, end in runs(people + len(PEOPLE) * trial):
                day = str(clock[start].astype("datetime64[D]"))
                labels = {"people": people[start], "subject": day}
                yield rows[start:end], int(trial[start]), labels


def read_table(name: str, content: bytes) -> Readings:
    """Parses the whole table and fills missing values by interpolation.

    Raises:
      ValueError: if the file is damaged; the message names the file and the line.
    """
    table = list(csv.reader(io.StringIO(content.decode("utf-8-sig", "replace"))))
    titles, *lines = table or [[]]
    if missing := [t for t in (DATE, TIME, *COLUMNS, COUNT) if t not in titles]:
        raise ValueError(
            f"{name} must have the columns {missing}, got {titles}; download it again."
        )
    parsed: list[tuple] = []
    for number, cells in enumerate(lines, 2):
        try:
            parsed.append(_read(titles, cells))
            if len(parsed) > 1 and parsed[-1][0] <= parsed[-2][0]:
                raise ValueError("time does not increase")
        except ValueError as error:
            raise ValueError(
                f"{name}, line {number}, must hold a time, {len(COLUMNS)} readings and "
                f"0 to {len(PEOPLE) - 1} people, but is truncated or damaged "
                f"({error}); download it again."
            ) from error
    if not parsed:
        raise ValueError(f"{name} is truncated, it has no rows; download it again.")
    clock, rows, people = map(np.array, zip(*parsed, strict=True))
    for column, title in enumerate(COLUMNS):
        if np.isnan(rows[:, column]).all():
            raise ValueError(
                f"{name} must have a reading of {title}, got none; download it again."
            )
        rows[:, column] = fill_missing(rows[:, column])
    return Readings(clock, rows, people)


def fill_missing(column: np.ndarray) -> np.ndarray:
    """Fills NaN by linear interpolation, at the ends by the nearest value.

    Example:
      >>> fill_missing(np.array([np.nan, 1.0, np.nan, np.nan, 4.0]))
      array([1., 1., 2., 3., 4.])
    """
    index, present = np.arange(len(column)), ~np.isnan(column)
    return np.interp(index, index[present], column[present])


def _read(titles, cells):
    """Returns time, readings and people of a row; NaN for empty cells."""
    if len(cells) != len(titles):
        raise ValueError(f"it has {len(cells)} of {len(titles)} cells")
    row = dict(zip(titles, cells, strict=True))
    if row[COUNT] not in PEOPLE:
        raise ValueError(f"it has {row[COUNT]!r} people")
    clock = f"{row[DATE]} {row[TIME]}".replace("/", "-")
    clock = datetime.datetime.strptime(clock, "%Y-%m-%d %H:%M:%S")
    values = [float(row[title].strip() or "nan") for title in COLUMNS]
    if np.isinf(values).any():
        raise ValueError("a reading is infinite")
    return np.datetime64(clock, "s"), values, PEOPLE.index(row[COUNT])
