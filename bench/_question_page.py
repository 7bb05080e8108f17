"""Answers to a chapter's questions as tables, a page and figures."""

import json
from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

import _markdown

from jaxanon.report.figures import grid
from jaxanon.report.page import document, figure, section

COLUMNS = 3


class Page(NamedTuple):
    """What differs from one chapter to the next."""

    title: str
    tables: Any  # a module with PAPER, TITLES by question, and every(rows)
    goals: Any  # a module with table(rows)
    figures: dict[str, dict[str, Callable]]  # of a question: name -> rows -> picture


def markdown(page, rows) -> str:
    """All tables, with their titles."""
    every = page.tables.every(rows).items()
    parts = [f"## {page.tables.TITLES[q]}\n\n{table}" for q, table in every]
    reach = f"## Must reach\n\n{page.goals.table(rows)}"
    return "\n\n".join([reach, page.tables.PAPER, *parts]) + "\n"


def write(page, path, rows):
    """``path`` itself, and beside it .md, .html and a .png for each figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(page, rows))
    parts = [
        section("Must reach", _markdown.html(page.goals.table(rows))),
        section("Beside the chapter", f"<p>{escape(page.tables.PAPER)}</p>"),
    ]
    for question, table in page.tables.every(rows).items():
        own = [row for row in rows if row["question"] == question]
        shown = ""
        for name, draw in page.figures.get(question, {}).items():
            drawn = draw(own)
            if drawn is None:
                continue
            path.with_name(f"{path.stem}_{name}.png").write_bytes(drawn.png)
            shown += figure(name, drawn)
        below = shown + _markdown.html(table)
        parts.append(section(page.tables.TITLES[question], below))
    whole = document(page.title, "jaxanon benchmark", "".join(parts))
    path.with_suffix(".html").write_text(whole)


def panels(names, width, height):
    """``(figure, {name: axis})``, three in a row."""
    across = min(COLUMNS, len(names))
    drawn, axes = grid(-(-len(names) // across), across, width, height)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    found = dict(zip(names, axes.flat, strict=False))
    for name, axis in found.items():
        axis.set_title(name, fontsize=9)
        axis.grid(alpha=0.25, lw=0.5)
    return drawn, found
