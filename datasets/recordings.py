"""Recordings, the content of the prepared files before windows are cut."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Recording(NamedTuple):
    """Consecutive rows of one subject and one class of each attribute."""

    rows: np.ndarray  # float[rows, channels], physical units
    trial: int
    # Class index of each attribute, "subject" included; a name for open attributes.
    labels: dict[str, int | str]


def number_open_names(recordings: Sequence[Recording], classes):
    """Replaces the names of open attributes by indices, in order of occurrence.

    Example:
      >>> two = [Recording(np.zeros((1, 1)), 0, {"subject": name}) for name in "ba"]
      >>> two, classes = number_open_names(two, {"subject": ()})
      >>> classes, two[1].labels
      ({'subject': ('b', 'a')}, {'subject': 1})
    """
    open_names = {
        attribute: tuple(dict.fromkeys(r.labels[attribute] for r in recordings))
        for attribute, names in classes.items()
        if not names
    }
    index = {a: {n: i for i, n in enumerate(names)} for a, names in open_names.items()}
    number = lambda labels: {a: index[a][labels[a]] for a in open_names}
    changed = [r._replace(labels=r.labels | number(r.labels)) for r in recordings]
    return changed, classes | open_names


def keep_classes(recordings: Sequence[Recording], classes, attribute, names):
    """Drops recordings whose ``attribute`` is not in ``names``, renumbers the rest."""
    order = [classes[attribute].index(name) for name in names]
    remaining = [
        r._replace(labels=r.labels | {attribute: order.index(r.labels[attribute])})
        for r in recordings
        if r.labels[attribute] in order
    ]
    return remaining, classes | {attribute: tuple(names)}


def merge_classes(recordings: Sequence[Recording], classes, attribute, names):
    """Replaces classes of ``attribute`` by the classes that ``names`` maps them to."""
    index = classes[attribute].index
    merged = {index(name): index(other) for name, other in names.items()}
    return [
        r._replace(labels=r.labels | {attribute: merged.get(label, label)})
        for r, label in ((r, r.labels[attribute]) for r in recordings)
    ]


def drop_unused_classes(recordings: Sequence[Recording], classes):
    """Drops the classes of each attribute that do not occur, renumbers the rest."""
    used = {
        name: sorted({r.labels[name] for r in recordings}) for name in classes
    }  # attribute -> old indices in ascending order
    renumber = {name: {old: new for new, old in enumerate(used[name])} for name in used}
    renumbered = [
        r._replace(labels={name: renumber[name][r.labels[name]] for name in classes})
        for r in recordings
    ]
    names = {name: tuple(classes[name][old] for old in used[name]) for name in classes}
    return renumbered, names


def runs(label: np.ndarray) -> list[tuple[int, int]]:
    """Returns ``(start, end)`` of each run of equal labels, ``end`` excluded.

    Args:
      label: ``int[N]``; N may be 0.

    Example:
      >>> runs(np.array([4, 4, 1, 4]))
      [(0, 2), (2, 3), (3, 4)]
    """
    if not len(label):
        return []
    ends = np.flatnonzero(np.diff(label)) + 1
    return list(itertools.pairwise([0, *ends.tolist(), len(label)]))


def trials(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Groups consecutive recordings of the same trial and subject."""
    key = lambda recording: (recording.labels["subject"], recording.trial)
    return [list(members) for _, members in itertools.groupby(recordings, key)]


def statistics(recordings: Sequence[Recording]):
    """Returns mean and population standard deviation of each channel over all rows."""
    rows = np.concatenate([r.rows for r in recordings]).astype(np.float64, copy=False)
    return tuple(rows.mean(axis=0).tolist()), tuple(rows.std(axis=0).tolist())


def means_of(every: int, rows: np.ndarray) -> np.ndarray:
    """Returns the means of each ``every`` consecutive rows; drops an incomplete rest.

    Example:
      >>> means_of(2, np.array([[0.0], [1.0], [4.0], [6.0], [9.0]])).ravel()
      array([0.5, 5. ])
    """
    if every == 1:
        return rows
    whole = len(rows) // every * every
    return rows[:whole].reshape(-1, every, *rows.shape[1:]).mean(axis=1)
