"""TFDS builder of MobiAct v2."""

import io
import re
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.mobi_act.description import (
    ACTIVITIES,
    BOUNDS,
    CHANNELS,
    DATASET,
    OTHER,
    SELECTED,
)
from jaxanon.datasets.mobi_act.location import PEOPLE, SIGNALS
from jaxanon.datasets.recordings import runs
from jaxanon.datasets.sources import read_each

# A line of Readme.txt: id, name, surname, age in years, cm, kg, gender.
PERSON = re.compile(
    r"^\|\s*(\d+)\s*\|[^|]*\|[^|]*\|\s*(?P<age>\d+)\s*\|\s*(?P<height>\d+)\s*\|"
    r"\s*(?P<weight>\d+)\s*\|\s*(?P<gender>\S+)\s*\|\s*$",
    re.MULTILINE,
)
# Three lines have the Greek capital Mu, byte 0xCC, which becomes an accented I in
# copies that were read as Latin-1.
MALE = ("M", "\N{GREEK CAPITAL LETTER MU}", "Ì")
GENDERS = {"F": "female", **dict.fromkeys(MALE, "male")}
LABEL = re.compile(r"[A-Z]{3}$")
ROW = np.dtype([("signal", np.float32, (len(CHANNELS),)), ("label", "U8")])


class Builder(RecordingsBuilder):
    """Reads ``<ACT>_<subject>_1_annotated.csv`` and ``Readme.txt``."""

    name = "mobi_act"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per stretch of an activity, by subject, file and time.

        Skips people who lack the file of one of the four activities.
        """
        people = read_people([content for _, content in read_each(source, PEOPLE)])
        files = {}
        for match, content in read_each(source, SIGNALS):
            activity, subject = match.groups()
            if subject not in people:
                raise ValueError(
                    f"{match.string} must belong to a subject in Readme.txt, "
                    f"{sorted(people, key=int)}, got {subject}."
                )
            files[subject, activity] = read_signal(match.string, content)
        for subject in sorted({subject for subject, _ in files}, key=int):
            if is_complete(subject, files):
                for activity in ACTIVITIES:
                    for rows, label in stretches(*files[subject, activity]):
                        yield rows, 1, {"activity": label, **people[subject]}


def is_complete(subject: str, files) -> bool:
    """Returns whether a subject has all four files.

    Raises ValueError if a subject of the default preset lacks one.
    """
    missing = [name for name in ACTIVITIES if (subject, name) not in files]
    if missing and subject in SELECTED:
        raise ValueError(
            f"subject {subject} must have files of all activities, but "
            f"{missing[0]}_{subject}_1_annotated.csv is missing; unpack the archive "
            "again."
        )
    return not missing


def read_people(texts: list[bytes]) -> dict[str, dict[str, int]]:
    """Returns class indices of all attributes except the activity, by subject."""
    people = {}
    for line in (line for text in texts for line in PERSON.finditer(decode(text))):
        try:
            labels = {
                "gender": DATASET.attributes["gender"].index(GENDERS[line["gender"]]),
                "subject": DATASET.attributes["subject"].index(line[1]),
            }
        except (KeyError, ValueError) as error:
            raise ValueError(
                "Readme.txt must list subjects from 1 to 67 with gender M or F, got "
                f"the line {line[0].strip()!r} ({error!r})."
            ) from error
        for name, bounds in BOUNDS.items():
            labels[name] = int(np.searchsorted(bounds, int(line[name])))
        people[line[1]] = labels
    if not people:
        raise ValueError(
            "Readme.txt must hold a table of subjects (| ID | Name | Surname | Age | "
            "Height | Weight | Gender |), got none; use the file of MobiAct v2.0."
        )
    return people


def decode(text: bytes) -> str:
    """Decodes UTF-8, or the Greek code page of Windows as in the original file."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("cp1253", "replace")


def read_signal(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Parses ``float32[rows, 6]`` and ``str[rows]``; raises ValueError for damage."""
    header, _, body = content.partition(b"\n")
    titles = header.decode("utf-8-sig", "replace").strip().split(",")
    needed = (*CHANNELS, "label")
    if missing := [title for title in needed if title not in titles]:
        raise ValueError(
            f"{name} must have the columns {missing}, got {titles}; use the annotated "
            "data of MobiAct v2.0, not the raw data."
        )
    if not body.strip():
        raise ValueError(f"{name} is truncated, it has no rows; download it again.")
    columns = [titles.index(title) for title in needed]
    try:
        table = np.loadtxt(
            io.BytesIO(body),
            ROW,
            comments=None,
            delimiter=",",
            usecols=columns,
            ndmin=1,
        )
        labels = np.unique(table["label"])
        if wrong := [label for label in labels if not LABEL.match(label)]:
            raise ValueError(f"{str(wrong[0])!r} is not a label")
        if not np.isfinite(table["signal"]).all():
            raise ValueError("NaN or infinity")
    except ValueError as error:
        raise ValueError(
            f"{name} must hold 6 numbers and a label per row, but is truncated or "
            f"damaged ({error}); download it again."
        ) from error
    return table["signal"], table["label"]


def stretches(rows: np.ndarray, labels: np.ndarray):
    """Yields rows and class index of each stretch of one activity."""
    classes = np.full(len(labels), DATASET.attributes["activity"].index(OTHER))
    for index, activity in enumerate(ACTIVITIES):
        classes[labels == activity] = index
    for start, end in runs(classes):
        yield rows[start:end], int(classes[start])
