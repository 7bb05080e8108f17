"""The rows of one file of WISDM, checked, as pieces without a break."""

import io
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.wisdm.description import TASKS

GAP_NS = 500_000_000  # Ten samples: after as much silence a new piece begins.
NEAR_NS = 25_000_000  # Half a sample.
LETTERS = tuple(TASKS)


class Piece(NamedTuple):
    """What one sensor recorded of one task; there may be no times."""

    times: np.ndarray | None  # int64[rows], nanoseconds, ascending
    rows: np.ndarray  # float64[rows, 3]


def read_tasks(name: str, user: str, content: bytes) -> dict[int, list[Piece]]:
    """The pieces of each task, by its number, in the order of time.

    Rows with times (``1600,A,90426708196641,7.09,-0.59,8.2;``) are sorted by them, of
    two with the same time the first stays. Without times a piece ends where the letter
    changes, and a piece that repeats an earlier one of its task is left out.
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
            tasks[LETTERS.index(letter)] = unbroken(times, rows)
        return dict(sorted(tasks.items()))
    edges = np.flatnonzero(letters[1:] != letters[:-1]) + 1
    for rows in np.split(table, edges):
        pieces = tasks.setdefault(LETTERS.index(rows["letter"][0]), [])
        if not any(np.array_equal(rows["signal"], piece.rows) for piece in pieces):
            pieces.append(Piece(None, rows["signal"]))
    return dict(sorted(tasks.items()))


def unbroken(times: np.ndarray, rows: np.ndarray) -> list[Piece]:
    """Cut where more than ``GAP_NS`` lies between two rows."""
    edges = np.flatnonzero(np.diff(times) > GAP_NS) + 1
    parts = zip(np.split(times, edges), np.split(rows, edges), strict=True)
    return [Piece(*part) for part in parts if len(part[0])]


def aligned(accel: list[Piece], gyro: list[Piece]) -> list[np.ndarray]:
    """Rows of the first sensor, each beside the nearest of the second.

    Returns:
      ``float64[rows, 6]`` of each unbroken piece; rows of the first without a row of
      the second at most ``NEAR_NS`` away are left out.

    Example:
      >>> ms = 1_000_000
      >>> accel = Piece(np.array([0, 50, 100]) * ms, np.zeros((3, 3)))
      >>> gyro = Piece(np.array([60, 90, 150]) * ms, np.array([[1.0], [2], [3]]))
      >>> [piece[:, 3].tolist() for piece in aligned([accel], [gyro])]
      [[1.0, 2.0]]
    """
    if not accel or not gyro:
        return []
    times, rows = (np.concatenate(part) for part in zip(*accel, strict=True))
    others, beside = (np.concatenate(part) for part in zip(*gyro, strict=True))
    after = np.searchsorted(others, times).clip(max=len(others) - 1)
    before = (after - 1).clip(min=0)
    sooner = times - others[before] <= others[after] - times
    nearest = np.where(sooner, before, after)
    near = np.abs(others[nearest] - times) <= NEAR_NS
    both = np.concatenate([rows[near], beside[nearest[near]]], axis=1)
    return [piece.rows for piece in unbroken(times[near], both)]


def _table(name, user, content):
    """One entry per row: ``user``, ``letter``, ``time`` unless it lacks, ``signal``."""
    first = content.lstrip().partition(b"\n")[0]
    time = [("time", np.int64)] if first.count(b",") == 5 else []
    dtype = [("user", np.int64), ("letter", "U2"), *time, ("signal", "f8", (3,))]
    text = io.BytesIO(content.replace(b";", b""))
    try:
        if not first.strip():
            raise ValueError("it holds no row")
        table = np.loadtxt(text, dtype, delimiter=",", comments=None, ndmin=1)
        if time and content.count(b";") != len(table):
            raise ValueError("a row does not end with a semicolon")
    except ValueError as error:
        raise ValueError(
            f"{name} is truncated or damaged ({error}); get it anew. Its rows are "
            "user, letter, time in ns, x, y and z."
        ) from error
    if unknown := sorted(set(np.unique(table["letter"]).tolist()) - set(LETTERS)):
        raise ValueError(
            f"{name} has rows of activity {unknown}; the letters are "
            f"{''.join(LETTERS)}."
        )
    if others := sorted(set(np.unique(table["user"]).tolist()) - {int(user)}):
        raise ValueError(f"{name} has rows of user {others}; get it anew.")
    return table
