"""The comparison with Atlas as tables, a page and figures."""

import functools

from matplotlib.lines import Line2D

from atlas import applications, tables
from harness import pages
from harness.pages import GREY, Question, Section, by, label
from jaxanon.report.figures import WIDTH, grid, picture

KINDS = {
    "traditional": GREY,
    "federated": "#0072B2",
    "personal": "#009E73",
    "noisy": "#D55E00",
}
COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#D55E00")
METRICS = {"accuracy": "accuracy", "r2": "R²"}
THIN = {"ms": 3, "lw": 1.3}
LOWEST = -1.0  # Smallest R² that is drawn.


def panels(rows, width=4.4, height=3.3):
    """``(figure, {application: axis})``, a panel for each application."""
    places = by(rows, tables.PLACE)
    drawn, axes = pages.panels(list(places), width, height)
    for name, axis in axes.items():
        stands_for = places[name][0]["stands_for"]
        axis.set_title(f"{name} (for {stands_for})", fontsize=9)
    return drawn, axes


def methods(rows):
    """Figure 3.9: mean over clients of every method, highest first."""
    places = by(rows, tables.PLACE)
    count = max(len(by(own, "name")) for own in places.values())
    across = 2
    down = -(-len(places) // across)
    drawn, axes = grid(down, across, WIDTH / across + 0.6, 0.2 * count + 0.9)
    for axis in axes.flat[len(places) :]:
        axis.set_visible(False)
    for axis, (name, found) in zip(axes.flat, places.items(), strict=False):
        own = tables.over_seeds(found).values()
        own = sorted(own, key=lambda row: row["value"], reverse=True)
        for place, row in enumerate(own):
            style = {"fmt": "o", "ms": 4.5, "lw": 1.2, "color": KINDS[row["kind"]]}
            if row["value"] < LOWEST:
                axis.plot(LOWEST, place, "<", ms=5, color=style["color"])
                continue
            axis.errorbar(row["value"], place, xerr=row["spread"], **style)
        axis.set_yticks(range(len(own)), [row["name"] for row in own], fontsize=8)
        axis.set_ylim(len(own) - 0.5, -0.5)
        axis.grid(alpha=0.25, lw=0.5)
        low = min(row["value"] - row["spread"] for row in own)
        axis.set_xlim(max(LOWEST, min(0.0, low - 0.05)) - 0.02, 1.02)
        stands_for = found[0]["stands_for"]
        axis.set_title(f"{name} (for {stands_for})", fontsize=9.5, fontweight="bold")
        measure = METRICS[own[0]["metric"]]
        axis.set_xlabel(
            f"{measure}: mean ± standard deviation over clients", fontsize=9
        )
    words = {
        "traditional": "without sharing, or centralized",
        "federated": "one shared model",
        "personal": "personal models",
        "noisy": "with noise, ε = 2",
    }
    handles = [Line2D([], [], marker="o", ls="", color=KINDS[kind]) for kind in words]
    style = {"loc": "outside upper center", "ncols": 4, "frameon": False}
    drawn.legend(handles, words.values(), fontsize=9, **style)
    return picture(
        drawn,
        "Mean over clients, each on its own test windows, sorted from the highest. "
        "Whiskers are one standard deviation over clients. Triangles: R² below -1.",
    )


def over(what, x, log=False):
    """A figure of lines over ``what``, a line for each method."""

    def draw(rows):
        drawn, axes = panels(rows)
        names = [n for n in tables.ORDER if any(r["name"] == n for r in rows)]
        for place, axis in axes.items():
            own = by(rows, tables.PLACE)[place]
            for name, colour in zip(names, COLOURS * 2, strict=False):
                line = tables.line(own, name, what)
                if line[0]:
                    axis.plot(*line, "-o", color=colour, label=name, **THIN)
            for name, row in tables.over_seeds(own).items():
                if row.get("reference"):
                    axis.axhline(row["value"], label=name, **pages.DOTTED)
            if log:
                axis.set_xscale("log", base=2)
                axis.xaxis.set_major_formatter("{x:g}")
            label(axis, x, METRICS[own[0]["metric"]])
        return pages.with_legend(drawn, axes, f"Mean over clients, over {x}.")

    return draw


def joining(rows):
    """Figure 3.12: each new client by a method, over what it gets alone."""
    drawn, axes = panels(rows, 3.6, 3.6)
    for place, axis in axes.items():
        own = [row for row in by(rows, tables.PLACE)[place] if not row["seed"]]
        for row, colour in zip(own, COLOURS, strict=False):
            pair = row["alone"], row["joined"]
            axis.scatter(*pair, s=14, color=colour, label=row["name"])
        low = min(min(row["alone"] + row["joined"]) for row in own)
        low = max(-1.0, low - 0.05)
        axis.plot([low, 1], [low, 1], color=GREY, lw=0.8, ls=":")
        axis.set(xlim=(low, 1), ylim=(low, 1))
        trained = f"{METRICS[own[0]['metric']]}, trained alone"
        label(axis, trained, "joined what was shared")
    caption = (
        "Each dot is a client that joined when training was over; above the line it "
        "is better off than alone."
    )
    return pages.with_legend(drawn, axes, caption, columns=2)


def traffic(rows):
    """Figure 3.13: the score over all bytes sent both ways."""
    drawn, axes = panels(rows)
    names = [n for n in applications.OVER_ROUNDS if any(r["name"] == n for r in rows)]
    for place, axis in axes.items():
        own = [row for row in by(rows, tables.PLACE)[place] if not row["seed"]]
        for row in own:
            colour = COLOURS[names.index(row["name"])]
            marks = row["curve"]
            sent = [tables.bytes_until(row, mark["round"]) / 1e6 for mark in marks]
            values = [mark["value"] for mark in marks]
            axis.plot(sent, values, "-o", color=colour, label=row["name"], **THIN)
        label(axis, "MB of a client, both ways", METRICS[own[0]["metric"]])
    caption = "Mean over clients, over all that a client sent and got."
    return pages.with_legend(drawn, axes, caption)


QUESTIONS = {
    "methods": Question(
        "Every method (figure 3.9)", tables.methods_table, {"methods": methods}
    ),
    "differences": Question(tables.DIFFERENCES, tables.margins_table),
    "clients": Question(
        "Number of clients (figure 3.10)",
        functools.partial(tables.over_table, what="clients"),
        {"clients": over("clients", "number of clients")},
    ),
    "epsilon": Question(
        "Privacy budget (figure 3.11)",
        functools.partial(tables.over_table, what="epsilon"),
        {"epsilon": over("epsilon", "ε", log=True)},
    ),
    "joining": Question(
        "New clients (figure 3.12)", tables.joining_table, {"joining": joining}
    ),
    "traffic": Question(
        "Communication (figure 3.13)", tables.traffic_table, {"traffic": traffic}
    ),
}


def sections(rows) -> list[Section]:
    """The chapter's words, and every question."""
    asked = lambda rows, name: tables.asked(
        rows, "methods" if name == "differences" else name
    )
    about = Section("Beside the chapter", tuple(tables.about(rows)))
    return [about, *pages.answered(QUESTIONS, rows, asked)]


PAGE = pages.Page("Atlas beside its rivals", sections)
markdown, write = PAGE.markdown, PAGE.write
