"""TFDS builder of the CASAS homes."""

import datetime
import re
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.casas.activities import TASKS, Event, sequences
from jaxanon.datasets.casas.description import DATASET
from jaxanon.datasets.casas.location import FILES, HOMES
from jaxanon.datasets.casas.tokens import token
from jaxanon.datasets.sources import read_each

DAY = 86400  # s
NOON = 12 * 3600  # A day begins at noon, so that a night belongs to one day.
MAX_DAMAGED = 0.01  # Fraction of the lines of a file; the originals have a few.


class Builder(RecordingsBuilder):
    """Reads ``<home>/data``, for Kyoto1 also ``p<person>.t<task>``."""

    name = "casas"
    dataset = DATASET
    num_channels = 1

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per sequence, by home and time; the trial is the day."""
        by_home = {home: [] for home in HOMES}
        for match, content in read_each(source, FILES):
            home = next(
                home
                for home, names in HOMES.items()
                if re.fullmatch(names, match.group(1))
            )
            events = read_events(match.string, content)
            if match.group(2) is None:
                by_home[home] += sequences(events, day_of)
            else:  # A file of one task.
                label = TASKS[int(match.group(2)) - 1]
                numbers = [event.token for event in events]
                by_home[home].append((day_of(events[0].second), label, numbers))
        for subject, home_sequences in enumerate(by_home.values()):
            home_sequences.sort(key=lambda sequence: sequence[0])
            for day, label, numbers in home_sequences:
                rows = np.array(numbers, np.float32)[:, None]
                yield rows, day, {"activity": label, "subject": subject}


def day_of(second: float) -> int:
    """Returns the number of the day, from noon to noon, since 1970."""
    return int((second - NOON) // DAY)


def read_events(name: str, content: bytes) -> list[Event]:
    """Parses events: date, time, sensor, value and optional annotation."""
    events, damaged = [], []
    lines = content.decode("utf-8-sig", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        parts = line.replace(",", " ").split(maxsplit=4)
        if not parts:
            continue
        try:
            date, time, sensor, word = parts[:4]
            moment = datetime.datetime.fromisoformat(f"{date} {time}")
        except ValueError:
            damaged.append((number, line))
            continue
        second = moment.replace(tzinfo=datetime.UTC).timestamp()
        note = parts[4].strip() if len(parts) > 4 else ""
        events.append(Event(second, token(sensor, word), note))
    if not events or len(damaged) > MAX_DAMAGED * len(lines):
        where, line = damaged[0] if damaged else (0, "")
        raise ValueError(
            f"{name} must hold lines of date, time, sensor and value, got "
            f"{len(events)} of them and {len(damaged)} others, first line {where}: "
            f"{line!r}; it is truncated or damaged, download it again."
        )
    return events
