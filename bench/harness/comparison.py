"""Questions of a chapter and means over seeds for the tables of comparisons."""

import statistics

from harness import timing
from harness.pages import columns_table

HOLDS = {True: "holds", False: "does not hold", None: "not run"}
# Colours of methods in figures; the first is for unchanged data.
COLOURS = ("#767676", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00")
LIMITS = {"<=": float.__le__, ">=": float.__ge__}


def mean(rows, name):
    """Returns the mean over seeds."""
    return statistics.fmean(row[name] for row in rows)


def deviation(values):
    """Returns the standard deviation over seeds; 0 for a single seed."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def spread(values, digits=2):
    """Returns mean and standard deviation over seeds as text."""
    return f"{statistics.fmean(values):.{digits}f} ± {deviation(values):.{digits}f}"


def grouped(rows, names, order) -> list[list[dict]]:
    """Groups sorted rows by their values of ``names``."""
    found = {}
    for row in sorted(rows, key=order):
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return list(found.values())


def kept(rows, name, told):
    """Returns a value as text for the first row that has it; older rows lack some."""
    found = [row[name] for row in rows if name in row]
    return told(found) if found else "not kept"


def first(name):
    """Returns a column for a value that all rows of a group share."""
    return lambda own: own[0][name]


def number(name, form=".2f", scale=1):
    """Returns a column with the mean over seeds."""
    return lambda own: f"{scale * mean(own, name):{form}}"


def percent(name, digits=2):
    """Returns a column with the mean over seeds in percent."""
    return number(name, f".{digits}f", 100)


def speed_table(rows):
    """Returns a table with one row per measured value."""
    cell = lambda name: lambda row: row[name]
    columns = {
        "": cell("name"),
        "measured": lambda row: f"{row['value']:.4g}",
        "unit": cell("unit"),
        "asked for": cell("asked"),
        "of what": cell("what"),
    }
    return columns_table(rows, columns)


def speed_row(name, value, unit, asked, what) -> dict:
    """Returns a row of ``speed_table``; ``asked`` is a sign and a limit, or empty."""
    told = {"question": "speed", "name": name, "value": float(value), "unit": unit}
    return told | {"asked": asked, "what": what, **timing.about()}


def held(row, asked=None):
    """Returns ``(value, whether it holds)`` of a speed row as text."""
    sign, limit = (asked or row["asked"]).split()
    found = f"{row['value']:.4g} {row['unit']} ({row['what']})"
    return found, LIMITS[sign](float(row["value"]), float(limit))
