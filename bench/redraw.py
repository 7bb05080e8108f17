"""Redraws tables, figures and the page of results: python bench redraw --json FILE.

``FILE`` is a file of rows in ``bench/results``, such as ``anonymizers.json``; its name
selects the benchmark. The command measures nothing, and rewrites only the files with
another suffix.
"""

import importlib
import json

from harness import timing

NAMES = ("anonymizers", "atlas", "audit", "deeprotect", "pfdrl", "privatehub")


def main():
    """Writes .md, .html and .png files from the rows of ``--json``."""
    args = timing.arguments(__doc__)
    if args.json is None or args.json.stem not in NAMES:
        names = ", ".join(f"{name}.json" for name in NAMES)
        raise SystemExit(f"--json must name one of {names}, got {args.json}.")
    rows = json.loads(args.json.read_text())
    page = importlib.import_module(f"{args.json.stem}.page")
    page.write(args.json, rows)
    print(f"Redrew {len(rows)} rows of {args.json}.")


if __name__ == "__main__":
    main()
