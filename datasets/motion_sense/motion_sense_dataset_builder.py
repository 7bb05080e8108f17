"""TFDS builder of MotionSense."""

import csv
import io
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.motion_sense.description import (
    ACTIVITIES,
    BOUNDS,
    CHANNELS,
    DATASET,
)
from jaxanon.datasets.motion_sense.location import PEOPLE, SIGNALS
from jaxanon.datasets.sources import read_each


class Builder(RecordingsBuilder):
    """Reads ``<act>_<trial>/sub_<n>.csv`` and ``data_subjects_info.csv``."""

    name = "motion_sense"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per file, ordered by subject, activity and trial."""
        people = next(read_people(content) for _, content in read_each(source, PEOPLE))
        signals = []
        for match, content in read_each(source, SIGNALS):
            activity, trial, subject = match.groups()
            if subject not in people:
                raise ValueError(
                    f"{match.string} must belong to a subject in "
                    f"data_subjects_info.csv, {sorted(people)}, got {subject}."
                )
            labels = {"activity": ACTIVITIES.index(activity), **people[subject]}
            signals.append((read_signal(match.string, content), int(trial), labels))
        key = lambda item: (item[2]["subject"], item[2]["activity"], item[1])
        yield from sorted(signals, key=key)


def read_people(content: bytes) -> dict[str, dict[str, int]]:
    """Returns class indices of all attributes except the activity, by subject."""
    people = {}
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"))):
        try:
            labels = {"gender": int(row["gender"])}
            for name, bounds in BOUNDS.items():
                labels[name] = int(np.searchsorted(bounds, int(row[name])))
            labels["subject"] = DATASET.attributes["subject"].index(row["code"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "data_subjects_info.csv must hold code, weight, height, age and gender "
                f"as whole numbers, got the row {row} ({error!r})."
            ) from error
        people[row["code"]] = labels
    return people


def read_signal(name: str, content: bytes) -> np.ndarray:
    """Parses ``float64[rows, 12]`` of one file; raises ValueError if it is damaged."""
    header, _, body = content.partition(b"\n")
    titles = tuple(header.decode("utf-8-sig", "replace").strip().split(",")[1:])
    if titles != CHANNELS:
        raise ValueError(
            f"{name} must have the columns {CHANNELS}, got {titles}; use "
            "A_DeviceMotion_data, not the raw sensors."
        )
    if not body.strip():
        raise ValueError(f"{name} is truncated, it has no rows; download it again.")
    columns = range(1, 1 + len(CHANNELS))
    try:
        return np.loadtxt(io.BytesIO(body), delimiter=",", usecols=columns, ndmin=2)
    except ValueError as error:
        raise ValueError(
            f"{name} must hold {len(CHANNELS)} numbers per row, but is truncated or "
            f"damaged ({error}); download it again."
        ) from error
