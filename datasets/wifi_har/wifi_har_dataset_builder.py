"""TFDS builder of Wi-Fi HAR."""

import csv
import io
import math
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.wifi_har.description import (
    ACTIVITIES,
    BOUNDS,
    CHANNELS,
    DATASET,
)
from jaxanon.datasets.wifi_har.location import PEOPLE, SIGNALS, TABLE


class Builder(RecordingsBuilder):
    """Reads ``E2_S<subject>_C<experiment>_A<activity>_T<trial>.csv`` and people.csv."""

    name = "wifi_har"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per file, by subject, experiment and activity."""
        people = next(read_people(content) for _, content in read_each(source, PEOPLE))
        names = DATASET.attributes["activity"]
        for match, content in read_each(source, SIGNALS):
            subject, activity, trial = match.groups()
            subject = str(int(subject))
            if subject not in people:
                raise ValueError(
                    f"{match.string} must belong to a subject in people.csv, "
                    f"{list(people)}, got {subject}."
                )
            labels = {"activity": names.index(ACTIVITIES[activity]), **people[subject]}
            yield read_amplitudes(match.string, content), int(trial), labels


def read_people(content: bytes) -> dict[str, dict[str, int]]:
    """Returns class indices of weight, height and subject, by subject."""
    people = {}
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"))):
        try:
            subject = str(int(row["subject"]))
            labels = {"subject": DATASET.attributes["subject"].index(subject)}
            for name, bounds in BOUNDS.items():
                if not 0 < (value := float(row[name])) < math.inf:
                    raise ValueError(f"{name} is {value}")
                labels[name] = int(np.searchsorted(bounds, value))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "people.csv must hold subject (1 to 30), weight (kg) and height (cm), "
                f"got the row {row} ({error!r}); {TABLE}."
            ) from error
        people[subject] = labels
    return people


def read_amplitudes(name: str, content: bytes) -> np.ndarray:
    """Parses amplitudes ``float64[packets, 90]`` of one file, by column titles.

    A cell is a complex number such as ``-11+13i`` or ``-20+-5i``. Amplitudes are as
    reported by the network card, not in decibels.

    Raises:
      ValueError: if the file is damaged.
    """
    header, _, body = content.partition(b"\n")
    titles = header.decode("utf-8-sig", "replace").strip().split(",")
    if missing := [title for title in CHANNELS if title not in titles]:
        raise ValueError(
            f"{name} must have 90 channels, but lacks {len(missing)}, first "
            f"{missing[0]}; use the CSV files of the data set, not of another tool."
        )
    if not body.strip():
        raise ValueError(f"{name} is truncated, it has no packets; download it again.")
    columns = [titles.index(title) for title in CHANNELS]
    try:
        if not body.rstrip().endswith(b"i"):
            raise ValueError("the last cell is cut off")
        text = io.BytesIO(body.replace(b"+-", b"-").replace(b"i", b"j"))
        values = np.loadtxt(
            text, np.complex128, delimiter=",", usecols=columns, ndmin=2, comments=None
        )
    except ValueError as error:
        raise ValueError(
            f"{name} must hold 90 complex numbers per row, but is truncated or damaged "
            f"({error}); download it again."
        ) from error
    return np.abs(values)
