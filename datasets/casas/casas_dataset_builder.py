"""The TFDS builder of the CASAS homes."""

import datetime
import re
from pathlib import Path

import numpy as np
from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.casas.activities import TASKS, Event, sequences
from jaxanon.datasets.casas.description import DATASET
from jaxanon.datasets.casas.location import FILES, HOMES
from jaxanon.datasets.casas.tokens import token
from jaxanon.datasets.sources import read_each

DAY = 86400  # s
NOON = 12 * 3600  # A day begins at noon: what is done at night is of one day.
MOST_DAMAGED = 0.01  # Of the lines of a file; the originals have a few.


class Builder(RecordingsBuilder):
    """Reads ``<home>/data``, and of Kyoto1 ``p<person>.t<task>`` as well."""

    name = "casas"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = 1

    def recordings(self, source: tuple[Path, ...]):
        """One per sequence, by home and time; the trial is the day from noon on."""
        found = {home: [] for home in HOMES}
        for match, content in read_each(source, FILES):
            home = next(
                home
                for home, names in HOMES.items()
                if re.fullmatch(names, match.group(1))
            )
            events = read_events(match.string, content)
            if match.group(2) is None:
                found[home] += sequences(events, day_of)
            else:  # One task from beginning to end.
                label = TASKS[int(match.group(2)) - 1]
                numbers = [event.token for event in events]
                found[home].append((day_of(events[0].second), label, numbers))
        for subject, of_home in enumerate(found.values()):
            of_home.sort(key=lambda sequence: sequence[0])
            for day, label, numbers in of_home:
                rows = np.array(numbers, np.float32)[:, None]
                yield rows, day, {"activity": label, "subject": subject}


def day_of(second: float) -> int:
    """Number of the day, from noon to noon, since 1970."""
    return int((second - NOON) // DAY)


def read_events(name: str, content: bytes) -> list[Event]:
    """The events of a file: date, time, sensor, what it says and perhaps a note."""
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
    if not events or len(damaged) > MOST_DAMAGED * len(lines):
        where, line = damaged[0] if damaged else (0, "")
        raise ValueError(
            f"{name} has {len(events)} lines of date, time, sensor and value and "
            f"{len(damaged)} others, line {where} the first: {line!r}; it is truncated "
            "or damaged, get it anew."
        )
    return events
