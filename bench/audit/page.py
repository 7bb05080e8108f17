"""Tables, a page and a figure of the audit."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from harness import pages
from harness.pages import COLOURS, DOTTED, Section, label, table
from jaxanon.report.figures import RAW, SAFE, grid, picture

BUGS = ("noise × 0.5", "clip × 2", "one left bare")
SEES = {"each": "each message", "mean": "the mean"}
KINDS = {"own": "windows as they are", "wrong": "windows of a wrong label"}
CAPTION = (
    "Above: true over false positive rates of a server that infers membership from one "
    "client's messages (dotted: chance level), and measured over claimed ε for the "
    "worst-case example; correct mechanisms stay below the line. Below: a window "
    "(blue) and its reconstruction by deep leakage (orange) from the message of a "
    "client that has no other window."
)


def line(row) -> str:
    """Returns a row as text."""
    return f"{row['kind']}: " + ", ".join(TABLES[row["kind"]].cells(row))


def planted(row) -> list[str]:
    """Returns claimed ε, measured ε, and measured ε per bug; empty without bugs."""
    told = [row["planted"].get(bug) for bug in BUGS]
    told = ["" if x is None else f"{x:.2f}" for x in told]
    return [row["name"], f"{row['claimed']:.2f}", f"{row['counted']:.2f}", *told]


def _mechanism(row):
    broken = row["counted"] > row["claimed"]
    words = "claim broken" if broken else "no more than claimed"
    if broken == row["holds"]:
        words += ", unlike expected"
    return [row["name"], f"{row['claimed']:.2f}", f"{row['counted']:.2f}", words]


def _members(row):
    return [
        row["learner"],
        SEES[row["view"]],
        told_epsilon(row["claimed"]),
        KINDS[row["examples"]],
        row["statistic"],
        f"{row['auc']:.3f}",
        *(f"{100 * row['true_positives'][rate]:.1f} %" for rate in ("0.01", "0.1")),
        f"{row['counted']:.2f}",
        f"{row['provable']:.2f}",
        f"{100 * row['accuracy']:.1f} %",
    ]


def _inversion(row):
    multiplier = row["noise_multiplier"]
    told = {None: "none, not clipped", 0.0: "none, clipped"}
    return [
        row["learner"],
        told.get(multiplier, f"{multiplier}"),
        told_epsilon(row["claimed"]),
        f"{row['correlation']:.3f}",
        f"{row['snr_db']:.1f} dB",
    ]


def told_epsilon(value):
    """Formats an ε; "none" for None."""
    if value is None:
        return "none"
    return f"{value:,.0f}" if value >= 100 else f"{round(value, 1):g}"


def draw(rows):
    """Draws ROC curves and measured ε above, windows and reconstructions below."""
    of = lambda kind: [row for row in rows if row["kind"] == kind]
    rebuilt = [row for row in of("inversion") if row["learner"] != "Atlas"]
    columns = max(3, len(rebuilt))
    figure, axes = grid(2, columns, 3.3, 3.1)
    for axis, examples in zip(axes[0], KINDS, strict=False):
        own = [row for row in of("members") if row["examples"] == examples]
        _curves(axis, own, examples)
    _counted(axes[0, 2], of("mechanisms"))
    for axis, row in zip(axes[1], rebuilt, strict=False):
        axis.plot(row["window"], color=RAW, lw=1.3)
        axis.plot(row["rebuilt"], color=SAFE, lw=1.0)
        epsilon = f"ε = {told_epsilon(row['claimed'])}"
        if not row["noise_multiplier"]:
            epsilon = "clipped" if row["noise_multiplier"] == 0 else "no noise"
        axis.set_title(f"{row['learner']}, {epsilon}", fontsize=9)
        low, high = min(row["window"]), max(row["window"])
        margin = 0.2 * (high - low) + 0.1
        axis.set_ylim(low - margin, high + margin)
        axis.set_xlabel(f"correlation {row['correlation']:.2f}", fontsize=9)
    for axis in (*axes[0, 3:], *axes[1, len(rebuilt) :]):
        axis.set_axis_off()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    if handles:
        place = axes[0, 3] if columns > 3 else axes[0, 0]
        place.legend(handles, labels, loc="center left", fontsize=9, frameon=False)
    return picture(figure, CAPTION)


def _curves(axis, rows, examples):
    rows = [r for r in rows if r["statistic"] == "updates" and r["view"] == "each"]
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    styles: dict = {}
    for row in rows:
        place = styles[row["learner"]] = styles.get(row["learner"], -1) + 1
        false, true = (np.maximum(rates, 1e-4) for rates in row["roc"])
        epsilon = told_epsilon(row["claimed"])
        epsilon = "no noise" if epsilon == "none" else f"ε = {epsilon}"
        style = {"ls": ("-", "--", "-.", ":")[place % 4], "lw": 1.3}
        colour = COLOURS[learners.index(row["learner"])]
        name = f"{row['learner']}, {epsilon}"
        axis.plot(false, true, color=colour, label=name, **style)
    axis.plot([1e-3, 1], [1e-3, 1], **DOTTED)
    axis.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(1e-3, 1.1))
    axis.set_title(KINDS[examples], fontsize=9)
    label(axis, "false positives", "true positives", 9)
    axis.grid(alpha=0.25, lw=0.5)


def _counted(axis, rows):
    for row in rows:
        colour, mark = (RAW, "o") if row["holds"] else (SAFE, "X")
        axis.plot(row["claimed"], max(row["counted"], 0.05), mark, color=colour, ms=7)
        for found in row.get("planted", {}).values():
            axis.plot(row["claimed"], found, "X", color=SAFE, ms=5, alpha=0.5)
    axis.plot([0.1, 20], [0.1, 20], **DOTTED)
    axis.set(xscale="log", yscale="log")
    axis.set_title("worst example; crosses: broken noise", fontsize=9)
    label(axis, "ε claimed", "ε counted, at least", 9)
    axis.grid(alpha=0.25, lw=0.5)


class Table(NamedTuple):
    """A table for one kind of rows."""

    title: str
    head: tuple[str, ...]
    cells: Callable  # row -> list[str]


TABLES = {
    "mechanisms": Table(
        "Noise against the worst example",
        ("mechanism", "ε claimed", "ε counted", "verdict"),
        _mechanism,
    ),
    "planted": Table(
        "The same with bugs planted: ε counted",
        ("mechanism", "ε claimed", "ε counted", *BUGS),
        planted,
    ),
    "members": Table(
        "Membership of a client's windows",
        (
            *("learner", "who sees", "ε claimed", "in question", "by"),
            *("area under the curve", "found at 1 % false", "at 10 %"),
            *("ε counted", "of at most", "accuracy, one run"),
        ),
        _members,
    ),
    "inversion": Table(
        "Windows rebuilt from a message",
        (
            *("learner", "noise multiplier", "ε of the message", "correlation"),
            "SNR, rescaled",
        ),
        _inversion,
    ),
}


def sections(rows) -> list[Section]:
    """Returns the figure and a table per kind of rows."""
    if not rows:
        return []
    found = [Section("At a glance", pictures={"": functools.partial(draw, rows)})]
    for kind, (title, head, cells) in TABLES.items():
        own = [row for row in rows if kind in (row["kind"], *row)]
        if own:
            found.append(Section(title, table=table(head, map(cells, own))))
    return found


PAGE = pages.Page("Attacks on the messages of a federation", sections, indent=None)
markdown, write = PAGE.markdown, PAGE.write
