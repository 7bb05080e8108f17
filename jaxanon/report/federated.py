"""Report of a federated learner: predictions of every client."""

from jaxanon.report import figures, text
from jaxanon.report.figures import INK, QUIET, RAW, SAFE, Picture
from jaxanon.report.text import guaranteed

__all__ = ["draw", "guaranteed", "sentences"]

LOWEST = -1.0  # Smallest R² that is drawn; R² has no lower bound.
MAX_NAMES = 40
ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1)}


def sentences(report: dict) -> list[str]:
    """Returns the results of a learner in sentences."""
    (worst,) = [row for row in report["clients"] if row["subject"] == report["worst"]]
    values = {"shuffled": None, "interval": None, **report, "worst_client": worst}
    unfinished = text.unfinished(report["method"].get("unfinished"))
    return unfinished + text.sentences("federated.txt", **values)


def draw(report: dict) -> Picture:
    """Draws every client's accuracy or R² in ascending order, and their mean.

    R² has a second panel: predictions of the median client.
    """
    if "unit" in report:
        return _regression(report)
    rows = sorted(report["clients"], key=lambda row: row["accuracy"])
    figure, axes = figures.grid(1, 1, figures.WIDTH, 3.6)
    axis = axes[0, 0]
    _bars(axis, rows, [100 * row["accuracy"] for row in rows])
    mean, majority = 100 * report["mean"]["accuracy"], report["pooled"]["majority"]
    axis.set_ylim(0, 100)
    levels = []
    for level, words, style in (
        (mean, f"mean {mean:.1f} %", "--"),
        (100 * majority, f"largest class {100 * majority:.1f} %", ":"),
    ):
        axis.axhline(level, color=INK, ls=style, lw=1.3)
        levels.append((level, words, INK))
    figures.label_lines(axis, levels)
    what = f"{figures.short(report['attribute'])}: accuracy [%]"
    figures.label(axis, "client, in ascending order", what, lines=False)
    return figures.picture(
        figure,
        "Accuracy of each client on its own test windows. Dashed: their mean. Dotted: "
        f"the frequency of the largest class.{_without_training(rows)}",
    )


def _without_training(rows):
    new = any(row["new"] for row in rows)
    return " Orange: clients without training windows." if new else ""


def _regression(report):
    rows = sorted(report["clients"], key=lambda row: row["r2"])
    figure, axes = figures.grid(2, 1, figures.WIDTH, 3.0)
    above, below = axes[:, 0]
    heights = [max(row["r2"], LOWEST) for row in rows]
    _bars(above, rows, heights)
    levels = {"mean": ("--", report["mean"])}
    if "persistence" in report["baselines"]:
        levels["persistence"] = (":", report["baselines"]["persistence"]["mean"])
    above.axhline(0, color=QUIET, lw=0.8)
    above.set_ylim(min(0, *heights) * 1.02, 1.02)
    labels = []
    for name, (style, scores) in levels.items():
        level, words = max(scores["r2"], LOWEST), f"{name} {scores['r2']:.2f}"
        above.axhline(level, color=INK, ls=style, lw=1.3)
        labels.append((level, words, INK))
    figures.label_lines(above, labels, gap=0.07)
    figures.label(
        above,
        "client, in ascending order",
        f"R² of {figures.short(report['attribute'])}",
        lines=False,
    )
    example, unit = (
        report["example"],
        figures.short(f"{report['attribute']} [{report['unit']}]"),
    )
    below.plot(example["truth"], color=INK, lw=1.1, label="true")
    below.plot(example["predicted"], color=RAW, lw=1.1, label="predicted")
    figures.label(below, f"test window of client {example['subject']}", unit)
    below.legend(fontsize=9, frameon=False, ncols=3, **ABOVE)
    clipped = sum(row["r2"] < LOWEST for row in rows)
    more = f" {clipped} below {LOWEST:g} are drawn there." if clipped else ""
    return figures.picture(
        figure,
        f"Top: R² of each client on its own test windows; dashed: their mean.{more}"
        f"{_without_training(rows)} Bottom: the last test windows and predictions of "
        f"client {example['subject']}, which has the median R².",
    )


def _bars(axis, rows, heights):
    """Draws a bar per client, with its name if there is space."""
    colours = [SAFE if row["new"] else RAW for row in rows]
    axis.bar(range(len(rows)), heights, color=colours, alpha=0.7)
    if len(rows) <= MAX_NAMES:
        names = [figures.short(row["subject"], 12) for row in rows]
        axis.set_xticks(range(len(rows)), names, rotation=90, fontsize=9)
