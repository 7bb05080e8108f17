"""DEEProtect's tables as a page, with its curves."""

import json
from html import escape

import _deeprotect_tables as tables
import _markdown

from jaxanon.report.figures import grid, picture
from jaxanon.report.page import document, figure, section

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def write(path, rows):
    """``path`` itself, and beside it .md, .html and .png."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    path.with_suffix(".md").write_text(tables.markdown(rows))
    drawn = curves(rows)
    parts = [section("Beside the paper", f"<p>{escape(tables.PAPER)}</p>")]
    if drawn is not None:
        path.with_suffix(".png").write_bytes(drawn.png)
        parts.append(section("Useful and sensitive over ε", figure("curves", drawn)))
    for title, markdown in {
        "Features without noise": tables.features_table(rows),
        "The ε that is needed": tables.needed_table(rows),
        "Noise, measured and predicted": tables.noise_table(rows),
        "Every budget": tables.budgets_table(rows),
        "Speed": tables.speed_table(rows),
    }.items():
        if markdown:
            parts.append(section(title, _markdown.html(markdown)))
    page = document("DEEProtect over its budget", "jaxanon benchmark", "".join(parts))
    path.with_suffix(".html").write_text(page)


def curves(rows):
    """Useful (whole) and sensitive (dashed) accuracy over ε, a panel for each study."""
    own = [row for row in rows if row["kind"] == "budget"]
    places = list(dict.fromkeys(map(tables.place, own)))
    if not places:
        return None
    columns = min(3, len(places))
    drawn, axes = grid(-(-len(places) // columns), columns, 4.4, 3.4)
    releases = [
        n for n in dict.fromkeys(row["release"] for row in own) if "raw" not in n
    ]
    for axis, place in zip(axes.flat, places, strict=False):
        for name, colour in zip(releases, COLOURS, strict=False):
            _curve(axis, [r for r in own if tables.place(r) == place], name, colour)
        _levels(axis, rows, place)
    for axis in axes.flat[len(places) :]:
        axis.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    caption = (
        "Accuracy of the useful inference (whole lines) and of the sensitive one "
        "(dashed) over the ε of a window; dotted: what raw windows tell of either."
    )
    return picture(drawn, caption)


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
                axis.axhline(100 * row["told"][name], color="#767676", ls=":", lw=1)
    axis.set_xscale("log")
    axis.set_ylim(0, 100)
    axis.set_title(f"{place[0]}: {place[1]}", fontsize=9)
    axis.set_xlabel("ε of a window", fontsize=9)
    axis.set_ylabel("read correctly in %", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)
