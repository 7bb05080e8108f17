"""The figures of a report, as PNG: drawn on canvases of their own, no global state."""

import io
import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxanon.report.words import adversaries, among, raw_scores, to_hide

# Told apart by the colour-blind; ``INK`` is that of the page's text.
RAW, SAFE, GOOD, QUIET, INK = "#0072B2", "#D55E00", "#009E73", "#767676", "#1c2430"
MOST_CLASSES, MOST_CHANNELS, MOST_NUMBERS = 8, 6, 12
DPI = 130
FAR = 300  # Times the reach of most values: what lies beyond is cut off.


class Picture(NamedTuple):
    """A figure and what it says to whoever cannot see it."""

    png: bytes
    caption: str


def draw(report: dict, examples, history: list[dict]) -> dict[str, Picture]:
    """All figures by name; no training curves of a single point."""
    drawn = {"plane": plane(report), "windows": windows(report["dataset"], examples)}
    curves = training(history)
    if curves is not None:
        drawn["training"] = curves
    names = [report["utility"]["attribute"], *report["intrusive"]]
    if report["linkage"] and "subject" not in names:
        names.append("subject")
    for attribute in names:
        panels = _matrices(report, attribute)
        if panels:
            drawn[f"confusion_{attribute}"] = confusion(report, attribute, panels)
    return drawn


