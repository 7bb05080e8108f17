"""TFDS builder of the smart homes."""

import datetime
import io
import re
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.smart_homes import minutes
from jaxanon.datasets.smart_homes.description import CHANNELS, DATASET
from jaxanon.datasets.smart_homes.location import HOUSES, ORDONEZ, TABLES, TEXTS
from jaxanon.datasets.smart_homes.minutes import Spans
from jaxanon.datasets.smart_homes.naming import TYPES, class_of, type_of
from jaxanon.datasets.sources import read_each

ROW = re.compile(r"(\d\S+ \d\S+)\s+(\d\S+ \d\S+)\s+(.*?)\s*$")
HOUR = 3600
MAX_MINUTES = 3660 * minutes.DAY  # The originals have a few weeks.


class Builder(RecordingsBuilder):
    """Reads ``house?.*`` of homes A to E and ``Ordonez?_*.txt`` of homes A and B."""

    name = "smart_homes"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per stretch of an activity, by home and time."""
        for subject, (events, activities) in enumerate(homes(source)):
            origin = minutes.day_begun(activities.start.min())
            until = minutes.day_begun(activities.end.max() - 1)
            count = (until - origin) // minutes.MINUTE + minutes.DAY
            if count > MAX_MINUTES:
                raise ValueError(
                    f"home {DATASET.attributes['subject'][subject]} must have at most "
                    f"{MAX_MINUTES // minutes.DAY} days of activities, got "
                    f"{count // minutes.DAY}; its file is damaged, download it again."
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
    """Yields sensor intervals and activities of each home, in order of subjects."""
    tables = {m.groups(): content for m, content in read_each(source, TABLES)}
    for home in HOUSES:
        parts = {part: text for (name, part), text in tables.items() if name == home}
        yield read_house(home, parts)
    texts = {m.groups(): content for m, content in read_each(source, TEXTS)}
    for home in ORDONEZ:
        yield read_ordonez(home, texts[home, "Sensors"], texts[home, "ADLs"])


def read_house(home: str, parts: dict[str, bytes]) -> tuple[Spans, Spans]:
    """Reads a home of van Kasteren or MIT: start, length and number in each row.

    Drops sensors without a name.
    """
    spans = []
    for part, index_of in (("sensor", type_of), ("activity", class_of)):
        names = {}
        for line in parts[f"{part}_names"].decode("utf-8-sig").splitlines():
            number, _, name = line.partition("\t")
            names[int(number)] = index_of(home, name)
        file = {"sensor": "sensors", "activity": "activities"}[part]
        table = read_table(f"house{home}.{file}", parts[file])
        table = table[np.isin(table[:, 2], list(names))]
        kinds = np.array([names[number] for number in table[:, 2].tolist()], np.int64)
        spans.append(_spans(table[:, 0], table[:, 0] + table[:, 1], kinds))
    return spans[0], spans[1]


def read_table(name: str, content: bytes) -> np.ndarray:
    """Parses ``int64[rows, 3]``; raises ValueError if the file is damaged."""
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
            f"{name} must hold start, length and number per row, but is truncated or "
            f"damaged ({error}); download it again."
        ) from error
    return table


def read_ordonez(home: str, sensors: bytes, activities: bytes) -> tuple[Spans, Spans]:
    """Reads a home of Ordonez: start, end, and sensor, type and room or activity."""
    name = f"Ordonez {home}"
    events = []
    for start, end, rest in read_rows(f"Ordonez{home}_Sensors.txt", sensors):
        sensor, _, room = rest.split()
        events.append((start, end, type_of(name, f"{sensor} {room}")))
    acts = []
    for start, end, rest in read_rows(f"Ordonez{home}_ADLs.txt", activities):
        acts.append((start, end, class_of(name, rest)))
    events, acts = (np.array(rows, np.int64).T for rows in (events, acts))
    return _spans(*events), _spans(*acts)


def read_rows(name: str, content: bytes):
    """Parses start and end in seconds and the rest of each row after the header.

    Three rows of the data have an end before the start, because the hour or day is
    mistyped. Their end keeps minutes and seconds, within an hour after the start.
    """
    lines = content.decode("utf-8-sig").splitlines()[2:]
    rows = []
    for number, line in enumerate(lines, 3):
        if not line.strip():
            continue
        try:
            if (match := ROW.match(line)) is None:
                raise ValueError("a field is missing")
            start, end = (_seconds(match.group(part)) for part in (1, 2))
        except ValueError as error:
            raise ValueError(
                f"{name}, line {number}, must hold start, end and name, got {line!r} "
                f"({error}); the file is truncated or damaged, download it again."
            ) from error
        if end < start:
            end = start + (end - start) % HOUR
        rows.append((start, end, match.group(3)))
    if not rows:
        raise ValueError(f"{name} is truncated, it has no rows; download it again.")
    return rows


def _seconds(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text)
    return int(moment.replace(tzinfo=datetime.UTC).timestamp())


def _spans(start, end, kinds) -> Spans:
    """Returns intervals of at least a second, so that no event is lost."""
    return Spans(start, np.maximum(end, start + 1), kinds)
