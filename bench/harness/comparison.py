"""What a chapter asks, and means over seeds, as the comparisons' tables have them."""

import statistics

from harness import timing
from harness.pages import columns_table

HOLDS = {True: "holds", False: "does not hold", None: "not run"}
# Of methods in figures, the first of what nothing is done.
COLOURS = ("#767676", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00")
LIMITS = {"<=": float.__le__, ">=": float.__ge__}


def mean(rows, name):
    """The mean over seeds."""
    return statistics.fmean(row[name] for row in rows)


def deviation(values):
    """Standard deviation over seeds; 0 of one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def spread(values, digits=2):
    """Mean and standard deviation over seeds."""
    return f"{statistics.fmean(values):.{digits}f} ± {deviation(values):.{digits}f}"


def grouped(rows, names, order) -> list[list[dict]]:
    """Rows in an order, those together that have the same values of some names."""
    found = {}
    for row in sorted(rows, key=order):
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return list(found.values())


def kept(rows, name, told):
    """What rows have of a name, told; earlier rows have less than later ones."""
    found = [row[name] for row in rows if name in row]
    return told(found) if found else "not kept"


def first(name):
    """A column: what all rows of a group have."""
    return lambda own: own[0][name]


def number(name, form=".2f", scale=1):
    """A column: the mean over seeds."""
    return lambda own: f"{scale * mean(own, name):{form}}"


def percent(name, digits=2):
    """The same in percent."""
    return number(name, f".{digits}f", 100)


def speed_table(rows):
    """A row a figure."""
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
    """A figure of ``speed_table``; ``asked`` is a sign and a limit, or nothing."""
    told = {"question": "speed", "name": name, "value": float(value), "unit": unit}
    return told | {"asked": asked, "what": what, **timing.about()}


def held(row, asked=None):
    """``(found, holds)`` of such a figure, in words."""
    sign, limit = (asked or row["asked"]).split()
    found = f"{row['value']:.4g} {row['unit']} ({row['what']})"
    return found, LIMITS[sign](float(row["value"]), float(limit))
