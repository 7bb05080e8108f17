"""Several reports as one: mean and standard deviation of every figure."""

import math
from collections.abc import Sequence

ABOUT_RUNS = "headline", "costs", "protocol"  # Of a report.


def aggregate(reports: Sequence):
    """Mean and standard deviation, number by number, of reports of one shape.

    Args:
      reports: of ``evaluate``, at least one, alike in keys and lengths.

    Returns:
      The same tree with ``{"mean": m, "std": s}`` for every number, s being the sample
      standard deviation (n - 1; None for a single report) over the reports where the
      number is not None; both are nan where one of them is not finite. Text that is the
      same everywhere stays; text that differs (the worst attacker) becomes the list of
      what each report says.

    Raises:
      ValueError: if there is no report, or they differ in shape.

    Example:
      >>> aggregate([{"accuracy": 0.5}, {"accuracy": 1.0}, {"accuracy": 0.75}])
      {'accuracy': {'mean': 0.75, 'std': 0.25}}
    """
    if not reports:
        raise ValueError("reports is empty: there is nothing to aggregate.")
    return _merge("report", list(reports))


def of_runs(reports: Sequence) -> dict:
    """``aggregate`` of all that reports of several runs have in common.

    Not of ``ABOUT_RUNS``, what is said of one run alone: that it is not done yet, say.

    Args:
      reports: of ``evaluate``, at least one.

    Raises:
      ValueError: as ``aggregate``.

    Example:
      >>> of_runs([{"seed": 1, "headline": []}, {"seed": 3, "headline": ["late"]}])
      {'seed': {'mean': 2.0, 'std': 1.4142135623730951}}
    """
    alike = lambda found: {k: v for k, v in found.items() if k not in ABOUT_RUNS}
    return aggregate([alike(found) for found in reports])


def _merge(where, values):
    first = values[0]
    if all(isinstance(value, dict) for value in values):
        _alike(where, [set(value) for value in values])
        return {k: _merge(f"{where}.{k}", [v[k] for v in values]) for k in first}
    if all(isinstance(value, list) for value in values):
        _alike(where, [len(value) for value in values])
        columns = zip(*values, strict=True)
        return [_merge(f"{where}[{i}]", list(c)) for i, c in enumerate(columns)]
    known = [value for value in values if value is not None]
    if known and all(_number(value) for value in known):
        return _spread(known)
    if any(isinstance(value, (dict, list)) for value in values):
        _alike(where, [type(value).__name__ for value in values])
    return first if all(value == first for value in values) else values


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _spread(values):
    if not all(map(math.isfinite, values)):  # Of runs that diverged.
        return {"mean": math.nan, "std": None if len(values) == 1 else math.nan}
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return {"mean": mean, "std": None}
    squares = math.fsum((value - mean) ** 2 for value in values)
    return {"mean": mean, "std": math.sqrt(squares / (len(values) - 1))}


def _alike(where, shapes):
    if any(shape != shapes[0] for shape in shapes):
        other = next(shape for shape in shapes if shape != shapes[0])
        raise ValueError(
            f"reports differ in {where}: {shapes[0]} and {other}; aggregate reports "
            "of one dataset with the same attackers."
        )
