"""The TFDS builder of occupancy."""

import csv
import datetime
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.occupancy.description import COLUMNS, DATASET, PEOPLE
from jaxanon.datasets.occupancy.location import FILES
from jaxanon.datasets.recordings import runs
from jaxanon.datasets.sources import read_each

DATE, TIME, COUNT = "Date", "Time", "Room_Occupancy_Count"
LONGEST_GAP = np.timedelta64(300, "s")


class Readings(NamedTuple):
    """What the room's nodes read, and how many people were there."""

    clock: np.ndarray  # datetime64[s][N], ascending
    rows: np.ndarray  # float64[N, channels]
    people: np.ndarray  # int64[N]


class Builder(RecordingsBuilder):
    """Reads ``Occupancy_Estimation.csv``."""

    name = "occupancy"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = len(COLUMNS)

    def recordings(self, source: tuple[Path, ...]):
        """One per stretch of as many people, in the order of time."""
        for match, content in read_each(source, FILES):
            clock, rows, people = read_table(match.string, content)
            trial = np.cumsum(np.diff(clock, prepend=clock[0]) > LONGEST_GAP)
            for start, end in runs(people + len(PEOPLE) * trial):
                day = str(clock[start].astype("datetime64[D]"))
                labels = {"people": people[start], "subject": day}
                yield rows[start:end], int(trial[start]), labels


def read_table(name: str, content: bytes) -> Readings:
    """The whole table, empty cells filled from the readings before and after.

    Raises:
      ValueError: naming the file, and the line if it is one, if it is damaged.
    """
    table = list(csv.reader(io.StringIO(content.decode("utf-8-sig", "replace"))))
    titles, *lines = table or [[]]
    if missing := [t for t in (DATE, TIME, *COLUMNS, COUNT) if t not in titles]:
        raise ValueError(
            f"{name} lacks the columns {missing}, it has {titles}; get it anew."
        )
    found: list[tuple] = []
    for number, cells in enumerate(lines, 2):
        try:
            found.append(_read(titles, cells))
            if len(found) > 1 and found[-1][0] <= found[-2][0]:
                raise ValueError("time stands still or goes back")
        except ValueError as error:
            raise ValueError(
                f"{name}, line {number}, does not hold a time, {len(COLUMNS)} readings "
                f"and 0 to {len(PEOPLE) - 1} people ({error}); it is truncated or "
                "damaged, get it anew."
            ) from error
    if not found:
        raise ValueError(f"{name} holds no row; it is truncated, get it anew.")
    clock, rows, people = map(np.array, zip(*found, strict=True))
    for column, title in enumerate(COLUMNS):
        if np.isnan(rows[:, column]).all():
            raise ValueError(f"{name} has no reading of {title}; get it anew.")
        rows[:, column] = filled(rows[:, column])
    return Readings(clock, rows, people)


def filled(column: np.ndarray) -> np.ndarray:
    """What is missing lies on the line between its neighbours, at an end at the next.

    Example:
      >>> filled(np.array([np.nan, 1.0, np.nan, np.nan, 4.0]))
      array([1., 1., 2., 3., 4.])
    """
    at, there = np.arange(len(column)), ~np.isnan(column)
    return np.interp(at, at[there], column[there])


def _read(titles, cells):
    """Time, readings and people of a row; NaN where a cell is empty."""
    if len(cells) != len(titles):
        raise ValueError(f"it has {len(cells)} cells of {len(titles)}")
    row = dict(zip(titles, cells, strict=True))
    if row[COUNT] not in PEOPLE:
        raise ValueError(f"{row[COUNT]!r} people are there")
    clock = f"{row[DATE]} {row[TIME]}".replace("/", "-")
    clock = datetime.datetime.strptime(clock, "%Y-%m-%d %H:%M:%S")
    values = [float(row[title].strip() or "nan") for title in COLUMNS]
    if np.isinf(values).any():
        raise ValueError("a reading is infinite")
    return np.datetime64(clock, "s"), values, PEOPLE.index(row[COUNT])
