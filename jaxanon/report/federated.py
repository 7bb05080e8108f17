"""The report of a federated learner: how well every client predicts."""

from jaxanon.report import figures, text
from jaxanon.report.figures import INK, QUIET, RAW, SAFE, Picture
from jaxanon.report.text import guaranteed

__all__ = ["draw", "guaranteed", "sentences"]

LOWEST = -1.0  # R² below is drawn here: there is no end to how bad it may be.
MOST_NAMES = 60
ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1)}


def sentences(report: dict) -> list[str]:
    """What the report comes to."""
    (worst,) = [row for row in report["clients"] if row["subject"] == report["worst"]]
    values = {"shuffled": None, **report, "worst_client": worst}
    late = text.unfinished(report["method"].get("unfinished"))
    return late + text.sentences("federated.txt", **values)


def draw(report: dict) -> Picture:
    """Every client's accuracy, or R², from the worst to the best, and their mean.

    Below R², what the median client predicted.
    """
    if "unit" in report:
        return _regression(report)
    rows = sorted(report["clients"], key=lambda row: row["accuracy"])
    figure, axes = figures.grid(1, 1, max(4.8, 0.22 * len(rows)), 3.6)
    axis = axes[0, 0]
    _bars(axis, rows, [100 * row["accuracy"] for row in rows])
    mean, chance = 100 * report["mean"]["accuracy"], 100 * report["pooled"]["majority"]
    axis.axhline(mean, color=INK, ls="--", lw=1.3, label=f"mean {mean:.1f} %")
    axis.axhline(chance, color=INK, ls=":", lw=1.3, label="largest class")
    axis.set_ylim(0, 100)
    predicted = f"{report['attribute']} predicted, %"
    figures.label(axis, "client", predicted, lines=False)
    figure.legend(fontsize=8, frameon=False, loc="outside upper right", ncols=3)
    return figures.picture(
        figure, "Accuracy of each client on its own test windows; dashed, their mean."
    )


def _regression(report):
    rows = sorted(report["clients"], key=lambda row: row["r2"])
    width = max(7.5, 0.2 * min(len(rows), MOST_NAMES))
    figure, axes = figures.grid(2, 1, width, 3.0)
    above, below = axes[:, 0]
    heights = [max(row["r2"], LOWEST) for row in rows]
    _bars(above, rows, heights)
    levels = {"mean": ("--", report["mean"])}
    if "persistence" in report["baselines"]:
        levels["persistence"] = (":", report["baselines"]["persistence"]["mean"])
    for name, (style, scores) in levels.items():
        level, words = max(scores["r2"], LOWEST), f"{name} {scores['r2']:.2f}"
        above.axhline(level, color=INK, ls=style, lw=1.3, label=words)
    above.axhline(0, color=QUIET, lw=0.8)
    above.set_ylim(min(0, *heights) * 1.02, 1.02)
    figures.label(above, "client", f"R² of {report['attribute']}", lines=False)
    example, unit = report["example"], f"{report['attribute']} [{report['unit']}]"
    below.plot(example["truth"], color=INK, lw=1.1, label="true")
    below.plot(example["told"], color=RAW, lw=1.1, label="predicted")
    figures.label(below, f"test window of client {example['subject']}", unit)
    for axis in (above, below):
        axis.legend(fontsize=8, frameon=False, ncols=3, **ABOVE)
    clipped = sum(row["r2"] < LOWEST for row in rows)
    more = f" {clipped} below {LOWEST:g} are drawn there." if clipped else ""
    return figures.picture(
        figure,
        f"Above, R² of each client on its own test windows; dashed, their mean.{more} "
        f"Below, the last test windows of client {example['subject']}, whose "
        "R² is the median, and what it predicted.",
    )


def _bars(axis, rows, heights):
    """A bar per client, with its name if there is room."""
    colours = [SAFE if row["new"] else RAW for row in rows]
    axis.bar(range(len(rows)), heights, color=colours, alpha=0.7)
    if any(row["new"] for row in rows):
        axis.plot([], [], "s", color=SAFE, alpha=0.7, label="had no training windows")
    if len(rows) <= MOST_NAMES:
        names = [row["subject"] for row in rows]
        axis.set_xticks(range(len(rows)), names, rotation=90, fontsize=7)
