"""Sensor events as numbers, one for each sensor and what it says, alike in homes."""

import math
import re
from typing import NamedTuple

NOTHING = 0  # What is put before a sequence that is shorter than a window.


class Kind(NamedTuple):
    """Sensors whose names begin alike, ``most`` of them, and the words they say."""

    prefix: str
    most: int
    words: tuple[str, ...]


DEGREES = tuple(str(degree) for degree in range(10, 41))  # Celsius; ends hold the rest.
# Motion, doors and temperature first: they are what FedAIoT reads.
KINDS = (
    Kind("M", 64, ("ON", "OFF")),
    Kind("D", 32, ("OPEN", "CLOSE")),
    Kind("T", 8, DEGREES),
    Kind("I", 16, ("PRESENT", "ABSENT")),
    Kind("L", 16, ("ON", "OFF")),
)
FIRST = [1]  # Number of the first event of each kind, and of what comes after all.
for _kind in KINDS:
    FIRST.append(FIRST[-1] + _kind.most * len(_kind.words))
# Of other sensors, whatever they say.
OTHERS = ("AD1-A", "AD1-B", "AD1-C", "asterisk", "anything else")
MOTION_DOORS_TEMPERATURE = FIRST[3]  # Numbers below it are of these three.
COUNT = FIRST[-1] + len(OTHERS)
NAME = re.compile(r"([A-Z])(\d+)$")


def token(sensor: str, word: str) -> int:
    """The number of an event, in 1 to ``COUNT - 1``.

    Temperatures are rounded to degrees, those below 10 and above 40 are taken for
    these. Events of unknown sensors, and words that a sensor of its kind does not say,
    are of one number, the last.

    Example:
      >>> token("M001", "ON"), token("M001", "OFF"), token("M17", "ON")
      (1, 2, 33)
      >>> token("T002", "21.5") == token("T002", "22") != token("T001", "22")
      True
    """
    name = NAME.match(sensor)
    if name is None:
        return FIRST[-1] + OTHERS.index(sensor if sensor in OTHERS else OTHERS[-1])
    prefix, number = name.group(1), int(name.group(2))
    for first, kind in zip(FIRST, KINDS, strict=False):
        if prefix == kind.prefix and 1 <= number <= kind.most:
            said = _degree(word) if prefix == "T" else word
            if said in kind.words:
                return first + (number - 1) * len(kind.words) + kind.words.index(said)
    return COUNT - 1


def _degree(word: str) -> str:
    try:
        value = float(word)
    except ValueError:
        return word
    low, high = int(DEGREES[0]), int(DEGREES[-1])
    if not math.isfinite(value):
        return word
    return str(math.floor(min(max(value, low), high) + 0.5))
