"""Tables of the README and the docs, from measured rows: python bench readme [--check].

Rewrites every table between ``<!-- table: NAME -->`` and ``<!-- end of table -->`` in
``README.md`` and in the pages below ``docs``, from the rows in ``bench/results``. With
``--check`` it writes nothing and names the tables that differ from the rows.
"""

import argparse
import pathlib
import re

from readme import front_door, learning, privacy, speed

TABLES = front_door.TABLES | privacy.TABLES | learning.TABLES | speed.TABLES
ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
BLOCK = re.compile(r"(<!-- table: (.+?) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)


def main():
    """Writes the pages, or names their outdated tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    count, outdated = 0, []
    for page in pages(ROOT):
        text = page.read_text(encoding="utf-8")
        new, old = filled(text, RESULTS)
        count += len(BLOCK.findall(text))
        outdated += [f"{page.relative_to(ROOT)}: {name}" for name in old]
        if old and not check:
            page.write_text(new, encoding="utf-8")
    if outdated and check:
        raise SystemExit(
            f"outdated: {', '.join(outdated)}; run python bench readme to update them."
        )
    print(f"{count} tables, of which {len(outdated)} were outdated")


def pages(root):
    """Returns README.md and the Markdown pages below docs that have such tables."""
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [path for path in paths if BLOCK.search(path.read_text(encoding="utf-8"))]


def filled(text, results):
    """Returns the text with current tables, and the names of the outdated ones.

    Raises:
      ValueError: if the text names a table that no function makes.
    """
    unknown = sorted({name for _, name, _, _ in BLOCK.findall(text)} - set(TABLES))
    if unknown:
        raise ValueError(
            f"tables must be among {sorted(TABLES)}, got {unknown}; add a function to "
            "bench/readme."
        )
    old = []

    def current(match):
        before, name, table, after = match.groups()
        new = f"\n{TABLES[name](results)}\n\n"
        if new != table:
            old.append(name)
        return f"{before}{new}{after}"

    return BLOCK.sub(current, text), old
