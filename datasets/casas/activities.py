"""Annotated events divided into sequences of one activity each."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Classes, and the annotations that are of each, without the resident's number.
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
# Kyoto1 has a file for each task: telephone, hands, oatmeal, eating it, the dishes.
TASKS = (OTHER, OTHER, *(_CLASSES[name] for name in ("cook", "eat", "clean")))
NOTE = re.compile(r"(.*?)[\s=]*\"?(begin|end)\"?$", re.IGNORECASE)
RESIDENT = re.compile(r"^r\d+ ")


class Event(NamedTuple):
    """What a sensor said, when, and what was noted beside it."""

    second: float  # Since 1970, of the home's own clock.
    token: int
    note: str


def class_of(note: str) -> int:
    """Index in ``ACTIVITIES`` of an annotation; ``OTHER`` for one that is of none.

    Example:
      >>> list(ACTIVITIES)[class_of("R2_Meal_Preparation")]
      'cook'
    """
    name = re.sub(r"[\s_]+", " ", note.strip().lower())
    return _CLASSES.get(RESIDENT.sub("", name), OTHER)


def sequences(events: Iterable[Event], days) -> Iterator[tuple[int, int, list[int]]]:
    """Events in a row of one activity of one day.

    An event is of the activity that began last of those that have begun and not ended,
    those that begin and end it included; where there is none it is of class ``OTHER``.
    So every event is in one sequence. A new day ends all that was going on.

    Args:
      events: in the order in which they came.
      days: ``days(second)`` is the number of the day.

    Yields:
      ``(day, class, tokens)``.
    """
    going, sequence = [], []
    today, doing = 0, ""
    for event in events:
        day = days(event.second)
        if day != today:
            going = []
        match = NOTE.match(event.note)
        name, what = ("", "") if match is None else match.group(1, 2)
        what = what.lower()
        if what == "begin":
            going = [*(other for other in going if other != name), name]
        of = going[-1] if going else ""
        if (day, of) != (today, doing):
            if sequence:
                yield today, class_of(doing), sequence
            today, doing, sequence = day, of, []
        sequence.append(event.token)
        if what == "end":
            going = [other for other in going if other != name]
    if sequence:
        yield today, class_of(doing), sequence
