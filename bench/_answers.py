"""Answers that a benchmark keeps, so that it can go on where it was stopped."""

import json

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
    earlier = json.loads(args.json.read_text())
    return [*(row for row in earlier if named(row) not in anew), *rows]
