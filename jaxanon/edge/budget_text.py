"""What a budget's file says: its size, what was released, and a check of both."""

import fractions
import hashlib
import json
import math

DAMAGE = AttributeError, KeyError, OverflowError, RecursionError, TypeError
FIELDS = "format", "epsilon", "neighbours", "releases"  # That the check is of.
FORMAT = 2
EPSILON, ROUNDS = "epsilon", "rounds"  # Units: a file that names none is of ε.


def exact(value) -> fractions.Fraction:
    """The decimal number that a float is written as: 0.1 is a tenth, three are 0.3."""
    return fractions.Fraction(repr(float(value)))


def total(releases: dict[str, int]) -> fractions.Fraction:
    """ε of all releases together."""
    return sum((exact(name) * n for name, n in releases.items()), fractions.Fraction())


def check(epsilon, name: str) -> None:
    """Raises ValueError unless ``epsilon`` is one that can be spent."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"{name} must be > 0 and finite, got {epsilon!r}.")


def body(
    epsilon, neighbours: str, releases: dict[str, int], unit: str = EPSILON
) -> dict:
    """What a file says, but for its check; ``epsilon`` counts units of ``unit``."""
    values = FORMAT, float(epsilon), neighbours, releases
    named = {} if unit == EPSILON else {"unit": unit}
    return dict(zip(FIELDS, values, strict=True)) | named


def text(told: dict) -> str:
    """A file that says ``told``, and a check by which a bit that flipped is seen."""
    return json.dumps(told | {"check": _digest(told)}, indent=1) + "\n"


def read(written: str) -> dict:
    """What ``text`` wrote.

    Raises:
      ValueError: for what no budget says, be its check right.

    Example:
      >>> read(text(body(1.0, "any two windows", {"0.25": 3})))["releases"]
      {'0.25': 3}
    """
    try:
        told = json.loads(written)
        if told.get("format") != FORMAT and "releases" in told:
            raise ValueError(f"of another version, format {told.get('format')}")
        found = {name: told[name] for name in FIELDS}
        if "unit" in told:
            found["unit"] = told["unit"]
        if told["check"] != _digest(found):
            raise ValueError("its check does not match")
        releases, epsilon = found["releases"], found["epsilon"]
        whole = all(type(n) is int and n >= 0 for n in releases.values())
        kinds = type(epsilon) is float and isinstance(found["neighbours"], str)
        kinds &= found.get("unit", ROUNDS) == ROUNDS
        for each in (epsilon, *map(float, releases)):
            check(each, "epsilon")
        if not (whole and kinds and total(releases) <= exact(epsilon)):
            raise ValueError("its numbers are none of a budget")
    except DAMAGE as error:
        raise ValueError(str(error) or type(error).__name__) from error
    return found


def _digest(told):
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
