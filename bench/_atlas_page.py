"""The comparison with Atlas as tables, a page and figures."""

import json
from html import escape

import _applications as applications
import _atlas_tables as tables
import _markdown

from jaxanon.report.figures import grid, picture
from jaxanon.report.page import document, figure, section

KINDS = {
    "traditional": "#767676",
    "federated": "#0072B2",
    "personal": "#009E73",
    "noisy": "#D55E00",
}
COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#D55E00")


def markdown(rows) -> str:
    """All tables, with their titles."""
    parts = [f"## {title}\n\n{text}" for title, text in tables.every(rows).items()]
    return "\n\n".join([*tables.about(rows), *parts]) + "\n"


def write(path, rows):
    """``path`` itself, and beside it .md, .html and a .png for each question."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(rows))
    about = "".join(f"<p>{escape(part)}</p>" for part in tables.about(rows))
    parts = [section("Beside the chapter", about)]
    written = tables.every(rows)
    for title, draw in FIGURES.items():
        if title not in written:
            continue
        drawn = draw(tables.asked(rows, tables.TITLES[title]))
        name = f"{path.stem}_{tables.TITLES[title]}.png"
        path.with_name(name).write_bytes(drawn.png)
        shown = figure(tables.TITLES[title], drawn)
        below = _markdown.html(written[title])
        if draw is methods:
            below += _markdown.html(written[tables.DIFFERENCES])
        parts.append(section(title, shown + below))
    page = document("Atlas beside its rivals", "jaxanon benchmark", "".join(parts))
    path.with_suffix(".html").write_text(page)


def panels(rows, width, height):
    """``(figure, {application: axis})``, a panel for each application."""
    names = list(dict.fromkeys(row["application"] for row in rows))
    columns = min(3, len(names))
    drawn, axes = grid(-(-len(names) // columns), columns, width, height)
    for axis in list(axes.flat)[len(names) :]:
        axis.set_visible(False)
    found = dict(zip(names, axes.flat, strict=False))
    for name, axis in found.items():
        row = next(row for row in rows if row["application"] == name)
        axis.set_title(f"{name} (for {row['stands_for']})", fontsize=9)
        axis.grid(alpha=0.25, lw=0.5)
    return drawn, found


def methods(rows):
    """Figure 3.9: every method's mean over clients, whiskers one deviation of them."""
    drawn, axes = panels(rows, 4.6, 4.8)
    for name, axis in axes.items():
        own = tables.over_seeds([row for row in rows if row["application"] == name])
        own = sorted(own.values(), key=lambda row: tables.ORDER.index(row["name"]))
        places = range(len(own))
        axis.barh(
            places,
            [row["value"] for row in own],
            xerr=[row["spread"] for row in own],
            color=[KINDS[row["kind"]] for row in own],
            error_kw={"lw": 0.8, "alpha": 0.6},
        )
        axis.set_yticks(places, [row["name"] for row in own], fontsize=7)
        axis.invert_yaxis()
        axis.grid(axis="y", alpha=0)
        low = min(row["value"] for row in own)
        axis.set_xlim(max(-1.0, min(0.0, low - 0.05)), 1)
        axis.set_xlabel(METRICS[own[0]["metric"]], fontsize=8)
    return picture(
        drawn,
        "Mean over clients, each on its own test windows; whiskers: one standard "
        "deviation of clients. Grey: traditional, blue: one model, green: personal, "
        "orange: with noise, ε = 2.",
    )


def over(what, label, log=False):
    """A figure of lines over ``what``, a line for each method."""

    def draw(rows):
        drawn, axes = panels(rows, 4.4, 3.3)
        names = [n for n in tables.ORDER if any(r["name"] == n for r in rows)]
        for place, axis in axes.items():
            own = [row for row in rows if row["application"] == place]
            for name, colour in zip(names, COLOURS * 2, strict=False):
                line = tables.line(own, name, what)
                if line[0]:
                    axis.plot(*line, "-o", ms=3, lw=1.3, color=colour, label=name)
            for name, row in tables.over_seeds(own).items():
                if row.get("reference"):
                    style = {"color": "#767676", "ls": ":", "lw": 1, "label": name}
                    axis.axhline(row["value"], **style)
            if log:
                axis.set_xscale("log", base=2)
                axis.xaxis.set_major_formatter("{x:g}")
            axis.set_xlabel(label, fontsize=8)
            axis.set_ylabel(METRICS[own[0]["metric"]], fontsize=8)
        handles, labels = next(iter(axes.values())).get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
        return picture(drawn, f"Mean over clients, over {label}.")

    return draw


def joining(rows):
    """Figure 3.12: each new client by a method, over what it gets alone."""
    drawn, axes = panels(rows, 3.6, 3.6)
    for place, axis in axes.items():
        own = [row for row in rows if row["application"] == place and not row["seed"]]
        for row, colour in zip(own, COLOURS, strict=False):
            axis.scatter(
                row["alone"], row["joined"], s=14, color=colour, label=row["name"]
            )
        low = min(min(row["alone"] + row["joined"]) for row in own)
        low = max(-1.0, low - 0.05)
        axis.plot([low, 1], [low, 1], color="#767676", lw=0.8, ls=":")
        axis.set_xlim(low, 1)
        axis.set_ylim(low, 1)
        axis.set_xlabel(f"{METRICS[own[0]['metric']]}, trained alone", fontsize=8)
        axis.set_ylabel("joined what was shared", fontsize=8)
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    return picture(
        drawn,
        "Each dot is a client that joined when training was over; above the line it "
        "is better off than alone.",
    )


def traffic(rows):
    """Figure 3.13: the score over all bytes sent both ways."""
    drawn, axes = panels(rows, 4.4, 3.3)
    names = [n for n in applications.OVER_ROUNDS if any(r["name"] == n for r in rows)]
    for place, axis in axes.items():
        own = [row for row in rows if row["application"] == place and not row["seed"]]
        for row in own:
            colour = COLOURS[names.index(row["name"])]
            sent = [tables.bytes_until(row, mark["round"]) for mark in row["curve"]]
            values = [mark["value"] for mark in row["curve"]]
            axis.plot(
                [number / 1e6 for number in sent],
                values,
                "-o",
                ms=3,
                lw=1.3,
                color=colour,
                label=row["name"],
            )
        axis.set_xlabel("MB of a client, both ways", fontsize=8)
        axis.set_ylabel(METRICS[own[0]["metric"]], fontsize=8)
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return picture(drawn, "Mean over clients, over all that a client sent and got.")


METRICS = {"accuracy": "accuracy", "r2": "R²"}
FIGURES = {
    "Every method (figure 3.9)": methods,
    "Number of clients (figure 3.10)": over("clients", "number of clients"),
    "Privacy budget (figure 3.11)": over("epsilon", "ε", log=True),
    "New clients (figure 3.12)": joining,
    "Communication (figure 3.13)": traffic,
}
