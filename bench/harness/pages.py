"""Tables in Markdown, HTML pages and figures of rows."""

import functools
import json
import re
from collections.abc import Callable
from html import escape
from typing import NamedTuple

from jaxanon.report.figures import grid, picture
from jaxanon.report.page import document, figure, section
from jaxanon.report.page import table as html_table

COLUMNS = 3
NONE: dict = {}
GREY = "#767676"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DOTTED = {"color": GREY, "ls": ":", "lw": 1}


def table(head, lines) -> str:
    """Returns a Markdown table; empty without lines.

    Example:
      >>> print(table(("name", "value"), [("a", 1)]))
      | name | value |
      | --- | --- |
      | a | 1 |
    """
    lines = list(lines)
    if not lines:
        return ""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def columns_table(groups, columns) -> str:
    """Returns a table with a line per group and a cell per ``{head: group -> cell}``.

    Example:
      >>> print(columns_table([[1, 2], [5]], {"first": min, "number": len}))
      | first | number |
      | --- | --- |
      | 1 | 2 |
      | 5 | 1 |
    """
    lines = [[cell(group) for cell in columns.values()] for group in groups]
    return table(list(columns), lines)


def html(markdown, kinds=NONE) -> str:
    """Converts the output of ``table`` to HTML; ``kinds`` maps cell text to classes."""
    if not markdown:
        return ""
    head, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.splitlines()
    )
    marked = lambda cell: (cell, kinds[cell]) if cell in kinds else cell
    return html_table(head, [[marked(cell) for cell in line] for line in lines])


class Section(NamedTuple):
    """A section of a page."""

    title: str
    text: tuple[str, ...] = ()  # paragraphs
    table: str = ""  # in Markdown
    pictures: dict[str, Callable] = NONE  # file name suffix: () -> Picture | None
    points: tuple[str, ...] = ()  # list items
    more: str = ""  # HTML that the Markdown version omits
    kinds: dict[str, str] = NONE  # CSS classes by the text of a cell

    def markdown(self) -> str:
        """Returns the section without its pictures; empty if it has only pictures."""
        points = "\n".join(f"- {point}" for point in self.points)
        parts = [part for part in (*self.text, self.table, points) if part]
        return "\n\n".join([f"## {self.title}", *parts]) if parts else ""

    def html(self) -> str:
        """Returns the section without its pictures."""
        emphasised = lambda text: re.sub(r"\*(.+?)\*", r"<em>\1</em>", escape(text))
        text = "".join(f"<p>{emphasised(text)}</p>" for text in self.text)
        points = "".join(f"<li>{escape(point)}</li>" for point in self.points)
        points = f"<ul>{points}</ul>" if points else ""
        return text + html(self.table, self.kinds) + points + self.more


class Page(NamedTuple):
    """The title, sections and style of a benchmark's page."""

    title: str
    sections: Callable  # rows -> list[Section]
    style: str = ""  # HTML before the sections
    indent: int | None = 1  # of the rows' JSON

    def markdown(self, rows) -> str:
        """Returns all sections, separated by blank lines."""
        parts = (one.markdown() for one in self.sections(rows))
        return "\n\n".join(filter(None, parts)) + "\n"

    def write(self, path, rows):
        """Writes ``path``, its .md and .html versions, and a .png per picture."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows, indent=self.indent) + "\n")
        path.with_suffix(".md").write_text(self.markdown(rows))
        parts = [self.style]
        for one in self.sections(rows):
            inside = ""
            for name, draw in one.pictures.items():
                drawn = draw()
                if drawn is None:
                    continue
                file = "_".join(filter(None, (path.stem, name)))
                path.with_name(f"{file}.png").write_bytes(drawn.png)
                inside += figure(name or path.stem, drawn)
            parts.append(section(one.title, inside + one.html()))
        whole = document(self.title, "jaxanon benchmark", "".join(parts))
        path.with_suffix(".html").write_text(whole)


class Question(NamedTuple):
    """A question of a chapter, with the table and figures that answer it."""

    title: str
    table: Callable  # rows -> Markdown
    figures: dict[str, Callable] = NONE  # name -> (rows -> picture, or None)


def by(rows, name) -> dict:
    """Groups rows by their value of ``name``, in order of appearance.

    Example:
      >>> by([{"x": 2}, {"x": 1}, {"x": 2}], "x")
      {2: [{'x': 2}, {'x': 2}], 1: [{'x': 1}]}
    """
    found = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def asked(rows, name) -> list[dict]:
    """Returns the rows that answer a question."""
    return [row for row in rows if row["question"] == name]


def answered(questions, rows, own=asked) -> list[Section]:
    """Returns a section for each ``{name: Question}`` that has rows."""
    found = []
    for name, question in questions.items():
        if answers := own(rows, name):
            pictures = {
                what: functools.partial(draw, answers)
                for what, draw in question.figures.items()
            }
            made = question.table(answers)
            found.append(Section(question.title, table=made, pictures=pictures))
    return found


def chapter(title, goals, paper, questions, own=asked) -> Page:
    """Returns a page with the requirements, the chapter's results and all questions.

    Args:
      title: title of the page.
      goals: ``rows -> Markdown`` table of requirements.
      paper: text on the chapter's results.
      questions, own: arguments of ``answered``.
    """
    return Page(
        title,
        lambda rows: [
            Section("Requirements", table=goals(rows)),
            Section("Comparison with the chapter", (paper,)),
            *answered(questions, rows, own),
        ],
    )


def panels(names, width=4.4, height=3.3):
    """Returns ``(figure, {name: axis})`` with three panels per row."""
    across = min(COLUMNS, len(names))
    drawn, axes = grid(-(-len(names) // across), across, width, height)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    found = dict(zip(names, axes.flat, strict=False))
    for name, axis in found.items():
        axis.set_title(name, fontsize=9)
        axis.grid(alpha=0.25, lw=0.5)
    return drawn, found


def label(axis, x, y, size=8):
    """Labels both axes."""
    axis.set_xlabel(x, fontsize=size)
    axis.set_ylabel(y, fontsize=size)


def with_legend(drawn, axes, caption, columns=3):
    """Returns the picture with the first panel's legend below it."""
    handles, names = next(iter(axes.values())).get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8)
    return picture(drawn, caption)
