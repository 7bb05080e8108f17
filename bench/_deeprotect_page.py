"""DEEProtect's rows as tables, a page and figures, beside the paper's numbers."""

import json
from html import escape

import numpy as np

from jaxanon.privacy import raw_error, rebuilt_error
from jaxanon.report.figures import grid, picture
from jaxanon.report.page import document, figure, section

WITHIN = 0.10  # Points of accuracy below what raw windows tell.
LAPLACE = "everything, Laplace on raw windows"
INPUTS, FEATURES, RADIUS = 30, 7, 0.35  # Of all studies.
# Expected L1 error of Laplace noise, or a bound on it, by ε: theorems 6 and 7.
PREDICTED = {
    LAPLACE: lambda epsilon: raw_error(INPUTS, 1.0, epsilon),
    "everything, Laplace": lambda epsilon: rebuilt_error(
        INPUTS, FEATURES, 2 * RADIUS * FEATURES**0.5, epsilon
    ),
    "everything, as published": lambda epsilon: rebuilt_error(
        INPUTS, FEATURES, INPUTS * FEATURES**0.5, epsilon
    ),
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Liu et al. 2017: figures 7, 9 and 10 and what is said of them in section VIII.
PAPER = (
    "The paper, on its own 20 people: identity 86.13 % of 7 features and 88.39 % of "
    "all 30, other extractors below 41.02 %; at ε = 5 in mode 2 identity 79.58 % and "
    "activity about 5 %, transport above 78 %, entered text below 10 %. With a "
    "sensitivity that holds, its noise at ε = 5 is 15.9 times the range of a feature; "
    "the row 'as published' has it."
)


def line(row) -> str:
    """One row in words."""
    told = ", ".join(f"{k} {100 * v:.1f}" for k, v in row.get("told", {}).items())
    where = f"{row.get('dataset', '')} {row.get('case', '')}".strip()
    return f"{where}: {row['kind']}, {row['of']}: {told}"


def markdown(rows) -> str:
    """All tables."""
    parts = [features_table(rows), needed_table(rows), noise_table(rows)]
    parts += [budgets_table(rows), speed_table(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def features_table(rows) -> str:
    """Useful accuracy by extractor and number of features, without noise."""
    rows = [row for row in rows if row["kind"] == "features"]
    counts = sorted({row["count"] for row in rows})
    head = ["data", "case", "extractor", *map(str, counts), "informativeness of 7"]
    lines = []
    for where in dict.fromkeys((row["dataset"], row["case"]) for row in rows):
        own = [row for row in rows if (row["dataset"], row["case"]) == where]
        for extractor in dict.fromkeys(row["extractor"] for row in own):
            found = {row["count"]: row for row in own if row["extractor"] == extractor}
            cells = [_useful(found[k]) if k in found else "" for k in counts]
            told = f"{found[7]['informativeness']:.3f}" if 7 in found else ""
            lines.append([*where, extractor, *cells, told])
    return _table(head, lines)


def needed_table(rows) -> str:
    """The ε at which the useful inference is within 10 points of raw windows."""
    found = needed(rows)
    lines = []
    for (dataset, case), own in found.items():
        base = own.get(LAPLACE)
        for release, epsilon in own.items():
            ratio = f"{base / epsilon:.0f}" if base and epsilon else ""
            told = f"{epsilon:.3g}" if epsilon else "more than was tried"
            lines.append([dataset, case, release, told, ratio])
    head = ["data", "case", "release", "ε needed", "times less than Laplace on raw"]
    return _table(head, lines)


def needed(rows) -> dict:
    """By study and release, the least ε that is enough; None where none was.

    Between two that were tried the accuracy is taken to grow with the logarithm.
    """
    found: dict = {}
    for row in (row for row in rows if row["kind"] == "raw"):
        where = row["dataset"], row["case"]
        goal = row["told"][row["useful"][0]] - WITHIN
        own = [
            each
            for each in rows
            if each["kind"] == "budget" and (each["dataset"], each["case"]) == where
        ]
        for release in dict.fromkeys(each["release"] for each in own):
            curve = sorted(
                (each["epsilon"], each["told"][each["useful"][0]])
                for each in own
                if each["release"] == release
            )
            found.setdefault(where, {})[release] = crossing(curve, goal)
    return found


def crossing(curve, goal):
    """Where a curve of ``(ε, accuracy)`` reaches ``goal`` first; None: nowhere.

    Example:
      >>> round(crossing([(1.0, 0.2), (4.0, 0.4)], 0.3), 3)
      2.0
    """
    before = None
    for epsilon, value in curve:
        if value >= goal:
            if before is None:
                return epsilon
            share = (goal - before[1]) / (value - before[1])
            return float(before[0] * (epsilon / before[0]) ** share)
        before = epsilon, value
    return None


def noise_table(rows) -> str:
    """Measured and predicted L1 noise of released windows, of Laplace noise.

    Windows are cut to the public range, which takes large noise away; predictions of
    windows rebuilt from features are upper bounds.
    """
    lines = []
    for row in rows:
        predict = PREDICTED.get(row.get("release"))
        if predict is not None and "noise" in row:
            told = f"{row['noise']:.3g}", f"{predict(row['epsilon']):.3g}"
            where = row["dataset"], row["case"], row["release"]
            lines.append([*where, f"{row['epsilon']:g}", *told])
    head = ["data", "case", "release", "ε", "L1 noise", "predicted, before cutting"]
    return _table(head, lines)


def budgets_table(rows) -> str:
    """What is read of the useful and of the sensitive inference, over ε."""
    rows = [row for row in rows if row["kind"] in ("budget", "raw")]
    lines = []
    for row in rows:
        sensitive = 100 * row["told"][row["sensitive"]]
        epsilon = f"{row['epsilon']:g}" if "epsilon" in row else "none"
        name = row.get("release", row["of"])
        lines.append(
            [
                row["dataset"],
                row["case"],
                name,
                epsilon,
                _useful(row),
                f"{sensitive:.1f}",
            ]
        )
    head = ["data", "case", "release", "ε", "useful %", "sensitive %"]
    return _table(head, lines)


def speed_table(rows) -> str:
    """What training and releasing take, and what is asked."""
    lines = [
        [row["of"], f"{row['value']:,.1f} {row['unit']}", f"{row['asked']:,.0f}"]
        for row in rows
        if row["kind"] == "speed"
    ]
    return _table(["what", "took", "asked"], lines)


def write(path, rows):
    """``path`` itself, and beside it .md, .html and .png."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(rows))
    drawn = curves(rows)
    parts = [section("Beside the paper", f"<p>{escape(PAPER)}</p>")]
    if drawn is not None:
        path.with_suffix(".png").write_bytes(drawn.png)
        parts.append(section("Useful and sensitive over ε", figure("curves", drawn)))
    for title, table in {
        "Features without noise": features_table(rows),
        "The ε that is needed": needed_table(rows),
        "Noise, measured and predicted": noise_table(rows),
        "Every budget": budgets_table(rows),
        "Speed": speed_table(rows),
    }.items():
        if table:
            parts.append(section(title, _html(table)))
    page = document("DEEProtect over its budget", "jaxanon benchmark", "".join(parts))
    path.with_suffix(".html").write_text(page)


def curves(rows):
    """Useful (whole) and sensitive (dashed) accuracy over ε, a panel for each study."""
    own = [row for row in rows if row["kind"] == "budget"]
    places = list(dict.fromkeys((row["dataset"], row["case"]) for row in own))
    if not places:
        return None
    columns = min(3, len(places))
    drawn, axes = grid(-(-len(places) // columns), columns, 4.4, 3.4)
    releases = [
        n for n in dict.fromkeys(row["release"] for row in own) if "raw" not in n
    ]
    for axis, place in zip(axes.flat, places, strict=False):
        for name, colour in zip(releases, COLOURS, strict=False):
            _curve(axis, [r for r in own if _place(r) == place], name, colour)
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


def _place(row):
    return row["dataset"], row["case"]


def _curve(axis, rows, name, colour):
    rows = sorted((r for r in rows if r["release"] == name), key=lambda r: r["epsilon"])
    epsilons = [row["epsilon"] for row in rows]
    useful = [100 * row["told"][row["useful"][0]] for row in rows]
    sensitive = [100 * row["told"][row["sensitive"]] for row in rows]
    axis.plot(epsilons, useful, "-o", color=colour, ms=3, lw=1.4, label=name)
    axis.plot(epsilons, sensitive, "--", color=colour, lw=1.2)


def _levels(axis, rows, place):
    for row in rows:
        if row["kind"] == "raw" and _place(row) == place:
            for name in (row["useful"][0], row["sensitive"]):
                axis.axhline(100 * row["told"][name], color="#767676", ls=":", lw=1)
    axis.set_xscale("log")
    axis.set_ylim(0, 100)
    axis.set_title(f"{place[0]}: {place[1]}", fontsize=9)
    axis.set_xlabel("ε of a window", fontsize=9)
    axis.set_ylabel("read correctly in %", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)


def _useful(row):
    told = [row["told"][name] for name in row["useful"]]
    spreads = row.get("std", {})
    shown = []
    for name, value in zip(row["useful"], told, strict=True):
        spread = 100 * spreads.get(name, 0)
        shown.append(f"{100 * value:.1f}" + (f" ± {spread:.1f}" if spread else ""))
    return " / ".join(shown)


def _table(head, lines) -> str:
    if not lines:
        return ""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _html(table) -> str:
    head, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
    )
    cells = lambda row, tag: "".join(f"<{tag}>{escape(x)}</{tag}>" for x in row)
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in lines)
    return (
        f'<div class="scroll"><table><thead><tr>{cells(head, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def best(rows, count=7):
    """The extractor with the best useful accuracy of so many features, by study."""
    own = [r for r in rows if r["kind"] == "features" and r["count"] == count]
    told = lambda row: row["told"][row["useful"][0]]
    return {
        place: max((r for r in own if _place(r) == place), key=told)["extractor"]
        for place in dict.fromkeys(map(_place, own))
    }


def share_kept(rows, count=7):
    """Useful accuracy of so many of the autoencoder's features over that of 30."""
    own = [
        r for r in rows if r["kind"] == "features" and r["extractor"] == "autoencoder"
    ]
    found = {}
    for place in dict.fromkeys(map(_place, own)):
        told = {
            r["count"]: r["told"][r["useful"][0]] for r in own if _place(r) == place
        }
        found[place] = float(np.divide(told[count], told[max(told)]))
    return found
