"""Recordings divided into those to train on and those to test with."""

from collections.abc import Sequence

import numpy as np

from jaxanon.datasets.recordings import Recording, trials
from jaxanon.datasets.spec import Windows, take

TEST_SHARE = 0.3  # Of the subjects, or of the time, where a data set has no other.
OFFICIAL = "official"


def by_trial(recordings: Sequence[Recording], last_train_trial: int):
    """Trains on trials up to ``last_train_trial``, tests with the later ones."""
    train = [r for r in recordings if r.trial <= last_train_trial]
    return train, [r for r in recordings if r.trial > last_train_trial]


def held_out(subjects, share: float, seed: int) -> np.ndarray:
    """Picks ``share`` of the distinct ``subjects``: at least one, never all.

    Raises:
      ValueError: if there are fewer than two subjects.
    """
    distinct = np.unique(subjects)
    if len(distinct) < 2:
        raise ValueError(
            "split='subject' needs at least 2 subjects, one on each side, got "
            f"{len(distinct)}; split by time block instead."
        )
    count = min(max(1, round(share * len(distinct))), len(distinct) - 1)
    picked = np.random.default_rng(seed).permutation(distinct)[:count]
    return np.sort(picked)


def by_subject(recordings: Sequence[Recording], seed: int, share: float = TEST_SHARE):
    """Tests with ``share`` of the subjects, drawn by ``seed``."""
    out = held_out([r.labels["subject"] for r in recordings], share, seed)
    test = [r for r in recordings if r.labels["subject"] in out]
    return [r for r in recordings if r.labels["subject"] not in out], test


def by_time_block(
    recordings: Sequence[Recording],
    window: int,
    share: float = TEST_SHARE,
    step: int = 1,
):
    """Tests with the last ``share`` of the time of everybody in everything.

    Recordings that agree in every label form a series in their order; its last rows
    are the test side. Of the recording that the boundary cuts, the ``window`` rows
    before it are left out, so that what is tested is not what came an instant after
    training; if that leaves one side without a whole window, the recording goes
    uncut to the side that has most of it. It is cut after a multiple of ``step`` rows.
    """
    series = {}
    for recording in recordings:
        series.setdefault(tuple(recording.labels.items()), []).append(recording)
    train, test = [], []
    for members in series.values():
        boundary = round((1 - share) * sum(len(r.rows) for r in members))
        for recording in members:
            end, start = _cut(len(recording.rows), boundary // step * step, window)
            train.append(recording._replace(rows=recording.rows[:end]))
            test.append(recording._replace(rows=recording.rows[start:]))
            boundary -= len(recording.rows)
    return _with_rows(train), _with_rows(test)


def by_time_of_trial(
    recordings: Sequence[Recording], window: int, share: float = TEST_SHARE
):
    """Tests with the last ``share`` of every trial of everybody, whatever was done.

    The ``window`` rows before what tests are left out.
    """
    train, test = [], []
    for members in trials(recordings):
        boundary = round((1 - share) * sum(len(r.rows) for r in members))
        for recording in members:
            end, start = max(0, boundary - window), max(0, boundary)
            train.append(recording._replace(rows=recording.rows[:end]))
            test.append(recording._replace(rows=recording.rows[start:]))
            boundary -= len(recording.rows)
    return _with_rows(train), _with_rows(test)


def by_day(recordings: Sequence[Recording], share: float):
    """Tests with the last ``share`` of the days of everybody, whose trials are days.

    Days that hold a recording count, one of them at least tests and one trains; whoever
    has a single day trains. A recording lies in one day, so no window sees two sides.
    """
    days = {}
    for recording in recordings:
        days.setdefault(recording.labels["subject"], set()).add(recording.trial)
    first = {}  # Test day of each subject.
    for subject, of_subject in days.items():
        count = min(max(1, round(share * len(of_subject))), len(of_subject) - 1)
        first[subject] = [*sorted(of_subject), float("inf")][len(of_subject) - count]
    tests = [r.trial >= first[r.labels["subject"]] for r in recordings]
    sides = [[], []]
    for recording, test in zip(recordings, tests, strict=True):
        sides[test].append(recording)
    return sides[0], sides[1]


def as_released(windows: Windows, seed: int):
    """Tests with one window in five of each subject, rounded up, drawn by ``seed``.

    As ObscureNet and Blinder divide MobiAct and Wi-Fi HAR. Windows overlap, so nearly
    every test window has near-duplicates in training: what is measured on this
    split, privacy included, holds for these windows and for nothing new. It is here
    to set beside their numbers.
    """
    random = np.random.default_rng(seed)
    subject = windows.labels["subject"]
    test = np.zeros(len(subject), bool)
    for who in np.unique(subject):
        mine = random.permutation(np.flatnonzero(subject == who))
        test[mine[: -(-len(mine) // 5)]] = True
    return take(windows, ~test), take(windows, test)


def _cut(rows: int, boundary: int, window: int):
    """Where training ends and testing starts in a recording of ``rows`` rows."""
    if boundary - window >= window and rows - boundary >= window:
        return boundary - window, boundary
    return (rows, rows) if 2 * boundary >= rows else (0, 0)


def _with_rows(recordings):
    return [r for r in recordings if len(r.rows)]
