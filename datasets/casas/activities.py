"""Division of annotated events into sequences of one activity each."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Classes and their annotations, without the resident's number.
ACTIVITIES = {
    "work": "work,work in office,desk activity,"
    "chores,housekeeping,clean,cleaning,laundry",
    "take medicine": "take medicine,morning meds,eve meds",
    "sleep": "sleep,sleeping,sleeping not in bed",
    "leave home": "leave home",
    "enter home": "enter home",
    "eat": "eat,eating,breakfast,lunch,dinner,dining rm activity",
    "cook": "cook,cooking,kitchen activity,meal preparation",
    "bed to toilet": "bed to toilet,bed toilet transition",
    "bathe": "bathing,shower,master bathroom,guest bathroom",
    "personal hygiene": "personal hygiene,grooming",
    "relax": "relax,read,watch tv",
    "other": "",
}
OTHER = len(ACTIVITIES) - 1
_CLASSES = {
    name: index
    for index, names in enumerate(ACTIVITIES.values())
    for name in names.split(",")
}
# Kyoto1 has a file per task: telephone, washing hands, cooking, eating, the dishes.
TASKS = (OTHER, OTHER, *(_CLASSES[name] for name in ("cook", "eat", "clean")))
NOTE = re.compile(r"(.*?)[\s=]*\"?(begin|end)\"?$", re.IGNORECASE)
RESIDENT = re.compile(r"^r\d+ ")


class Event(NamedTuple):
    """A sensor event with its annotation."""

    second: float  # seconds since 1970 on the home's clock
    token: int
    note: str


def class_of(note: str) -> int:
    """Returns the index of an annotation in ``ACTIVITIES``; ``OTHER`` if unknown.

    Example:
      >>> list(ACTIVITIES)[class_of("R2_Meal_Preparation")]
      'cook'
    """
    name = re.sub(r"[\s_]+", " ", note.strip().lower())
    return _CLASSES.get(RESIDENT.sub("", name), OTHER)


def sequences(events: Iterable[Event], days) -> Iterator[tuple[int, int, list[int]]]:
    """Groups consecutive events of one activity and one day.

    An event belongs to the most recently begun activity that has not ended, including
    the events that begin and end it. Without one, its class is ``OTHER``. Each event is
    therefore in exactly one sequence. A new day ends all activities.

    Args:
      events: events in order of time.
      days: function from seconds to the number of the day.

    Yields:
      ``(day, class, tokens)``.
    """
    active, sequence = [], []
    current_day, current = 0, ""
    for event in events:
        day = days(event.second)
        if day != current_day:
            active = []
        match = NOTE.match(event.note)
        name, change = ("", "") if match is None else match.group(1, 2)
        change = change.lower()
        if change == "begin":
            active = [*(other for other in active if other != name), name]
        activity = active[-1] if active else ""
        if (day, activity) != (current_day, current):
            if sequence:
                yield current_day, class_of(current), sequence
            current_day, current, sequence = day, activity, []
        sequence.append(event.token)
        if change == "end":
            active = [other for other in active if other != name]
    if sequence:
        yield current_day, class_of(current), sequence
