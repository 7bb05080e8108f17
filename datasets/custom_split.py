"""Splits of a custom data set: training (0), test (1) or omitted (2) windows."""

import numpy as np

from jaxanon.datasets import held_out
from jaxanon.datasets.custom_arrays import integers
from jaxanon.datasets.splits import TEST_FRACTION, draw_test_subjects

TRAIN, TEST, OMITTED = 0, 1, 2


def given(arrays, windows, labels, seed):
    """Returns the array ``split`` of the file."""
    if "split" not in arrays:
        raise ValueError(
            "split='given' requires an array split (0 train, 1 test) in the file; use "
            "'time_block' or 'subject' instead."
        )
    split = integers("split", arrays["split"], len(windows))
    unknown = set(np.unique(split).tolist()) - {TRAIN, TEST}
    if unknown:
        raise ValueError(
            f"split must be 0 (train) or 1 (test), got also {sorted(unknown)}."
        )
    return split


def by_subject(arrays, windows, labels, seed):
    """Assigns ``TEST_FRACTION`` of the subjects to the test side."""
    subject = labels["subject"]
    test_subjects = draw_test_subjects(subject, TEST_FRACTION, seed)
    return np.where(np.isin(subject, test_subjects), TEST, TRAIN)


def by_people(people, labels, test_people):
    """Assigns the windows of the people named ``test_people`` to the test side."""
    subjects = held_out.select(test_people, people)
    return np.where(np.isin(labels["subject"], subjects), TEST, TRAIN)


def by_time_block(arrays, windows, labels, seed):
    """Tests on the last ``TEST_FRACTION`` of each combination of labels.

    Omits training windows that share samples with the nearest test window of the same
    subject.
    """
    together = np.unique(np.stack(list(labels.values())), axis=1, return_inverse=True)
    group = together[1].reshape(-1)
    side = np.full(len(windows), TRAIN)
    for number in range(group.max() + 1):
        members = np.flatnonzero(group == number)
        side[members[round((1 - TEST_FRACTION) * len(members)) :]] = TEST
    for subject in np.unique(labels["subject"]):
        _omit_overlaps(windows, np.flatnonzero(labels["subject"] == subject), side)
    return side


def share_samples(first: np.ndarray, second: np.ndarray) -> bool:
    """Returns whether ``second`` begins with the last rows of ``first``."""
    starts = np.flatnonzero((first == second[0]).all(axis=1))
    return any(np.array_equal(first[s:], second[: len(second) - s]) for s in starts)


def _omit_overlaps(windows, order, side):
    """Marks one subject's training windows that overlap a test window, in ``side``."""
    length = windows.shape[1]  # Most windows that can overlap one: stride >= 1.
    for at in np.flatnonzero(side[order[:-1]] != side[order[1:]]):
        before, after = order[: at + 1][::-1][:length], order[at + 1 :][:length]
        if side[after[0]] == TEST:
            pairs = ((train, train, after[0]) for train in before)
        else:
            pairs = ((train, before[0], train) for train in after)
        for train, first, second in pairs:
            if side[train] == TEST or not share_samples(
                windows[first], windows[second]
            ):
                break
            side[train] = OMITTED
