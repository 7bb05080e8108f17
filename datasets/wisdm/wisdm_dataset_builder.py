"""The TFDS builders of WISDM: of both sensors, and of the accelerometer alone."""

import warnings
from pathlib import Path

from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.wisdm.description import ACTIVITIES, DATASET, EATING, TASKS
from jaxanon.datasets.wisdm.location import ACCEL, WATCH
from jaxanon.datasets.wisdm.reading import aligned, read_tasks

SUBJECTS = DATASET.attributes["subject"]


class Builder(RecordingsBuilder):
    """Reads ``raw/watch/{accel,gyro}/data_<user>_{accel,gyro}_watch.txt``."""

    name = "wisdm"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = 6

    def recordings(self, source: tuple[Path, ...]):
        """One per unbroken piece, by user, task and time; see ``reading.aligned``."""
        found = {}
        for match, content in read_each(source, WATCH):
            sensor, user = match.groups()
            _add(found.setdefault(user, {}), sensor, match, user, content)
        pieces = {}
        for user, sensors in found.items():
            accel, gyro = (sensors.get(name, {}) for name in ("accel", "gyro"))
            pieces[user] = [
                (task, rows)
                for task in accel
                for rows in aligned(accel[task], gyro.get(task, []))
            ]
        if left_out := sorted(user for user in pieces if not pieces[user]):
            warnings.warn(
                f"wisdm: users {left_out} have no row of the accelerometer with one of "
                "the gyroscope beside it and are left out; are their files missing?",
                stacklevel=2,
            )
        for user in sorted(pieces):
            for task, rows in pieces[user]:
                yield rows, 1, _labels(user, task)


class AccelBuilder(RecordingsBuilder):
    """Reads ``data_<user>_accel_watch.txt``, with times and without."""

    name = "wisdm_accel"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = 3

    def recordings(self, source: tuple[Path, ...]):
        """One per unbroken piece, by user, task and time."""
        found = {}
        for match, content in read_each(source, ACCEL):
            _add(found, match.group(1), match, match.group(1), content)
        for user in sorted(found):
            for task, pieces in found[user].items():
                for piece in pieces:
                    yield piece.rows, 1, _labels(user, task)


def _add(found, key, match, user, content):
    """The pieces of a file, where there must not be any yet."""
    if user not in SUBJECTS:
        raise ValueError(
            f"{match.string} is of user {user}; users are {SUBJECTS[0]} to "
            f"{SUBJECTS[-1]}."
        )
    if key in found:
        raise ValueError(
            f"{match.string} is the second file of the kind of user {user}; take one "
            "of the two away, or pass the folder or zip that holds only one."
        )
    found[key] = read_tasks(match.string, user, content)


def _labels(user, task):
    name = tuple(TASKS.values())[task]
    return {
        "activity": ACTIVITIES.index(EATING.get(name, name)),
        "task": task,
        "subject": SUBJECTS.index(user),
    }
