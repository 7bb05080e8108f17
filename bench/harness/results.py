"""Rows and answers as files: kept, so that a benchmark goes on, and read by name."""

import functools
import json
import math
import time
import traceback

from jaxanon.datasets import writing

# What tells answers apart; a row has some of them.
NAMES = (
    *("question", "application", "place", "choice", "system", "form"),
    *("name", "x", "seed", "clients", "epsilon", "model"),
    *("kind", "dataset", "case", "of"),
)


def keep(path, found):
    """Writes what was found as JSON, whole or not at all."""
    writing.write(path, json.dumps(found))


def kept(path):
    """What a file holds, no rows where there is none."""
    return json.loads(path.read_text()) if path.is_file() else []


def answers(folder, questions) -> list[dict]:
    """Every answer to some questions, each a file below ``folder/question``."""
    of = [sorted((folder / question).glob("*.json")) for question in questions]
    return [json.loads(path.read_text()) for paths in of for path in paths]


def plain(name) -> str:
    """A name as that of a file.

    Example:
      >>> plain("Homes' energy"), plain("10 % lost"), plain("Blinder, guided")
      ('Homes_energy', '10_percent_lost', 'Blinder_guided')
    """
    plainer = name.replace(",", "").replace("'", "").replace("%", "percent")
    return plainer.replace(" ", "_")


def file_name(*parts) -> str:
    """Of an answer, by what tells it from others; what is None is left out.

    Example:
      >>> file_name("Atlas, no noise", None, 0)
      'Atlas_no_noise-0.json'
    """
    told = (plain(str(part)) for part in parts if part is not None)
    return f"{'-'.join(told)}.json"


def go_through(jobs, end, again=True) -> list:
    """Does what is to be done, until ``end`` (of ``time.monotonic``).

    One that fails must not cost the others their hours: it is told, and left out.

    Args:
      jobs: ``(name, function)`` each.
      end: when nothing new is begun.
      again: whether what has a name that failed is tried.

    Returns:
      Names of what failed.
    """
    failed = []
    for name, do in jobs:
        if time.monotonic() > end:
            break
        if name in failed and not again:
            continue
        try:
            do()
        except Exception:
            failed.append(name)
            traceback.print_exc()
    return failed


def stop_if(failed):
    """Ends the program by what failed, if anything did."""
    if failed:
        raise SystemExit(f"failed, and left out: {failed}")


def with_earlier(args, rows):
    """The rows, after those in the file ``--json`` that none of them stands in for.

    Data that are not at hand, or a folder that is new, so cost no earlier answer. What
    ``--smoke`` finds stands beside nothing.
    """
    if args.smoke or args.json is None or not args.json.is_file():
        return rows
    # As text, for an x may be a pair of classes, which JSON has as a list.
    named = lambda row: json.dumps([row.get(name) for name in NAMES])
    anew = {named(row) for row in rows}
    return [*(row for row in kept(args.json) if named(row) not in anew), *rows]


class Rows:
    """One file of rows. A class, for tables look up many figures in one of them."""

    def __init__(self, results, name):
        self.rows = read(results / f"{name}.json")

    def _of(self, name, shapes):
        named = (row for row in self.rows if row["name"] == name)
        return [row for row in named if shapes in row["shapes"]]

    def row(self, name, shapes=""):
        """The one row of a name whose shapes hold a text.

        Raises:
          LookupError: if there is none, or more than one.
        """
        found = self._of(name, shapes)
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows {name!r} of shapes {shapes!r}.")
        return found[0]

    def has(self, name, shapes=""):
        """Whether there is such a row."""
        return bool(self._of(name, shapes))

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
