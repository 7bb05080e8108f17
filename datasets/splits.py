"""Splits of recordings into training and test recordings."""

from collections.abc import Sequence

import numpy as np

from jaxanon.datasets.recordings import Recording, trials
from jaxanon.datasets.spec import Windows, take

TEST_FRACTION = 0.3  # Default fraction of the subjects, or of the time.
OFFICIAL = "official"


def by_trial(recordings: Sequence[Recording], last_train_trial: int):
    """Trains on trials up to ``last_train_trial`` and tests on later trials."""
    train = [r for r in recordings if r.trial <= last_train_trial]
    return train, [r for r in recordings if r.trial > last_train_trial]


def draw_test_subjects(subjects, fraction: float, seed: int) -> np.ndarray:
    """Draws ``fraction`` of the distinct ``subjects``, at least one and never all.

    Raises:
      ValueError: if there are fewer than two subjects.
    """
    distinct = np.unique(subjects)
    if len(distinct) < 2:
        raise ValueError(
            "split='subject' requires at least 2 subjects, one on each side, got "
            f"{len(distinct)}; split by time block instead."
        )
    count = min(max(1, round(fraction * len(distinct))), len(distinct) - 1)
    drawn = np.random.default_rng(seed).permutation(distinct)[:count]
    return np.sort(drawn)


def by_subject(
    recordings: Sequence[Recording],
    seed: int,
    fraction: float = TEST_FRACTION,
    test_subjects: np.ndarray | None = None,
):
    """Tests on the given subjects, or on ``fraction`` of them, drawn by ``seed``."""
    subjects = [r.labels["subject"] for r in recordings]
    if test_subjects is None:
        test_subjects = draw_test_subjects(subjects, fraction, seed)
    test = [r for r in recordings if r.labels["subject"] in test_subjects]
    return [r for r in recordings if r.labels["subject"] not in test_subjects], test


def by_time_block(
    recordings: Sequence[Recording],
    window: int,
    fraction: float = TEST_FRACTION,
    step: int = 1,
):
    """Tests on the last ``fraction`` of the time of each combination of labels.

    Recordings with equal labels form a series, whose last rows are the test side. If
    the boundary cuts a recording, the ``window`` rows before the boundary are omitted,
    so that test rows do not directly follow training rows. If one side would then lack
    a whole window, the entire recording goes to the side that has most of it.
    Recordings are cut at multiples of ``step`` rows.
    """
    series = {}
    for recording in recordings:
        series.setdefault(tuple(recording.labels.items()), []).append(recording)
    train, test = [], []
    for members in series.values():
        boundary = round((1 - fraction) * sum(len(r.rows) for r in members))
        for recording in members:
            end, start = _cut(len(recording.rows), boundary // step * step, window)
            train.append(recording._replace(rows=recording.rows[:end]))
            test.append(recording._replace(rows=recording.rows[start:]))
            boundary -= len(recording.rows)
    return _with_rows(train), _with_rows(test)


def by_time_of_trial(
    recordings: Sequence[Recording], window: int, fraction: float = TEST_FRACTION
):
    """Tests on the last ``fraction`` of each trial, regardless of other labels.

    The ``window`` rows before the test rows are omitted.
    """
    train, test = [], []
    for members in trials(recordings):
        boundary = round((1 - fraction) * sum(len(r.rows) for r in members))
        for recording in members:
            end, start = max(0, boundary - window), max(0, boundary)
            train.append(recording._replace(rows=recording.rows[:end]))
            test.append(recording._replace(rows=recording.rows[start:]))
            boundary -= len(recording.rows)
    return _with_rows(train), _with_rows(test)


def by_day(recordings: Sequence[Recording], fraction: float):
    """Tests on the last ``fraction`` of each subject's days; a trial is a day.

    Only days with a recording count. Each subject has at least one training day and one
    test day; a subject with a single day only trains. A recording never spans two days,
    so no window covers both sides.
    """
    days = {}
    for recording in recordings:
        days.setdefault(recording.labels["subject"], set()).add(recording.trial)
    first = {}  # First test day of each subject.
    for subject, trials_ in days.items():
        count = min(max(1, round(fraction * len(trials_))), len(trials_) - 1)
        first[subject] = [*sorted(trials_), float("inf")][len(trials_) - count]
    tests = [r.trial >= first[r.labels["subject"]] for r in recordings]
    sides = [[], []]
    for recording, test in zip(recordings, tests, strict=True):
        sides[test].append(recording)
    return sides[0], sides[1]


def as_released(windows: Windows, seed: int):
    """Tests on a fifth of each subject's windows, rounded up, drawn by ``seed``.

    ObscureNet and Blinder split MobiAct and Wi-Fi HAR in this way. Because windows
    overlap, nearly every test window has near-duplicates in training. Results on this
    split, including privacy, do not generalize; use it only to compare with published
    results.
    """
    random = np.random.default_rng(seed)
    subject = windows.labels["subject"]
    test = np.zeros(len(subject), bool)
    for each in np.unique(subject):
        rows = random.permutation(np.flatnonzero(subject == each))
        test[rows[: -(-len(rows) // 5)]] = True
    return take(windows, ~test), take(windows, test)


def _cut(rows: int, boundary: int, window: int):
    """Returns where training ends and testing starts in a recording of ``rows``."""
    if boundary - window >= window and rows - boundary >= window:
        return boundary - window, boundary
    return (rows, rows) if 2 * boundary >= rows else (0, 0)


def _with_rows(recordings):
    return [r for r in recordings if len(r.rows)]
