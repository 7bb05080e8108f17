"""The figures of a report, as PNG: drawn on canvases of their own, no global state."""

import io
import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter

from jaxanon.report.text import adversaries, among, attacked, raw_scores, to_hide

# Colour-blind safe; ``INK`` is that of the page's text.
RAW, SAFE, GOOD, QUIET, INK = "#0072B2", "#D55E00", "#009E73", "#767676", "#1c2430"
MOST_CLASSES, MOST_CHANNELS, MOST_NUMBERS = 8, 6, 12
DPI = 130
FAR = 300  # Times the reach of most values: what lies beyond is cut off.
LINES, GUESS = ("-", "--", "-.", (0, (1, 1))), (0, (6, 6))


class Picture(NamedTuple):
    """A figure and its caption, which is also its alternative text."""

    png: bytes
    caption: str


def draw(report: dict, examples, history: list[dict]) -> dict[str, Picture]:
    """All figures by name; no training curves of a single point."""
    drawn = {"plane": plane(report), "windows": windows(report["dataset"], examples)}
    curves = training(history)
    if curves is not None:
        drawn["training"] = curves
    for attribute in [report["utility"]["attribute"], *attacked(report)]:
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


def wrapped(count, columns, width, height):
    """``(figure, axes)`` of ``count`` panels, so many in a row; others are hidden."""
    figure, axes = grid(math.ceil(count / columns) or 1, columns, width, height)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, axes


def label(axis, x: str = "", y: str = "", title: str = "", lines: bool = True):
    """Names an axis and draws faint grid lines."""
    axis.set_xlabel(x, fontsize=9)
    axis.set_ylabel(y, fontsize=9)
    axis.set_title(title, fontsize=10)
    if lines:
        axis.grid(alpha=0.25, lw=0.5)


def literal(figure):
    """Shows ``$`` in names as it is: matplotlib would read formulas between two.

    Numbers on axes keep their formulas, such as powers of ten.
    """
    numbers = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = axis.get_ticklabels()  # Makes them, too.
            named = FixedFormatter | FuncFormatter  # As set_xticks makes them.
            if not isinstance(axis.get_major_formatter(), named):
                numbers += labels
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for text in numbers:
        text.set_parse_math(True)


def picture(figure, caption) -> Picture:
    """A figure as PNG."""
    literal(figure)
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
            unit = dataset["units"][column]
            title = f"{channel} [{unit}]" if unit else channel
            last = row == len(names) - 1
            label(axis, "s" if last else "", title="" if row else title)
        axes[row, 0].set_ylabel(name, fontsize=10, fontweight="bold")
    # By hand: matplotlib's own layout of many panels takes seconds.
    wide, high = figure.get_size_inches()
    sides = {"left": 0.85 / wide, "right": 1 - 0.1 / wide}
    ends = {"bottom": 0.45 / high, "top": 1 - 0.6 / high}
    figure.subplots_adjust(**sides, **ends, wspace=0.3, hspace=0.25)
    lines, words = axes[0, 0].lines, ("raw", "anonymized")
    figure.legend(lines, words, loc="upper left", ncols=2, frameon=False)
    more = ""
    for what, count in (
        ("channels", len(dataset["channels"]) - len(channels)),
        ("classes", len(examples.names) - len(names)),
    ):
        more += f" The last {count} {what} are not shown." if count else ""
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
    figure, axes = wrapped(len(names), columns, 3.3, 2.3)
    rounds = [entry.get("round", index) for index, entry in enumerate(history)]
    for axis, name in zip(axes.flat, names, strict=False):
        values = [entry.get(name, math.nan) for entry in history]
        marker = "o" if len(rounds) < 10 else None
        axis.plot(rounds, values, color=RAW, lw=1.3, marker=marker, ms=3)
        cut_peaks(axis, values)
        label(axis, "round", title=name.replace("_", " "))
    return picture(figure, "What training reported, over its rounds.")


