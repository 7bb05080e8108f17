"""Tokens of sensor events, one per sensor and value, the same in all homes."""

import math
import re
from typing import NamedTuple

NOTHING = 0  # Padding before a sequence that is shorter than a window.


class Kind(NamedTuple):
    """Sensors with a common prefix, numbered 1 to ``most``, and their values."""

    prefix: str
    most: int
    words: tuple[str, ...]


DEGREES = tuple(
    str(degree) for degree in range(10, 41)
)  # Celsius, clipped at the ends.
# Motion, doors and temperature come first: only these are used in FedAIoT.
KINDS = (
    Kind("M", 64, ("ON", "OFF")),
    Kind("D", 32, ("OPEN", "CLOSE")),
    Kind("T", 8, DEGREES),
    Kind("I", 16, ("PRESENT", "ABSENT")),
    Kind("L", 16, ("ON", "OFF")),
)
FIRST = [1]  # First token of each kind, and of the other sensors.
for _kind in KINDS:
    FIRST.append(FIRST[-1] + _kind.most * len(_kind.words))
# Other sensors have one token each, regardless of the value.
OTHERS = ("AD1-A", "AD1-B", "AD1-C", "asterisk", "anything else")
MOTION_DOORS_TEMPERATURE = FIRST[3]  # Smaller tokens are of these three kinds.
COUNT = FIRST[-1] + len(OTHERS)
NAME = re.compile(r"([A-Z])(\d+)$")


def token(sensor: str, word: str) -> int:
    """Returns the token of an event, from 1 to ``COUNT - 1``.

    Temperatures are rounded to degrees and clipped to 10 to 40. Unknown sensors and
    unknown values share the last token.

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
            value = _degree(word) if prefix == "T" else word
            if value in kind.words:
                return first + (number - 1) * len(kind.words) + kind.words.index(value)
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
