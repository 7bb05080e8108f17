"""Which windows of one's own train (0), test (1) or are left out (2)."""

import numpy as np

from jaxanon.datasets.own_arrays import integers
from jaxanon.datasets.splits import TEST_SHARE, held_out

TRAIN, TEST, LEFT_OUT = 0, 1, 2


def given(arrays, windows, labels, seed):
    """As the file says in ``split``."""
    if "split" not in arrays:
        raise ValueError(
            "split='given' needs an array split (0 train, 1 test) in the file; leave "
            "it to 'time_block' or 'subject'."
        )
    split = integers("split", arrays["split"], len(windows))
    unknown = set(np.unique(split).tolist()) - {TRAIN, TEST}
    if unknown:
        raise ValueError(
            f"split must be 0 (train) or 1 (test), got also {sorted(unknown)}."
        )
    return split


def by_subject(arrays, windows, labels, seed):
    """``TEST_SHARE`` of the subjects test."""
    subject = labels["subject"]
    return np.where(np.isin(subject, held_out(subject, TEST_SHARE, seed)), TEST, TRAIN)


def by_time_block(arrays, windows, labels, seed):
    """The last ``TEST_SHARE`` of the windows that agree in every label test.

    A training window is left out if it shares samples with a test window that comes
    next before or after it among the windows of its subject.
    """
    together = np.unique(np.stack(list(labels.values())), axis=1, return_inverse=True)
    group = together[1].reshape(-1)
    side = np.full(len(windows), TRAIN)
    for number in range(group.max() + 1):
        members = np.flatnonzero(group == number)
        side[members[round((1 - TEST_SHARE) * len(members)) :]] = TEST
    for subject in np.unique(labels["subject"]):
        _leave_out_overlaps(windows, np.flatnonzero(labels["subject"] == subject), side)
    return side


def share_samples(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether ``second`` begins with rows that ``first`` ends with."""
    starts = np.flatnonzero((first == second[0]).all(axis=1))
    return any(np.array_equal(first[s:], second[: len(second) - s]) for s in starts)


def _leave_out_overlaps(windows, order, side):
    """Marks in ``side`` the training windows of one subject that overlap a test."""
    reach = windows.shape[1]  # A stride is at least one sample.
    for at in np.flatnonzero(side[order[:-1]] != side[order[1:]]):
        before, after = order[: at + 1][::-1][:reach], order[at + 1 :][:reach]
        if side[after[0]] == TEST:
            pairs = ((train, train, after[0]) for train in before)
        else:
            pairs = ((train, before[0], train) for train in after)
        for train, first, second in pairs:
            if side[train] == TEST or not share_samples(
                windows[first], windows[second]
            ):
                break
            side[train] = LEFT_OUT