def cut_peaks(axis, values):
    """Keeps what most values do in sight if a few are far beyond them."""
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
    """(title, scores) of each confusion matrix of ``attribute``."""
    judged = report["intrusive"].get(attribute)
    if attribute == report["utility"]["attribute"]:
        judged = report["utility"]
    panels = []
    if judged:
        for side in ("raw", "anonymized"):
            panels.append((f"{side} windows,\njudge trained on raw", judged[side]))
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
        label(axis, f"called {attribute}", lines=False)
        axis.set_title(title, fontsize=9)
        axis.spines[:].set_visible(False)
        axis.set_xticks(range(len(classes)), classes, rotation=90)
        axis.set_yticks(range(len(classes)), classes)
        if len(classes) <= MOST_NUMBERS:
            for (row, column), share in np.ndenumerate(shares):
                style = {"ha": "center", "va": "center", "fontsize": 8}
                colour = "white" if share > 55 else "black"
                axis.text(column, row, f"{share:.0f}", color=colour, **style)
    axes[0, 0].set_ylabel(f"true {attribute}", fontsize=9)
    return picture(
        figure,
        f"Of the windows of each true {attribute} (row), the percentage called each "
        "class (column). An attribute is hidden where all rows look alike.",
    )


def plane(report: dict) -> Picture:
    """What survives over what leaks, a panel per attribute that is attacked."""
    names = [name for name in attacked(report) if raw_scores(report, name)]
    names = [name for name in names if adversaries(report, name)]
    figure, axes = wrapped(len(names), max(1, min(3, len(names))), 3.9, 3.7)
    for axis, name in zip(axes.flat, names, strict=False):
        _draw_plane(axis, report, name, raw_scores(report, name))
    return picture(
        figure,
        f"Utility ({report['utility']['attribute']} accuracy) over what an attacker "
        "infers of each attribute. Raw windows lie at the top right; the goal is the "
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
    hollow = {"color": SAFE, "mfc": "none", "mew": 1.8, "ms": 9, "clip_on": False}
    for name, scores in adversaries(report, attribute).items():
        marker = markers.get(name.split()[0], "s")
        short = name.split(" on ")[0].replace(" trained", ", trained on raw")
        reached = 100 * scores["balanced_accuracy"]
        axis.plot(reached, kept, marker, label=short, **hollow)
    axis.set_xlim(0, 105)
    axis.set_ylim(0, 105)
    axis.text(chance + 1, 2, "chance", color=QUIET, fontsize=8)
    axis.text(104, level + 1, "majority", color=QUIET, fontsize=8, ha="right")
    inferred = f"{attribute} inferred [% balanced accuracy]"
    label(axis, inferred, f"{utility['attribute']} kept [% accuracy]", lines=False)
    axis.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)


def budget(heading: str, rows: list[dict]) -> Picture:
    """Balanced accuracy of every inference over ε; dotted, what raw windows tell."""
    raw, *released = rows
    figure, axes = grid(1, 1, 6.4, 4.4)
    axis = axes[0, 0]
    epsilons = [row["epsilon"] for row in released]
    styles = {True: 0, False: 0}
    for name in raw["scores"]:
        keeps = name in raw["useful"]
        line, colour = LINES[styles[keeps] % len(LINES)], RAW if keeps else SAFE
        styles[keeps] += 1
        told = [100 * row["scores"][name]["balanced_accuracy"] for row in released]
        role = "useful" if keeps else "sensitive"
        axis.plot(epsilons, told, line, marker="o", ms=4, color=colour, lw=1.5)
        axis.lines[-1].set_label(f"{name} ({role})")
        level = 100 * raw["scores"][name]["balanced_accuracy"]
        axis.axhline(level, color=colour, ls=":", lw=1.2)
        chance = 100 * raw["scores"][name]["chance"]
        axis.axhline(chance, color=colour, ls=GUESS, lw=0.8, alpha=0.6)
    axis.plot([], [], color=QUIET, ls=":", lw=1.2, label="raw windows")
    axis.plot([], [], color=QUIET, ls=GUESS, lw=0.8, label="guessing")
    label(axis, "ε of a window", "balanced accuracy, %")
    axis.set_title(heading, fontsize=9)
    axis.set_xscale("log")
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.minorticks_off()
    axis.set_ylim(0, 100)
    axis.legend(fontsize=8, frameon=False, loc="best")
    return picture(
        figure,
        "Balanced accuracy of classifiers that are taught on released training windows "
        "and tried on released test windows, over the ε of each window. In the same "
        "colour what raw windows tell (dotted) and what guessing does (thin, dashed).",
    )
