"""Reader of one file of WISDM, as pieces without gaps."""

import io
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.wisdm.description import TASKS

GAP_NS = 500_000_000  # Ten samples; a longer gap starts a new piece.
MAX_OFFSET_NS = 25_000_000  # Half a sample.
LETTERS = tuple(TASKS)


class Piece(NamedTuple):
    """A gap-free piece of one sensor and one task."""

    times: np.ndarray | None  # int64[rows], nanoseconds, ascending; None if unknown
    rows: np.ndarray  # float64[rows, 3]


def read_tasks(name: str, user: str, content: bytes) -> dict[int, list[Piece]]:
    """Returns the pieces of each task by task index, in order of time.

    Rows with times (``1600,A,90426708196641,7.09,-0.59,8.2;``) are sorted by time; the
    first of several rows with equal times is used. Without times a piece ends where the
    letter changes, and repetitions of an earlier piece of the task are dropped.
    """
    table = _table(name, user, content)
    letters = table["letter"]
    tasks = {}
    if "time" in (table.dtype.names or ()):
        for letter in np.unique(letters).tolist():
            times, first = np.unique(
                table["time"][letters == letter], return_index=True
            )
            rows = table["signal"][letters == letter][first]
            tasks[LETTERS.index(letter)] = split_at_gaps(times, rows)
        return dict(sorted(tasks.items()))
    edges = np.flatnonzero(letters[1:] != letters[:-1]) + 1
    for rows in np.split(table, edges):
        pieces = tasks.setdefault(LETTERS.index(rows["letter"][0]), [])
        if not any(np.array_equal(rows["signal"], piece.rows) for piece in pieces):
            pieces.append(Piece(None, rows["signal"]))
    return dict(sorted(tasks.items()))


def split_at_gaps(times: np.ndarray, rows: np.ndarray) -> list[Piece]:
    """Splits rows at gaps longer than ``GAP_NS``."""
    edges = np.flatnonzero(np.diff(times) > GAP_NS) + 1
    parts = zip(np.split(times, edges), np.split(rows, edges), strict=True)
    return [Piece(*part) for part in parts if len(part[0])]


def align(accel: list[Piece], gyro: list[Piece]) -> list[np.ndarray]:
    """Joins each row of the first sensor with the nearest row of the second.

    Returns:
      ``float64[rows, 6]`` of each gap-free piece, without rows of the first sensor that
      are more than ``MAX_OFFSET_NS`` from all rows of the second.

    Example:
      >>> ms = 1_000_000
      >>> accel = Piece(np.array([0, 50, 100]) * ms, np.zeros((3, 3)))
      >>> gyro = Piece(np.array([60, 90, 150]) * ms, np.array([[1.0], [2], [3]]))
      >>> [piece[:, 3].tolist() for piece in align([accel], [gyro])]
      [[1.0, 2.0]]
    """
    if not accel or not gyro:
        return []
    times, rows = (np.concatenate(part) for part in zip(*accel, strict=True))
    gyro_times, gyro_rows = (np.concatenate(part) for part in zip(*gyro, strict=True))
    after = np.searchsorted(gyro_times, times).clip(max=len(gyro_times) - 1)
    before = (after - 1).clip(min=0)
    sooner = times - gyro_times[before] <= gyro_times[after] - times
    nearest = np.where(sooner, before, after)
    near = np.abs(gyro_times[nearest] - times) <= MAX_OFFSET_NS
    both = np.concatenate([rows[near], gyro_rows[nearest[near]]], axis=1)
    return [piece.rows for piece in split_at_gaps(times[near], both)]


def _table(name, user, content):
    """Returns user, letter, time (if present) and signal of each row."""
    first = content.lstrip().partition(b"\n")[0]
    time = [("time", np.int64)] if first.count(b",") == 5 else []
    dtype = [("user", np.int64), ("letter", "U2"), *time, ("signal", "f8", (3,))]
    text = io.BytesIO(content.replace(b";", b""))
    try:
        if not first.strip():
            raise ValueError("it has no rows")
        table = np.loadtxt(text, dtype, delimiter=",", comments=None, ndmin=1)
        if time and content.count(b";") != len(table):
            raise ValueError("a row does not end with a semicolon")
    except ValueError as error:
        raise ValueError(
            f"{name} must hold rows of user, letter, time in ns, x, y and z, but is "
            f"truncated or damaged ({error}); download it again."
        ) from error
    if unknown := sorted(set(np.unique(table["letter"]).tolist()) - set(LETTERS)):
        raise ValueError(
            f"{name} must hold activities with the letters {''.join(LETTERS)}, got "
            f"{unknown}."
        )
    if others := sorted(set(np.unique(table["user"]).tolist()) - {int(user)}):
        raise ValueError(
            f"{name} must hold only rows of user {user}, got {others}; download it "
            "again."
        )
    return table