def grid(rows, columns, width, height, *, layout: Any = "constrained", **options):
    """``(figure, axes)`` of panels of so many inches each, on a canvas of its own."""
    figure = Figure((width * columns, height * rows), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure, axes


def picture(figure, caption) -> Picture:
    """A figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor="white")
    return Picture(file.getvalue(), caption)


def windows(dataset: dict, examples) -> Picture:
    """Raw over anonymized: a row per public class, a column per channel."""
    names = examples.names[:MOST_CLASSES]
    channels = dataset["channels"][:MOST_CHANNELS]
    seconds = np.arange(dataset["time"]) / dataset["rate_hz"]
    figure, axes = grid(
        len(names), len(channels), 2.5, 1.45, layout=None, sharex=True, sharey="col"
    )
    for row, name in enumerate(names):
        for column, channel in enumerate(channels):
            axis = axes[row, column]
            axis.plot(seconds, examples.raw[row, :, column], color=RAW, lw=1.1)
            axis.plot(seconds, examples.safe[row, :, column], color=SAFE, lw=1.1)
            axis.set_xlim(0, seconds[-1])
            axis.grid(alpha=0.25, lw=0.5)
            if row == 0:
                unit = dataset["units"][column]
                axis.set_title(f"{channel} [{unit}]", fontsize=10)
            if row == len(names) - 1:
                axis.set_xlabel("s", fontsize=9)
        axes[row, 0].set_ylabel(name, fontsize=10, fontweight="bold")
    # By hand: matplotlib's own layout of many panels takes seconds.
    wide, high = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.85 / wide,
        right=1 - 0.1 / wide,
        bottom=0.45 / high,
        top=1 - 0.6 / high,
        wspace=0.3,
        hspace=0.25,
    )
    lines = axes[0, 0].lines
    figure.legend(
        lines, ("raw", "anonymized"), loc="upper left", ncols=2, frameon=False
    )
    left_out = len(dataset["channels"]) - len(channels)
    more = f" The last {left_out} channels are not shown." if left_out else ""
    left_out = len(examples.names) - len(names)
    more += f" The last {left_out} classes are not shown." if left_out else ""
    return picture(
        figure,
        f"One test window of each {dataset['public']}, raw (blue) and anonymized "
        f"(orange), in physical units over seconds.{more}",
    )


def training(history: list[dict]) -> Picture | None:
    """Every metric of the history over rounds; None of a single point, or of none."""
    names = [name for name in (history[0] if history else ()) if name != "round"]
    if not names or len(history) < 2:
        return None
    columns = 2 if len(names) in (2, 4) else min(3, len(names))
    figure, axes = grid(math.ceil(len(names) / columns), columns, 3.3, 2.3)
    rounds = [entry.get("round", index) for index, entry in enumerate(history)]
    for axis, name in zip(axes.flat, names, strict=False):
        values = [entry.get(name, math.nan) for entry in history]
        marker = "o" if len(rounds) < 10 else None
        axis.plot(rounds, values, color=RAW, lw=1.3, marker=marker, ms=3)
        cut_peaks(axis, values)
        axis.set_title(name.replace("_", " "), fontsize=10)
        axis.set_xlabel("round", fontsize=9)
        axis.grid(alpha=0.25, lw=0.5)
    for axis in list(axes.flat)[len(names) :]:
        axis.set_visible(False)
    return picture(figure, "What training reported, over its rounds.")


def cut_peaks(axis, values):
    """Keeps what most values do in sight where a few are far beyond them."""
    finite = np.array([value for value in values if math.isfinite(value)])
    if not len(finite):
        return
    low, high = np.percentile(finite, (5, 95))
    reach = high - low
    above, below = finite.max() > high + FAR * reach, finite.min() < low - FAR * reach
    if not reach or not (above or below):
        return
    axis.set_ylim(low - reach, high + reach)
    peak = finite[np.abs(finite).argmax()]
    where = {"transform": axis.transAxes, "ha": "right", "va": "top", "fontsize": 8}
    axis.text(0.98, 0.96, f"peaks cut, up to {peak:.2g}", color=QUIET, **where)


def _matrices(report, attribute):
    """(title, scores) of each confusion matrix that there is of ``attribute``."""
    if attribute == report["utility"]["attribute"]:
        judged = report["utility"]
    else:
        judged = report["intrusive"].get(attribute)
    panels = []
    if judged:
        panels.append(("raw windows,\njudge trained on raw", judged["raw"]))
        panels.append(
            ("anonymized windows,\njudge trained on raw", judged["anonymized"])
        )
    section = report["reidentification"].get(attribute)
    if section is None and attribute == "subject":
        section = report["linkage"]
        if section and section["raw"] and not judged:
            panels.append(("raw windows,\nattacker trained on raw", section["raw"]))
    if section:
        worst = section["worst"]
        title = f"anonymized windows,\n{worst} retrained on them"
        panels.append((title, section["attackers"][worst]))
    return panels


def confusion(report: dict, attribute: str, panels) -> Picture:
    """Confusion matrices side by side, each row in percent of its class."""
    classes = report["dataset"]["classes"][attribute]
    size = min(max(2.6, 0.42 * len(classes) + 1.2), 5.5)
    # Titles have two lines.
    figure, axes = grid(1, len(panels), size + 0.3, size + 0.7)
    for axis, (title, scores) in zip(axes.flat, panels, strict=True):
        counts = np.array(scores["confusion"], float)
        shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=100)
        axis.set_title(title, fontsize=9)
        axis.spines[:].set_visible(False)
        axis.set_xlabel(f"called {attribute}", fontsize=9)
        axis.set_xticks(range(len(classes)), classes, rotation=90)
        axis.set_yticks(range(len(classes)), classes)
        if len(classes) <= MOST_NUMBERS:
            _write_numbers(axis, shares)
    axes[0, 0].set_ylabel(f"true {attribute}", fontsize=9)
    return picture(
        figure,
        f"Of the windows of each true {attribute} (row), the percentage called each "
        "class (column). An attribute is hidden where all rows look alike.",
    )


def _write_numbers(axis, shares):
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 55 else "black"
        axis.text(
            column,
            row,
            f"{share:.0f}",
            ha="center",
            va="center",
            color=colour,
            fontsize=8,
        )


def plane(report: dict) -> Picture:
    """What survives over what leaks, a panel per attribute that is attacked."""
    names = list(report["intrusive"])
    if report["linkage"] and "subject" not in names:
        names.append("subject")
    names = [name for name in names if raw_scores(report, name)]
    names = [name for name in names if adversaries(report, name)]
    columns = max(1, min(3, len(names)))
    figure, axes = grid(math.ceil(len(names) / columns) or 1, columns, 3.9, 3.7)
    for axis, name in zip(axes.flat, names, strict=False):
        _draw_plane(axis, report, name, raw_scores(report, name))
    for axis in list(axes.flat)[len(names) :]:
        axis.set_visible(False)
    return picture(
        figure,
        f"Utility ({report['utility']['attribute']} accuracy) over what an adversary "
        "reads of each attribute. Raw windows lie at the top right; the goal is the "
        "star: all utility, and the attribute at chance level.",
    )


def _draw_plane(axis, report, attribute, raw):
    utility = report["utility"]
    secret = to_hide(report)  # Whose windows were to be lost.
    safe, before = (among(utility[side], secret) for side in ("anonymized", "raw"))
    kept, top, chance = 100 * safe.accuracy, 100 * before.accuracy, 100 * raw["chance"]
    level = 100 * before.majority
    axis.axvline(chance, color=QUIET, ls="--", lw=1)
    axis.axhline(level, color=QUIET, ls=":", lw=1)
    axis.plot(100 * raw["balanced_accuracy"], top, "o", color=RAW, ms=9, label="raw")
    axis.plot(chance, top, "*", color=GOOD, ms=15, label="goal")
    markers = dict(zip(report["attackers"], "D^vPX<>hp", strict=False))
    for name, scores in adversaries(report, attribute).items():
        axis.plot(
            100 * scores["balanced_accuracy"],
            kept,
            markers.get(name.split()[0], "s"),
            color=SAFE,
            mfc="none",
            mew=1.8,
            ms=9,
            label=name.split(" on ")[0].replace(" trained", ", trained on raw"),
            clip_on=False,
        )
    axis.set_xlim(0, 105)
    axis.set_ylim(0, 105)
    axis.text(chance + 1, 2, "chance", color=QUIET, fontsize=8)
    axis.text(104, level + 1, "majority", color=QUIET, fontsize=8, ha="right")
    axis.set_xlabel(f"{attribute} read [% balanced accuracy]", fontsize=9)
    axis.set_ylabel(f"{utility['attribute']} kept [% accuracy]", fontsize=9)
    axis.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
