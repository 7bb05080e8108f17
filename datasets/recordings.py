"""Recordings: what the prepared files hold, before any window is cut."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Recording(NamedTuple):
    """Consecutive rows of one person who did one thing."""

    rows: np.ndarray  # float[rows, channels], physical units
    trial: int
    # One class index per attribute, "subject" included; a name where names are open.
    labels: dict[str, int | str]


def numbered(recordings: Sequence[Recording], classes):
    """Numbers the names of open attributes in the order in which they come.

    Example:
      >>> two = [Recording(np.zeros((1, 1)), 0, {"subject": who}) for who in "ba"]
      >>> two, classes = numbered(two, {"subject": ()})
      >>> classes, two[1].labels
      ({'subject': ('b', 'a')}, {'subject': 1})
    """
    found = {
        attribute: tuple(dict.fromkeys(r.labels[attribute] for r in recordings))
        for attribute, names in classes.items()
        if not names
    }
    index = {a: {name: i for i, name in enumerate(found[a])} for a in found}
    number = lambda labels: {a: index[a][labels[a]] for a in found}
    changed = [r._replace(labels=r.labels | number(r.labels)) for r in recordings]
    return changed, classes | found


def keep_classes(recordings: Sequence[Recording], classes, attribute, names):
    """Drops recordings whose ``attribute`` is not in ``names``, renumbers the rest."""
    order = [classes[attribute].index(name) for name in names]
    kept = [
        r._replace(labels=r.labels | {attribute: order.index(r.labels[attribute])})
        for r in recordings
        if r.labels[attribute] in order
    ]
    return kept, classes | {attribute: tuple(names)}


def read_as(recordings: Sequence[Recording], classes, attribute, names):
    """Takes the classes of ``attribute`` that ``names`` maps for what it maps to."""
    index = classes[attribute].index
    taken = {index(name): index(other) for name, other in names.items()}
    return [
        r._replace(labels=r.labels | {attribute: taken.get(label, label)})
        for r, label in ((r, r.labels[attribute]) for r in recordings)
    ]


def occurring(recordings: Sequence[Recording], classes):
    """Renumbers every attribute so that only classes that occur remain."""
    found = {
        name: sorted({r.labels[name] for r in recordings}) for name in classes
    }  # attribute -> old indices in ascending order
    renumber = {
        name: {old: new for new, old in enumerate(found[name])} for name in found
    }
    renumbered = [
        r._replace(labels={name: renumber[name][r.labels[name]] for name in classes})
        for r in recordings
    ]
    names = {name: tuple(classes[name][old] for old in found[name]) for name in classes}
    return renumbered, names


def runs(label: np.ndarray) -> list[tuple[int, int]]:
    """``(start, end)`` of each stretch of one label, ``end`` not included.

    Args:
      label: ``int[N]``; of none there are none.

    Example:
      >>> runs(np.array([4, 4, 1, 4]))
      [(0, 2), (2, 3), (3, 4)]
    """
    if not len(label):
        return []
    ends = np.flatnonzero(np.diff(label)) + 1
    return list(itertools.pairwise([0, *ends.tolist(), len(label)]))


def trials(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Those that follow one another in a trial of one subject, together."""
    key = lambda recording: (recording.labels["subject"], recording.trial)
    return [list(members) for _, members in itertools.groupby(recordings, key)]


def statistics(recordings: Sequence[Recording]):
    """Mean and population standard deviation of each channel over all rows."""
    rows = np.concatenate([r.rows for r in recordings]).astype(np.float64, copy=False)
    return tuple(rows.mean(axis=0).tolist()), tuple(rows.std(axis=0).tolist())


def means_of(every: int, rows: np.ndarray) -> np.ndarray:
    """The means of ``every`` so many rows, as of a slower sensor; a rest is left out.

    Example:
      >>> means_of(2, np.array([[0.0], [1.0], [4.0], [6.0], [9.0]])).ravel()
      array([0.5, 5. ])
    """
    if every == 1:
        return rows
    whole = len(rows) // every * every
    return rows[:whole].reshape(-1, every, *rows.shape[1:]).mean(axis=1)
