"""Means and standard deviations over reports."""

import math
from collections.abc import Sequence

ABOUT_RUNS = "headline", "costs", "protocol", "verdict"  # Keys about a single run.


def aggregate(reports: Sequence):
    """Returns mean and standard deviation of every number in reports.

    Args:
      reports: reports of ``evaluate``, at least one, with equal keys and lengths.

    Returns:
      The same tree with ``{"mean": m, "std": s}`` for every number. The sample standard
      deviation (n - 1; None for a single report) is over reports in which the number is
      not None. Both are nan if a value is not finite. Text that differs between reports
      (the strongest attacker) becomes a list.

    Raises:
      ValueError: if ``reports`` is empty or reports differ in shape.

    Example:
      >>> aggregate([{"accuracy": 0.5}, {"accuracy": 1.0}, {"accuracy": 0.75}])
      {'accuracy': {'mean': 0.75, 'std': 0.25}}
    """
    if not reports:
        raise ValueError("reports must hold at least one report, got none.")
    return _merge("report", list(reports))


def of_runs(reports: Sequence) -> dict:
    """Aggregates reports of several runs, without the keys ``ABOUT_RUNS``.

    Args:
      reports: reports of ``evaluate``, at least one.

    Raises:
      ValueError: see ``aggregate``.

    Example:
      >>> of_runs([{"seed": 1, "headline": []}, {"seed": 3, "headline": ["late"]}])
      {'seed': {'mean': 2.0, 'std': 1.4142135623730951}}
    """
    common = lambda one: {k: v for k, v in one.items() if k not in ABOUT_RUNS}
    return aggregate([common(one) for one in reports])


def _merge(where, values):
    first = values[0]
    if all(isinstance(value, dict) for value in values):
        _check_shapes(where, [set(value) for value in values])
        return {k: _merge(f"{where}.{k}", [v[k] for v in values]) for k in first}
    if all(isinstance(value, list) for value in values):
        _check_shapes(where, [len(value) for value in values])
        columns = zip(*values, strict=True)
        return [_merge(f"{where}[{i}]", list(c)) for i, c in enumerate(columns)]
    known = [value for value in values if value is not None]
    if known and all(_number(value) for value in known):
        return _spread(known)
    if any(isinstance(value, (dict, list)) for value in values):
        _check_shapes(where, [type(value).__name__ for value in values])
    return first if all(value == first for value in values) else values


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _spread(values):
    if not all(map(math.isfinite, values)):  # A run diverged.
        return {"mean": math.nan, "std": None if len(values) == 1 else math.nan}
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return {"mean": mean, "std": None}
    squares = math.fsum((value - mean) ** 2 for value in values)
    return {"mean": mean, "std": math.sqrt(squares / (len(values) - 1))}


def _check_shapes(where, shapes):
    if any(shape != shapes[0] for shape in shapes):
        other = next(shape for shape in shapes if shape != shapes[0])
        raise ValueError(
            f"reports must not differ in {where}, got {shapes[0]} and {other}; use "
            "reports of one dataset with the same attackers."
        )
