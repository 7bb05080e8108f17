"""Updates README's tables from measured rows: python bench readme [--check].

Rewrites every table of README.md between ``<!-- table: NAME -->`` and ``<!-- end of
table -->`` from the rows in ``bench/results``. ``--check`` only lists outdated tables.
"""

import argparse
import pathlib
import re

from readme import learning, privacy, speed

TABLES = privacy.TABLES | learning.TABLES | speed.TABLES
ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"
RESULTS = ROOT / "bench" / "results"
BLOCK = re.compile(r"(<!-- table: (.+?) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)


def main():
    """Writes README.md, or lists its outdated tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only list old tables")
    text = README.read_text(encoding="utf-8")
    new, old = filled(text, RESULTS)
    if not parser.parse_args().check:
        README.write_text(new, encoding="utf-8")
    elif old:
        raise SystemExit(f"old: {', '.join(old)}; write them by python bench readme.")
    print(f"{len(BLOCK.findall(new))} tables, {len(old)} of them were old")


def filled(text, results):
    """Returns the text with updated tables, and the names of the changed ones.

    Raises:
      ValueError: if text and generators do not have the same tables.
    """
    named = [name for _, name, _, _ in BLOCK.findall(text)]
    if sorted(named) != sorted(TABLES):
        raise ValueError(
            f"README.md has the tables {sorted(named)}, and bench/readme makes "
            f"{sorted(TABLES)}."
        )
    old = []

    def anew(match):
        before, name, table, after = match.groups()
        made = f"\n{TABLES[name](results)}\n\n"
        if made != table:
            old.append(name)
        return f"{before}{made}{after}"

    return BLOCK.sub(anew, text), old
