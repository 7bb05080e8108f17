"""Rows of the table that other seeds were measured for, put together."""

import json
import math

# Of these a row has a mean and a deviation over its seeds.
PAIRS = (
    *("public_accuracy", "public_accuracy_raw", "public_macro_f1"),
    *("private_accuracy", "private_balanced_accuracy", "chance", "majority"),
    *("warping", "information_nats"),
)

EXPERIMENT = "method", "settings", "epochs", "windows"


def alike(old, new) -> bool:
    """Whether rows are of the same experiment, whatever their seeds."""
    read = lambda row: json.loads(json.dumps([row.get(name) for name in EXPERIMENT]))
    return read(old) == read(new)


def pooled(old, new) -> dict:
    """Two rows of the same system as one over all their seeds.

    Means and sample deviations are what they would be of all seeds at once. Of what is
    the worst of several attackers it is the mean of either row's worst one, without a
    deviation where that was not the same one. What one row alone has stays as it is, of
    that row's seeds.

    Args:
      old, new: rows that have no seed in common; ``new`` says when and how.
    """
    counts = len(old["seeds"]), len(new["seeds"])
    pair = lambda one, other: pool(*counts, one, other)
    found = old | new
    found["seeds"] = sorted(old["seeds"] + new["seeds"])
    for name in PAIRS:
        found |= _both(pair, old, new, name)
    for name in ("retrained_accuracy", "retrained_balanced"):
        found[name] = _merged(pair, old.get(name, {}), new[name])
    attackers = found["retrained_balanced"]
    found["worst"] = max(attackers, key=lambda name: attackers[name][0], default=None)
    worst = lambda one, other: _worst(counts, one, other)
    found["attacks"] = _merged(worst, old["attacks"], new["attacks"])
    figures = lambda one, other: _merged(pair, one, other)
    found["figures"] = _merged(figures, old.get("figures", {}), new.get("figures", {}))
    found |= _both(lambda one, other: _linked(pair, one, other), old, new, "linkage")
    add = lambda one, other: _merged(lambda a, b: a + b, one, other)
    found["seconds"] = _merged(add, old["seconds"], new["seconds"])
    return found


def pool(count, other_count, one, other) -> list:
    """``[mean, deviation]`` of two groups, of each of which that is known.

    Example:
      Of 1 and 3, and of 5:

      >>> pool(2, 1, [2.0, 2**0.5], [5.0, None])
      [3.0, 2.0]
    """
    total = count + other_count
    mean = (count * one[0] + other_count * other[0]) / total
    squares = count * (one[0] - mean) ** 2 + other_count * (other[0] - mean) ** 2
    for size, (_, deviation) in ((count, one), (other_count, other)):
        squares += (size - 1) * (deviation or 0.0) ** 2
    return [mean, math.sqrt(squares / (total - 1))]


def _both(join, old, new, name) -> dict:
    """A figure of both rows joined, that of either as it is, or nothing."""
    known = [row[name] for row in (old, new) if row.get(name) is not None]
    if not known:
        return {}
    return {name: join(*known) if len(known) == 2 else known[0]}


def _merged(join, old, new) -> dict:
    shared = {name: join(old[name], new[name]) for name in old if name in new}
    return old | new | shared


def _worst(counts, one, other) -> dict:
    """What the worst attackers of either row come to."""
    numbers = lambda row: {k: v for k, v in row.items() if k != "attacker"}
    mean = lambda a, b: (counts[0] * a + counts[1] * b) / sum(counts)
    found = _merged(mean, numbers(one), numbers(other))
    return found | {"attacker": _names(one, other)}


def _linked(pair, one, other) -> dict:
    kinds = ("accuracy", "balanced_accuracy", "chance")
    told = {name: pair(one[name], other[name]) for name in kinds}
    if one["attacker"] != other["attacker"]:
        told = {name: [mean, None] for name, (mean, _) in told.items()}
    return one | told | {"attacker": _names(one, other)}


def _names(*rows) -> str:
    """Attackers, where it was not the same one every time."""
    names = [name for row in rows for name in row["attacker"].split(" or ")]
    return " or ".join(dict.fromkeys(names))
