"""Rooms as recordings: Room Climate Datasets and UCI Room Occupancy Estimation."""

import csv
import datetime
import io
import itertools
import os
import pathlib
import re
import zipfile

import numpy as np

from jaxanon.datasets.recordings import Recording

ROOMS = {"A": 0, "B": 1, "C": 2}
NODES = (1, 2, 3)  # That all rooms have.
READ = ("temp", "humidity", "light 1", "light 2")
EVERY_S = 4
ACTIVITIES = ("away", "read", "stand", "walk", "work")
FILE = re.compile(r"location_([ABC])-measurement(\d+)\.csv$")
LONGEST_GAP_S = 300
CLOCK = "%Y-%m-%d %H:%M:%S"


def folder(name) -> pathlib.Path:
    """Where the files of a data set lie.

    Raises:
      FileNotFoundError: if they are not there.
    """
    found = pathlib.Path(os.environ.get("JAXANON_DATA", "")) / name
    if "JAXANON_DATA" not in os.environ or not found.is_dir():
        raise FileNotFoundError(
            f"{name} was not found; put its files into $JAXANON_DATA/{name}."
        )
    return found


def channels():
    """Names and units of what three nodes measure."""
    units = ("°C", "%", "nm", "nm")
    names = tuple(f"{what}, node {node}" for node in NODES for what in READ)
    return names, units * len(NODES)


def climate() -> list[Recording]:
    """Stretches of one activity in a room; "away" is nobody there."""
    archives = sorted(folder("room_climate").glob("*.zip"))
    if not archives:
        raise FileNotFoundError("room_climate was not found: there is no zip in it.")
    archive, found = archives[0], []
    with zipfile.ZipFile(archive) as file:
        for name in sorted(file.namelist()):
            if told := FILE.search(name):
                rows = np.loadtxt(io.BytesIO(file.read(name)), delimiter=",", ndmin=2)
                found += stretches(rows, ROOMS[told[1]], int(told[2]))
    return found


def stretches(rows, room: int, trial: int) -> list[Recording]:
    """A measurement's stretches, every ``EVERY_S`` seconds.

    Args:
      rows: ``float[N, 12]``: number, ms, s, node, four readings, people, activity,
        door, window.
      room, trial: of the recordings.

    Returns:
      Recordings of ``float32[n, channels]``; none where a node is missing. What has no
      activity while somebody is there is left out.
    """
    seconds = (rows[:, 1] - rows[0, 1]) / 1000
    at = np.arange(0, seconds.max(), EVERY_S)
    parts = []
    for node in NODES:
        own = rows[:, 3] == node
        if own.sum() < 2:
            return []
        order = np.argsort(seconds[own], kind="stable")
        read = rows[own, 4:8][order]
        parts += [np.interp(at, seconds[own][order], column) for column in read.T]
    values = np.stack(parts, axis=1).astype(np.float32)
    last = np.searchsorted(seconds, at, side="right") - 1
    people, activity = rows[last, 8].astype(int), rows[last, 9].astype(int)
    label = np.where((activity == 0) & (people > 0), -1, activity)
    return [
        Recording(values[start:end], trial, _labels(label[start], room))
        for start, end in _runs(label)
        if label[start] >= 0
    ]


def occupancy():
    """Stretches of as many people; recordings, channels, units."""
    path = folder("occupancy") / "Occupancy_Estimation.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    renamed = {
        **{f"S{n}_{what}": f"{n} {what.lower()}" for n in range(1, 5)
           for what in ("Temp", "Light", "Sound")},
        "S5_CO2": "CO2", "S6_PIR": "PIR 6", "S7_PIR": "PIR 7",
    }  # fmt: skip
    units = [
        {"T": "°C", "L": "lx", "S": "V", "C": "ppm", "P": "1"}[name.split("_")[1][0]]
        for name in renamed
    ]
    columns = [
        np.array([float(row[name] or "nan") for row in rows]) for name in renamed
    ]
    values = np.stack([_filled(column) for column in columns], axis=1)
    people = np.array([int(row["Room_Occupancy_Count"]) for row in rows])
    clock = [
        datetime.datetime.strptime(f"{r['Date']} {r['Time']}", CLOCK) for r in rows
    ]
    gaps = np.array([(b - a).total_seconds() for a, b in itertools.pairwise(clock)])
    block = np.concatenate([[0], np.cumsum(np.abs(gaps) > LONGEST_GAP_S)])
    found = [
        Recording(values[start:end].astype(np.float32), 0, _labels(people[start], 0))
        for start, end in _runs(people + 10 * block)
    ]
    return found, tuple(renamed.values()), tuple(units)


def _labels(activity, room):
    return {"activity": int(activity), "room": room, "subject": 0}


def _runs(label):
    """``(start, end)`` of each stretch of one label."""
    starts = np.flatnonzero(np.diff(label, prepend=label[0] - 1))
    return list(zip(starts, [*starts[1:], len(label)], strict=True))


def _filled(column):
    """Readings that are missing lie between their neighbours."""
    at, there = np.arange(len(column)), ~np.isnan(column)
    return np.interp(at, at[there], column[there])
