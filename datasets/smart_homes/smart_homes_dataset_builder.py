"""The TFDS builder of the smart homes."""

import datetime
import io
import re
from pathlib import Path

import numpy as np
from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.smart_homes import minutes
from jaxanon.datasets.smart_homes.description import CHANNELS, DATASET
from jaxanon.datasets.smart_homes.location import HOUSES, ORDONEZ, TABLES, TEXTS
from jaxanon.datasets.smart_homes.minutes import Spans
from jaxanon.datasets.smart_homes.naming import TYPES, class_of, type_of
from jaxanon.datasets.sources import read_each

ROW = re.compile(r"(\d\S+ \d\S+)\s+(\d\S+ \d\S+)\s+(.*?)\s*$")
HOUR = 3600
LONGEST = 3660 * minutes.DAY  # Minutes; the originals have some weeks.


class Builder(RecordingsBuilder):
    """Reads ``house?.*`` of homes A to E and ``Ordonez?_*.txt`` of homes A and B."""

    name = "smart_homes"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """One per stretch of an activity, by home and time; the trial is the day."""
        for subject, (events, activities) in enumerate(homes(source)):
            origin = minutes.day_begun(activities.start.min())
            until = minutes.day_begun(activities.end.max() - 1)
            count = (until - origin) // minutes.MINUTE + minutes.DAY
            if count > LONGEST:
                raise ValueError(
                    f"home {DATASET.attributes['subject'][subject]} has activities of "
                    f"{count // minutes.DAY} days, its first and last times are far "
                    "apart; its file is damaged, get it anew."
                )
            channels = [
                *minutes.states(events, origin, count, len(TYPES)),
                minutes.time_of_day(origin, count),
            ]
            rows = np.concatenate(channels, axis=1)
            label = minutes.doing(activities, origin, count)
            for first, end, kind in minutes.stretches(label):
                labels = {"activity": kind, "subject": subject}
                yield rows[first:end], first // minutes.DAY + 1, labels


def homes(source):
    """Sensors' times on and activities of each home, in the order of the subjects."""
    tables = {m.groups(): content for m, content in read_each(source, TABLES)}
    for home in HOUSES:
        parts = {part: content for (of, part), content in tables.items() if of == home}
        yield read_house(home, parts)
    texts = {m.groups(): content for m, content in read_each(source, TEXTS)}
    for home in ORDONEZ:
        yield read_ordonez(home, texts[home, "Sensors"], texts[home, "ADLs"])


def read_house(home: str, parts: dict[str, bytes]) -> tuple[Spans, Spans]:
    """Van Kasteren's and MIT's: start, length, number; sensors without a name go."""
    found = []
    for part, index_of in (("sensor", type_of), ("activity", class_of)):
        names = {}
        for line in parts[f"{part}_names"].decode("utf-8-sig").splitlines():
            number, _, name = line.partition("\t")
            names[int(number)] = index_of(home, name)
        file = {"sensor": "sensors", "activity": "activities"}[part]
        table = read_table(f"house{home}.{file}", parts[file])
        table = table[np.isin(table[:, 2], list(names))]
        kinds = np.array([names[number] for number in table[:, 2].tolist()], np.int64)
        found.append(_spans(table[:, 0], table[:, 0] + table[:, 1], kinds))
    return found[0], found[1]


def read_table(name: str, content: bytes) -> np.ndarray:
    """``int64[rows, 3]``; ValueError naming the file if it is damaged."""
    try:
        if not content.strip():
            raise ValueError("it is empty")
        table = np.loadtxt(io.BytesIO(content), np.int64, ndmin=2)
        if table.shape[1] != 3:
            raise ValueError(f"it has {table.shape[1]} columns")
        if (table[:, 1] < 0).any():
            raise ValueError("a length is negative")
    except ValueError as error:
        raise ValueError(
            f"{name} does not hold start, length and number in each row ({error}); it "
            "is truncated or damaged, get it anew."
        ) from error
    return table


def read_ordonez(home: str, sensors: bytes, activities: bytes) -> tuple[Spans, Spans]:
    """Ordonez's: start, end, and sensor, type and room or activity."""
    name = f"Ordonez {home}"
    events = []
    for start, end, rest in read_rows(f"Ordonez{home}_Sensors.txt", sensors):
        where, _, room = rest.split()
        events.append((start, end, type_of(name, f"{where} {room}")))
    acts = []
    for start, end, rest in read_rows(f"Ordonez{home}_ADLs.txt", activities):
        acts.append((start, end, class_of(name, rest)))
    events, acts = (np.array(found, np.int64).T for found in (events, acts))
    return _spans(*events), _spans(*acts)


def read_rows(name: str, content: bytes):
    """Start and end in seconds and what follows them, of each row after the header.

    An end before its start is a slip of the hour or the day, of which the data has
    three: minutes and seconds stand, in the first hour in which they come after it.
    """
    lines = content.decode("utf-8-sig").splitlines()[2:]
    rows = []
    for number, line in enumerate(lines, 3):
        if not line.strip():
            continue
        try:
            if (match := ROW.match(line)) is None:
                raise ValueError("something is missing")
            start, end = (_seconds(match.group(part)) for part in (1, 2))
        except ValueError as error:
            raise ValueError(
                f"{name}, line {number}, is {line!r} and no start, end and name "
                f"({error}); the file is truncated or damaged, get it anew."
            ) from error
        if end < start:
            end = start + (end - start) % HOUR
        rows.append((start, end, match.group(3)))
    if not rows:
        raise ValueError(f"{name} holds no row; it is truncated, get it anew.")
    return rows


def _seconds(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text)
    return int(moment.replace(tzinfo=datetime.UTC).timestamp())


def _spans(start, end, kinds) -> Spans:
    """A second at least, so that no event is lost."""
    return Spans(start, np.maximum(end, start + 1), kinds)
