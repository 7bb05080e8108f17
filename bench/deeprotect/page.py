"""DEEProtect's tables and curves as a page."""

import functools

from deeprotect import tables
from harness import pages
from harness.pages import COLOURS, DOTTED, Section, label

QUESTIONS = {
    "Features without noise": tables.features_table,
    "The ε that is needed": tables.needed_table,
    "Noise, measured and predicted": tables.noise_table,
    "Every budget": tables.budgets_table,
    "Speed": tables.speed_table,
}
CAPTION = (
    "Accuracy of the useful inference (solid) and of the sensitive one (dashed) over "
    "the ε of a window; dotted: accuracy on raw windows."
)


def sections(rows) -> list[Section]:
    """Returns the paper's results, the curves, and a table per question."""
    pictures = {"": functools.partial(curves, rows)}
    own = [row for row in rows if row["kind"] == "budget"]
    drawn = [Section("Useful and sensitive over ε", pictures=pictures)] if own else []
    made = {title: make(rows) for title, make in QUESTIONS.items()}
    told = [Section(title, table=table) for title, table in made.items() if table]
    return [Section("Comparison with the paper", (tables.PAPER,)), *drawn, *told]


PAGE = pages.Page("DEEProtect over its budget", sections)
markdown, write = PAGE.markdown, PAGE.write


def curves(rows):
    """Draws useful and sensitive accuracy over ε, a panel per study."""
    own = [row for row in rows if row["kind"] == "budget"]
    places = list(dict.fromkeys(map(tables.place, own)))
    drawn, axes = pages.panels(places, height=3.4)
    names = dict.fromkeys(row["release"] for row in own)
    releases = [name for name in names if "raw" not in name]
    for place, axis in axes.items():
        for name, colour in zip(releases, COLOURS, strict=False):
            _curve(axis, [r for r in own if tables.place(r) == place], name, colour)
        _levels(axis, rows, place)
    return pages.with_legend(drawn, axes, CAPTION)


def _curve(axis, rows, name, colour):
    rows = sorted((r for r in rows if r["release"] == name), key=lambda r: r["epsilon"])
    epsilons = [row["epsilon"] for row in rows]
    useful = [100 * row["told"][row["useful"][0]] for row in rows]
    sensitive = [100 * row["told"][row["sensitive"]] for row in rows]
    axis.plot(epsilons, useful, "-o", color=colour, ms=3, lw=1.4, label=name)
    axis.plot(epsilons, sensitive, "--", color=colour, lw=1.2)


def _levels(axis, rows, place):
    for row in rows:
        if row["kind"] == "raw" and tables.place(row) == place:
            for name in (row["useful"][0], row["sensitive"]):
                axis.axhline(100 * row["told"][name], **DOTTED)
    axis.set(xscale="log", ylim=(0, 100))
    axis.set_title(f"{place[0]}: {place[1]}", fontsize=9)
    label(axis, "ε of a window", "read correctly in %", 9)
