"""Rows of the audit as tables, a page and a figure."""

import json

import numpy as np
from _markdown import html, table

from jaxanon.report import page
from jaxanon.report.figures import RAW, SAFE, grid, picture

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BUGS = ("noise × 0.5", "clip × 2", "one left bare")
KINDS = {"own": "windows as they are", "wrong": "windows of a wrong label"}
CAPTION = (
    "Above: what a server that keeps one client's messages tells of its windows (true "
    "over false positives, dotted: guessing), and the ε that is counted on the worst "
    "example over the ε that is claimed: no mechanism that keeps its word is above the "
    "line. Below: a window (blue) and what deep leakage rebuilds of it (orange) from "
    "the one message of a client that has no other."
)


def line(row) -> str:
    """One row in words."""
    cells = {"mechanisms": _mechanism, "members": _members, "inversion": _inversion}
    return f"{row['kind']}: " + ", ".join(cells[row["kind"]](row))


def markdown(rows) -> str:
    """All tables, one below the other."""
    return "\n\n".join(text for _, text in sections(rows)) + "\n"


def sections(rows) -> list[tuple[str, str]]:
    """Titles, and tables in Markdown."""
    kinds = {
        "mechanisms": (
            "Noise against the worst example",
            ["mechanism", "ε claimed", "ε counted", "verdict"],
            _mechanism,
        ),
        "members": (
            "Membership of a client's windows",
            [
                *("learner", "who sees", "ε claimed", "in question", "by"),
                *("area under the curve", "found at 1 % false", "at 10 %"),
                *("ε counted", "of at most", "accuracy, one run"),
            ],
            _members,
        ),
        "inversion": (
            "Windows rebuilt from a message",
            [
                "learner",
                "noise multiplier",
                "ε of the message",
                "correlation",
                "SNR, rescaled",
            ],
            _inversion,
        ),
    }
    found = []
    for kind, (title, head, cells) in kinds.items():
        own = [cells(row) for row in rows if row["kind"] == kind]
        if own:
            found.append((title, table(head, own)))
    bugs = [planted(row) for row in rows if "planted" in row]
    if bugs:
        head = ["mechanism", "ε claimed", "ε counted", *BUGS]
        found.insert(1, ("The same with bugs planted: ε counted", table(head, bugs)))
    return found


def planted(row) -> list[str]:
    """Of a row with bugs: ε claimed, counted, and counted by each, or nothing."""
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
        {"each": "each message", "mean": "the mean"}[row["view"]],
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
    """An ε as tables tell it; "none" of None."""
    if value is None:
        return "none"
    return f"{value:,.0f}" if value >= 100 else f"{round(value, 1):g}"


def write(path, rows):
    """``path`` itself, and beside it .md, .html and .png."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows) + "\n")
    path.with_suffix(".md").write_text(markdown(rows))
    drawn = draw(rows)
    path.with_suffix(".png").write_bytes(drawn.png)
    parts = [page.section("At a glance", page.figure("audit", drawn))]
    for title, text in sections(rows):
        parts.append(page.section(title, html(text)))
    title = "What the server of a federation sees"
    text = page.document(title, "jaxanon benchmark", "".join(parts))
    path.with_suffix(".html").write_text(text)


def draw(rows):
    """ROC curves and counted ε above, windows and what was rebuilt below."""
    rebuilt = [
        row for row in rows if row["kind"] == "inversion" and row["learner"] != "Atlas"
    ]
    columns = max(3, len(rebuilt))
    figure, axes = grid(2, columns, 3.3, 3.1)
    for axis, examples in zip(axes[0], KINDS, strict=False):
        own = [row for row in rows if row["kind"] == "members"]
        _curves(axis, [row for row in own if row["examples"] == examples], examples)
    _counted(axes[0, 2], [row for row in rows if row["kind"] == "mechanisms"])
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
        axis.plot(
            false,
            true,
            color=COLOURS[learners.index(row["learner"])],
            ls=("-", "--", "-.", ":")[place % 4],
            lw=1.3,
            label=f"{row['learner']}, {epsilon}",
        )
    axis.plot([1e-3, 1], [1e-3, 1], color="#767676", ls=":", lw=1)
    axis.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(1e-3, 1.1))
    axis.set_title(KINDS[examples], fontsize=9)
    axis.set_xlabel("false positives", fontsize=9)
    axis.set_ylabel("true positives", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)


def _counted(axis, rows):
    for row in rows:
        colour, mark = (RAW, "o") if row["holds"] else (SAFE, "X")
        axis.plot(row["claimed"], max(row["counted"], 0.05), mark, color=colour, ms=7)
        for found in row.get("planted", {}).values():
            axis.plot(row["claimed"], found, "X", color=SAFE, ms=5, alpha=0.5)
    axis.plot([0.1, 20], [0.1, 20], color="#767676", ls=":", lw=1)
    axis.set(xscale="log", yscale="log")
    axis.set_title("worst example; crosses: broken noise", fontsize=9)
    axis.set_xlabel("ε claimed", fontsize=9)
    axis.set_ylabel("ε counted, at least", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)
