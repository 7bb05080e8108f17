"""The TFDS builder of MobiAct v2."""

import io
import re
from pathlib import Path

import numpy as np
from etils import epath

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
# Three lines have the Greek capital My, which is 0xCC in the file and, read as
# Latin-1 and saved again, an accented I.
MALE = ("M", "\N{GREEK CAPITAL LETTER MU}", "Ì")
GENDERS = {"F": "female", **dict.fromkeys(MALE, "male")}
LABEL = re.compile(r"[A-Z]{3}$")
ROW = np.dtype([("signal", np.float32, (len(CHANNELS),)), ("label", "U8")])


class Builder(RecordingsBuilder):
    """Reads ``<ACT>_<subject>_1_annotated.csv`` and ``Readme.txt``."""

    name = "mobi_act"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """One per stretch of rows of one activity, by subject, file and time.

        People who lack the file of one of the four activities are left out.
        """
        people = read_people([content for _, content in read_each(source, PEOPLE)])
        files = {}
        for match, content in read_each(source, SIGNALS):
            activity, subject = match.groups()
            if subject not in people:
                raise ValueError(
                    f"{match.string} is of subject {subject}, whom Readme.txt does not "
                    f"list; it lists {sorted(people, key=int)}."
                )
            files[subject, activity] = read_signal(match.string, content)
        for subject in sorted({who for who, _ in files}, key=int):
            if complete(subject, files):
                for activity in ACTIVITIES:
                    for rows, label in stretches(*files[subject, activity]):
                        yield rows, 1, {"activity": label, **people[subject]}


def complete(subject: str, files) -> bool:
    """Whether all four files are there; ValueError if one of the selected lacks one."""
    missing = [name for name in ACTIVITIES if (subject, name) not in files]
    if missing and subject in SELECTED:
        raise ValueError(
            f"{missing[0]}_{subject}_1_annotated.csv is missing, though other files of "
            f"subject {subject} are there; unpack the archive anew."
        )
    return not missing


def read_people(texts: list[bytes]) -> dict[str, dict[str, int]]:
    """Class indices of every attribute but the activity, by subject number."""
    people = {}
    for line in (line for text in texts for line in PERSON.finditer(decode(text))):
        try:
            labels = {
                "gender": DATASET.attributes["gender"].index(GENDERS[line["gender"]]),
                "subject": DATASET.attributes["subject"].index(line[1]),
            }
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"Readme.txt has a line {line[0].strip()!r} that is of no subject from "
                f"1 to 67 with gender M or F ({error!r})."
            ) from error
        for name, bounds in BOUNDS.items():
            labels[name] = int(np.searchsorted(bounds, int(line[name])))
        people[line[1]] = labels
    if not people:
        raise ValueError(
            "Readme.txt holds no table of subjects (| ID | Name | Surname | Age | "
            "Height | Weight | Gender |); take the one that comes with MobiAct v2.0."
        )
    return people


def decode(text: bytes) -> str:
    """The file is in the Greek code page of Windows; copies may be in UTF-8."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("cp1253", "replace")


def read_signal(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """``float32[rows, 6]`` and ``str[rows]``; ValueError naming a damaged file."""
    header, _, body = content.partition(b"\n")
    titles = header.decode("utf-8-sig", "replace").strip().split(",")
    wanted = (*CHANNELS, "label")
    if missing := [title for title in wanted if title not in titles]:
        raise ValueError(
            f"{name} lacks the columns {missing}, it has {titles}; take the annotated "
            "data of MobiAct v2.0, not the raw data."
        )
    if not body.strip():
        raise ValueError(f"{name} holds no row; it is truncated, get it anew.")
    columns = [titles.index(title) for title in wanted]
    try:
        table = np.loadtxt(
            io.BytesIO(body),
            ROW,
            comments=None,
            delimiter=",",
            usecols=columns,
            ndmin=1,
        )
        odd = [label for label in np.unique(table["label"]) if not LABEL.match(label)]
        if odd:
            raise ValueError(f"{str(odd[0])!r} is no label")
        if not np.isfinite(table["signal"]).all():
            raise ValueError("there is NaN or infinity")
    except ValueError as error:
        raise ValueError(
            f"{name} does not hold 6 numbers and a label in each row ({error}); it is "
            "truncated or damaged, get it anew."
        ) from error
    return table["signal"], table["label"]


def stretches(rows: np.ndarray, labels: np.ndarray):
    """Yields the rows and the class index of each stretch of one activity."""
    classes = np.full(len(labels), DATASET.attributes["activity"].index(OTHER))
    for index, activity in enumerate(ACTIVITIES):
        classes[labels == activity] = index
    for start, end in runs(classes):
        yield rows[start:end], int(classes[start])
