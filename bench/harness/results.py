"""Files of rows and answers, saved so that a benchmark can resume."""

import functools
import json
import math
import time
import traceback

from jaxanon.datasets import writing

# Fields that identify an answer; a row has some of them.
NAMES = (
    *("question", "application", "place", "choice", "system", "form"),
    *("name", "x", "seed", "clients", "epsilon", "model"),
    *("kind", "dataset", "case", "of"),
)


def keep(path, found):
    """Writes results as JSON atomically."""
    writing.write(path, json.dumps(found))


def kept(path):
    """Returns the content of a JSON file, or no rows if it does not exist."""
    return json.loads(path.read_text()) if path.is_file() else []


def answers(folder, questions) -> list[dict]:
    """Returns all answers to the questions; each is a file in ``folder/question``."""
    of = [sorted((folder / question).glob("*.json")) for question in questions]
    return [json.loads(path.read_text()) for paths in of for path in paths]


def plain(name) -> str:
    """Returns a name that is safe as a file name.

    Example:
      >>> plain("Homes' energy"), plain("10 % lost"), plain("Blinder, guided")
      ('Homes_energy', '10_percent_lost', 'Blinder_guided')
    """
    plainer = name.replace(",", "").replace("'", "").replace("%", "percent")
    return plainer.replace(" ", "_")


def file_name(*parts) -> str:
    """Returns the file name of an answer from its identifying parts, skipping None.

    Example:
      >>> file_name("Atlas, no noise", None, 0)
      'Atlas_no_noise-0.json'
    """
    told = (plain(str(part)) for part in parts if part is not None)
    return f"{'-'.join(told)}.json"


def go_through(jobs, end, again=True) -> list:
    """Runs jobs until ``end`` (on the clock of ``time.monotonic``).

    A job that fails is reported and skipped; the others still run.

    Args:
      jobs: pairs ``(name, function)``.
      end: time after which no new job starts.
      again: whether to run a job whose name has already failed.

    Returns:
      Names of the failed jobs.
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
    """Exits with an error that lists the failed jobs, if any."""
    if failed:
        raise SystemExit(f"failed jobs: {failed}")


def with_earlier(args, rows):
    """Returns earlier rows of the file ``--json`` that are not replaced, then ``rows``.

    Earlier answers are thus kept if data are missing or the folder is new. Rows of
    ``--smoke`` are never merged.
    """
    if args.smoke or args.json is None or not args.json.is_file():
        return rows
    # Compare as text: an x may be a pair of classes, which JSON stores as a list.
    named = lambda row: json.dumps([row.get(name) for name in NAMES])
    anew = {named(row) for row in rows}
    return [*(row for row in kept(args.json) if named(row) not in anew), *rows]


class Rows:
    """Rows of one results file, looked up by name."""

    def __init__(self, results, name):
        self.rows = read(results / f"{name}.json")

    def _of(self, name, shapes):
        named = (row for row in self.rows if row["name"] == name)
        return [row for row in named if shapes in row["shapes"]]

    def row(self, name, shapes=""):
        """Returns the only row with this name whose shapes contain ``shapes``.

        Raises:
          LookupError: if no row or more than one row matches.
        """
        found = self._of(name, shapes)
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows {name!r} of shapes {shapes!r}.")
        return found[0]

    def has(self, name, shapes=""):
        """Returns whether such a row exists."""
        return bool(self._of(name, shapes))

    def value(self, name, shapes=""):
        """Returns the value of the row."""
        return self.row(name, shapes)["value"]

    def spread(self, name, digits=2):
        """Returns the value as text, with its std over seeds if it has one."""
        row = self.row(name)
        more = f" ± {row['std']:.{digits}f}" if row.get("std", 0) > 0.005 else ""
        return f"{row['value']:.{digits}f}{more}"

    def products(self, name, shapes=""):
        """Returns the share of the matrix product rate in percent."""
        return f"{100 * self.row(name, shapes)['share_of_matmul_rate']:.0f} %"


@functools.cache
def read(path):
    """Returns all rows of a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def figures(value, digits=3) -> str:
    """Formats a number with ``digits`` significant digits and thousands separators.

    Example:
      >>> figures(1234.5), figures(0.98765), figures(12.0)
      ('1,234', '0.988', '12.0')
    """
    if not value:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"
