"""Rows of ``bench/results`` by what they are called."""

import functools
import json
import math


class Rows:
    """One file of rows. A class, for tables look up many figures in one of them."""

    def __init__(self, results, name):
        self.rows = read(results / f"{name}.json")

    def row(self, name, shapes=""):
        """The one row of a name whose shapes hold a text.

        Raises:
          LookupError: if there is none, or more than one.
        """
        found = [
            row for row in self.rows if row["name"] == name and shapes in row["shapes"]
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows {name!r} of shapes {shapes!r}.")
        return found[0]

    def has(self, name, shapes=""):
        """Whether there is such a row."""
        return any(row["name"] == name and shapes in row["shapes"] for row in self.rows)

    def value(self, name, shapes=""):
        """What it measured."""
        return self.row(name, shapes)["value"]

    def spread(self, name, digits=2):
        """It with its deviation over seeds, where it has one."""
        row = self.row(name)
        more = f" ± {row['std']:.{digits}f}" if row.get("std", 0) > 0.005 else ""
        return f"{row['value']:.{digits}f}{more}"

    def products(self, name, shapes=""):
        """The share of the rate of products, in %."""
        return f"{100 * self.row(name, shapes)['share_of_matmul_rate']:.0f} %"


@functools.cache
def read(path):
    """All rows of a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def figures(value, digits=3) -> str:
    """A number in so many figures, thousands apart.

    Example:
      >>> figures(1234.5), figures(0.98765), figures(12.0)
      ('1,234', '0.988', '12.0')
    """
    if not value:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"
