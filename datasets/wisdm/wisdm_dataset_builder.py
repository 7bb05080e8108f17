"""TFDS builders of WISDM, of both sensors and of the accelerometer only."""

import warnings
from pathlib import Path

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.wisdm.description import ACTIVITIES, DATASET, EATING, TASKS
from jaxanon.datasets.wisdm.location import ACCEL, WATCH
from jaxanon.datasets.wisdm.reading import align, read_tasks

SUBJECTS = DATASET.attributes["subject"]


class Builder(RecordingsBuilder):
    """Reads ``raw/watch/{accel,gyro}/data_<user>_{accel,gyro}_watch.txt``."""

    name = "wisdm"
    dataset = DATASET
    num_channels = 6

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per gap-free piece, by user, task and time."""
        users = {}
        for match, content in read_each(source, WATCH):
            sensor, user = match.groups()
            _add(users.setdefault(user, {}), sensor, match, user, content)
        pieces = {}
        for user, sensors in users.items():
            accel, gyro = (sensors.get(name, {}) for name in ("accel", "gyro"))
            pieces[user] = [
                (task, rows)
                for task in accel
                for rows in align(accel[task], gyro.get(task, []))
            ]
        if dropped := sorted(user for user in pieces if not pieces[user]):
            warnings.warn(
                f"wisdm: dropped users {dropped} without simultaneous rows of "
                "accelerometer and gyroscope; check for missing files.",
                stacklevel=2,
            )
        for user in sorted(pieces):
            for task, rows in pieces[user]:
                yield rows, 1, _labels(user, task)


class AccelBuilder(RecordingsBuilder):
    """Reads ``data_<user>_accel_watch.txt``, with or without times."""

    name = "wisdm_accel"
    dataset = DATASET
    num_channels = 3

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per gap-free piece, by user, task and time."""
        users = {}
        for match, content in read_each(source, ACCEL):
            _add(users, match.group(1), match, match.group(1), content)
        for user in sorted(users):
            for task, pieces in users[user].items():
                for piece in pieces:
                    yield piece.rows, 1, _labels(user, task)


def _add(files, key, match, user, content):
    """Adds the pieces of a file; raises ValueError for a second file of its kind."""
    if user not in SUBJECTS:
        raise ValueError(
            f"{match.string} must belong to a user from {SUBJECTS[0]} to "
            f"{SUBJECTS[-1]}, got {user}."
        )
    if key in files:
        raise ValueError(
            f"{match.string} must be the only file of its kind of user {user}, got a "
            "second one; remove one, or pass a folder or zip archive with only one."
        )
    files[key] = read_tasks(match.string, user, content)


def _labels(user, task):
    name = tuple(TASKS.values())[task]
    return {
        "activity": ACTIVITIES.index(EATING.get(name, name)),
        "task": task,
        "subject": SUBJECTS.index(user),
    }
