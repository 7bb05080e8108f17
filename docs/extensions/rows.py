"""Markdown tables, and the measured rows of ``bench``."""

import importlib
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
RESULTS = BENCH / "results"


def table(head, rows) -> str:
    """Returns a Markdown table; cells are escaped."""
    cell = lambda text: str(text).replace("|", "\\|").replace("\n", " ")
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def bench(name: str):
    """Imports a module of ``bench`` by its name."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)
