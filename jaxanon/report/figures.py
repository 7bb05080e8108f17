"""Figures of a report, as SVG on a transparent background, in light and dark."""

import io
import math
import re
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter

from jaxanon.report import verdicts

# Colours for color-blind readers; ``INK`` is the page's text color.
RAW, SAFE, GOOD, QUIET, INK = "#0072B2", "#D55E00", "#009E73", "#767676", "#1c2430"
AMBER, PALE = "#E69F00", "#d5dbe2"
DARK = {
    **{RAW: "#5cb3ea", SAFE: "#ff9a57", GOOD: "#3ccfa2", QUIET: "#a3aebb"},
    **{INK: "#e7ebf0", AMBER: "#f2b93f", PALE: "#4a5563", "#000000": "#a3aebb"},
}
WIDTH = 9.6  # Inches of the page's column: text keeps its size.
MAX_CLASSES, MAX_NUMBERS = 24, 12  # Classes of a confusion matrix; with numbers.
MAX_CHANNELS = 3
MAX_ATTRIBUTES = 6
DPI = 130
FAR = 300  # Peaks beyond this multiple of the range of most values are cut.
LINES, CHANCE_LINE = ("-", "--", "-.", (0, (1, 1))), (0, (6, 6))


class Picture(NamedTuple):
    """Figure and caption; the caption is also the alternative text."""

    svg: bytes
    caption: str
    figure: Figure | None = None

    @property
    def png(self) -> bytes:
        """The figure as PNG on white."""
        assert self.figure is not None
        file = io.BytesIO()
        self.figure.savefig(file, format="png", facecolor="white")
        return file.getvalue()


def draw(report: dict, examples, history: list[dict]) -> dict[str, Picture]:
    """Draws all figures of an anonymizer's report, by name."""
    drawn = {
        "leakage": leakage(report),
        "windows": windows(report["dataset"], examples),
    }
    curves = training(history)
    if curves is not None:
        drawn["training"] = curves
    for name in [report["utility"]["attribute"], *verdicts.attacked(report)]:
        classes = report["dataset"]["classes"][name]
        panels = _matrices(report, name)
        if panels and len(classes) <= MAX_CLASSES:
            drawn[f"confusion_{name}"] = confusion(report, name, panels)
    return drawn


def grid(rows, columns, width, height, *, layout: Any = "constrained", **options):
    """Returns ``(figure, axes)``; ``width`` and ``height`` are inches per panel."""
    figure = Figure((width * columns, height * rows), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=9)
    return figure, axes


def _layout(figure, **padding):
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(**padding)


def wrapped(count, columns, width, height):
    """Returns ``(figure, axes)`` of ``count`` visible panels in rows of ``columns``."""
    figure, axes = grid(math.ceil(count / columns) or 1, columns, width, height)
    _layout(figure, h_pad=0.1)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, axes


def label(axis, x: str = "", y: str = "", title: str = "", lines: bool = True):
    """Labels an axis and draws faint grid lines."""
    axis.set_xlabel(x, fontsize=9)
    axis.set_ylabel(y, fontsize=9)
    axis.set_title(title, fontsize=10)
    if lines:
        axis.grid(alpha=0.25, lw=0.5)


def short(name: str, length: int = 24) -> str:
    """Cuts a name to ``length`` characters.

    Example:
      >>> short("going upstairs", 8), short("sitting", 8)
      ('going u…', 'sitting')
    """
    return name if len(name) <= length else name[: length - 1] + "…"


def label_lines(axis, levels, *, gap=0.045, fontsize=8.5):
    """Writes labels to the right of horizontal lines, without overlap.

    Args:
      axis: axis with its final y limits.
      levels: ``(y, words, color)`` of each line.
      gap: smallest distance of two labels, as a fraction of the axis.
      fontsize: in points.
    """
    low, high = axis.get_ylim()
    at = -math.inf
    for y, words, color in sorted(levels):
        at = max((y - low) / (high - low), at + gap)
        style = {"transform": axis.transAxes, "va": "center", "fontsize": fontsize}
        axis.text(1.01, at, words, color=color, **style)


def literal(figure):
    """Shows ``$`` in names as is, not as a formula.

    Numbers on axes keep their formulas, such as powers of ten.
    """
    numbers = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = axis.get_ticklabels()  # Also creates them.
            named = FixedFormatter | FuncFormatter  # Those of set_xticks.
            if not isinstance(axis.get_major_formatter(), named):
                numbers += labels
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for text in numbers:
        text.set_parse_math(True)


def picture(figure, caption) -> Picture:
    """Renders a figure as SVG."""
    literal(figure)
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxanon"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue().decode()
    svg = re.sub(r"<!DOCTYPE.*?>|<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"(<svg[^>]*>)", lambda tag: tag[1] + _style(), svg, count=1)
    return Picture(svg.encode(), caption, figure)


def _style():
    """Colors for light and dark pages."""
    rules = [f"text{{fill:{DARK[INK]}}}"]
    for light, dark in DARK.items():
        for paint in ("fill", "stroke"):
            found = f'[style*="{paint}: {light.lower()}"]'
            rules.append(f"{found}{{{paint}:{dark} !important}}")
    dark = "".join(rules)
    return (
        f"<style>text{{fill:{INK}}}@media (prefers-color-scheme:dark){{{dark}}}</style>"
    )


def leakage(report: dict) -> Picture:
    """Draws every attack on every private attribute, in points above chance level."""
    rows = []
    for name in verdicts.attacked(report)[:MAX_ATTRIBUTES]:
        rows += _rows(report, name)
    height = 0.25 * len(rows) + 0.95
    figure, axes = grid(1, 1, WIDTH, height, layout=None)
    axis = axes[0, 0]
    ends = {"bottom": 0.6 / height, "top": 1 - 0.3 / height}
    figure.subplots_adjust(left=3.3 / WIDTH, right=1 - 2.3 / WIDTH, **ends)
    values = [100 * leak.excess for _, leak, _ in rows if leak is not None]
    values += [100 * (x.interval[1] - x.chance) for _, x, _ in rows if x and x.interval]
    right = max([25.0, *values]) + 4
    left = min([0.0, *(100 * leak.excess for _, leak, _ in rows if leak)]) - 6
    green, amber = (100 * limit for limit, _ in verdicts.LIMITS)
    for low, high, color in (
        (left, green, GOOD),
        (green, amber, AMBER),
        (amber, right, SAFE),
    ):
        axis.axvspan(low, high, color=color, alpha=0.12, lw=0)
    axis.axvline(0, color=INK, lw=1, ls="--")
    beyond = {"transform": axis.get_yaxis_transform(), "va": "center", "fontsize": 9}
    for place, (words, leak, kind) in enumerate(rows):
        bold = "bold" if kind in ("head", "strongest") else "normal"
        axis.text(-0.015, place, words, ha="right", fontweight=bold, **beyond)
        if kind == "head":
            axis.axhline(place - 0.5, color=QUIET, lw=0.6, alpha=0.6)
            continue
        if leak is None:
            axis.text(1.015, place, "not measured", color=QUIET, **beyond)
            continue
        color = {"raw": RAW, "strongest": SAFE}.get(kind, QUIET)
        if leak.interval:
            bounds = [100 * (bound - leak.chance) for bound in leak.interval]
            axis.plot(bounds, [place, place], color=color, lw=1.6)
        style = {"color": color, "ms": 6, "mfc": color if leak.interval else "none"}
        axis.plot(100 * leak.excess, place, "o", **style)
        value = f"{100 * leak.value:.1f} % {leak.measure}"
        axis.text(1.015, place, value, color=color, fontweight=bold, **beyond)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_xlim(left, right)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    for x, words, side in (
        (0, "chance", "right"),
        (green, f"+{green:g}", "center"),
        (amber, f"+{amber:g}", "center"),
    ):
        axis.annotate(words, (x, 1.0), xycoords=("data", "axes fraction"), ha=side,
                      va="bottom", fontsize=8.5, color=QUIET)  # fmt: skip
    axis.set_xlabel("percentage points above chance level", fontsize=9)
    return picture(
        figure,
        "The larger of balanced accuracy and AUC of each attack, in points above "
        "chance level; bars are 95 % intervals over persons. The strongest attack "
        "of each attribute is orange, raw windows are blue. The verdict is green if "
        "the bar of the strongest attack ends within 5 points, amber within 15. "
        "Hollow dots have no interval.",
    )


def _rows(report, name):
    """``(words, leak, kind)`` of an attribute: head, raw windows, attacks."""
    verdict = verdicts.attribute(report, name)
    role = "" if name in report["intrusive"] else " (not in --private)"
    rows: list[tuple[str, Any, str]] = [(f"{short(name)}{role}", None, "head")]
    if verdict["value"] is None:
        return [*rows, ("no attack could be scored", None, "other")]
    raw = verdicts.raw_scores(report, name)
    if raw is not None:
        rows.append(("raw windows", _leak(raw), "raw"))
    strongest: dict[str, verdicts.Attack] = {}  # of each group
    for attack in verdicts.attacks(report, name):
        group = attack.words if attack.name in ("classifier", "retrained") else (
            attack.name + attack.words.split(", ")[1] * (attack.name == "stream")
        )  # fmt: skip
        held = strongest.get(group)
        if held is None or _excess(attack) > _excess(held):
            strongest[group] = attack
    for attack in strongest.values():
        words = short(attack.words.replace(" on anonymized windows", ""), 46)
        kind = "strongest" if attack.words == verdict["attack"] else "other"
        rows.append((words, attack.scores and _leak(attack.scores), kind))
    return rows


def _leak(scores):
    return None if scores.get("not_measured") else verdicts.leak(scores)


def _excess(attack):
    leak = attack.scores and _leak(attack.scores)
    return leak.excess if leak else -math.inf


def windows(dataset: dict, examples) -> Picture:
    """Draws raw and anonymized windows: a row per example, a column per channel."""
    channels = dataset["channels"][:MAX_CHANNELS]
    seconds = np.arange(dataset["time"]) / dataset["rate_hz"]
    width, height = WIDTH / len(channels), 1.25
    figure, axes = grid(
        len(examples.names), len(channels), width, height, layout=None,
        sharex=True, sharey="col",
    )  # fmt: skip
    for row, name in enumerate(examples.names):
        for column, channel in enumerate(channels):
            axis = axes[row, column]
            axis.plot(seconds, examples.raw[row, :, column], color=RAW, lw=2.2)
            axis.plot(seconds, examples.safe[row, :, column], color=SAFE, lw=1.1)
            axis.set_xlim(0, seconds[-1])
            unit = dataset["units"][column]
            title = short(f"{channel} [{unit}]" if unit else channel, 40)
            last = row == len(examples.names) - 1
            label(axis, "time [s]" if last else "", title="" if row else title)
        place = {"xytext": (3, 3), "textcoords": "offset points"}
        axes[row, 0].annotate(
            short(name, 60),
            (0, 1),
            xycoords="axes fraction",
            fontsize=9,
            va="bottom",
            **place,
        )
    # By hand: matplotlib's own layout of many panels takes seconds.
    wide, high = figure.get_size_inches()
    sides = {"left": 0.6 / wide, "right": 1 - 0.1 / wide}
    ends = {"bottom": 0.5 / high, "top": 1 - 0.75 / high}
    figure.subplots_adjust(**sides, **ends, wspace=0.2, hspace=0.4)
    for row, column in np.ndindex(*axes.shape):
        if row == 0:
            axes[row, column].set_title(axes[row, column].get_title(), pad=20)
    for x, words, color in ((0.6, "raw", RAW), (1.1, "anonymized", SAFE)):
        figure.text(x / wide, 1 - 0.2 / high, words, color=color, fontsize=10,
                    fontweight="bold")  # fmt: skip
    rest = len(dataset["channels"]) - len(channels)
    more = f" {rest} more channels are not shown." if rest else ""
    return picture(
        figure,
        f"Test windows of some {dataset['public']} and private classes, raw (blue) and "
        f"anonymized (orange), in physical units.{more}",
    )


def training(history: list[dict]) -> Picture | None:
    """Draws every metric of the history by round; None with fewer than two rounds."""
    names = [name for name in (history[0] if history else ()) if name != "round"]
    if not names or len(history) < 2:
        return None
    columns = 2 if len(names) in (2, 4) else min(3, len(names))
    figure, axes = wrapped(len(names), columns, min(3.2, WIDTH / columns), 2.2)
    rounds = [entry.get("round", index) for index, entry in enumerate(history)]
    for axis, name in zip(axes.flat, names, strict=False):
        values = [entry.get(name, math.nan) for entry in history]
        marker = "o" if len(rounds) < 10 else None
        axis.plot(rounds, values, color=RAW, lw=1.3, marker=marker, ms=3)
        cut_peaks(axis, values)
        label(axis, "round", title=training_title(name))
    return picture(
        figure,
        "Objectives of training by round. They are not scores: "
        "a falling loss of a discriminator means a stronger opponent in training, not "
        "lost utility. The verdict uses classifiers that had no part in training.",
    )


def training_title(name: str) -> str:
    """Returns the title of a training curve.

    Example:
      >>> training_title("loss"), training_title("critic"), training_title("kl_loss")
      ('total training loss', 'training loss: critic', 'training loss: kl')
    """
    if name == "loss":
        return "total training loss"
    if any(word in name for word in ("accuracy", "bytes", "rate", "norm", "scale")):
        return f"in training: {name.replace('_', ' ')}"
    return f"training loss: {name.removesuffix('_loss').replace('_', ' ')}"


def cut_peaks(axis, values):
    """Limits the axis to the range of most values if a few are far beyond it."""
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
    axis.text(0.98, 0.96, f"peaks cut, largest {peak:.2g}", color=QUIET, **where)


def _matrices(report, name):
    """Returns ``(title, scores)`` of each confusion matrix of an attribute."""
    judged = report["intrusive"].get(name)
    if name == report["utility"]["attribute"]:
        judged = report["utility"]
    panels = []
    if judged:
        for side in ("raw", "anonymized"):
            panels.append((f"{side} windows,\nraw-data classifier", judged[side]))
    section = report["reidentification"].get(name)
    if section is None and name == "subject":
        section = report["linkage"]
        if section and section["raw"] and not judged:
            panels.append(("raw windows,\nattacker trained on raw", section["raw"]))
    if section:
        attacker = verdicts.strongest(section)
        title = f"anonymized windows,\n{attacker} retrained on them"
        panels.append((title, section["attackers"][attacker]))
    return [panel for panel in panels if not panel[1].get("not_measured")]


def confusion(report: dict, name: str, panels) -> Picture:
    """Draws confusion matrices, each row in percent of its class."""
    classes = [short(each) for each in report["dataset"]["classes"][name]]
    size = min(max(2.2, 0.3 * len(classes) + 1.2), WIDTH / len(panels) - 0.1)
    figure, axes = grid(1, len(panels), size, size + 0.9, sharey=True)
    _layout(figure, wspace=0.06)
    for axis, (title, scores) in zip(axes.flat, panels, strict=True):
        counts = np.array(scores["confusion"], float)
        shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
        for (row, column), share in np.ndenumerate(shares):
            if share >= 0.5:
                corner = column - 0.5, row - 0.5
                cell = {"facecolor": RAW, "alpha": 0.6 * share / 100, "lw": 0}
                axis.add_patch(Rectangle(corner, 1, 1, **cell))
            if len(classes) <= MAX_NUMBERS and np.any(counts[row]):
                style = {"ha": "center", "va": "center", "fontsize": 8.5}
                axis.text(column, row, f"{share:.0f}", **style)
        axis.set_aspect("equal")
        axis.set_xlim(-0.5, len(classes) - 0.5)
        axis.set_ylim(len(classes) - 0.5, -0.5)
        label(axis, f"predicted {short(name)}", lines=False)
        axis.set_title(title, fontsize=9)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        axis.set_xticks(range(len(classes)), classes, rotation=90)
        axis.set_yticks(range(len(classes)), classes)
    axes[0, 0].set_ylabel(f"true {short(name)}", fontsize=9)
    return picture(
        figure,
        f"Percentage of the windows of each true {name} (row) that are predicted as "
        "each class (column). An attribute is hidden if all rows look alike.",
    )


def budget(heading: str, rows: list[dict]) -> Picture:
    """Draws balanced accuracy of every inference over ε, with raw windows dotted."""
    raw, *released = rows
    figure, axes = grid(1, 1, 6.4, 4.4)
    axis = axes[0, 0]
    epsilons = [row["epsilon"] for row in released]
    styles = {True: 0, False: 0}
    for name in raw["scores"]:
        useful = name in raw["useful"]
        line, colour = LINES[styles[useful] % len(LINES)], RAW if useful else SAFE
        styles[useful] += 1
        values = [100 * row["scores"][name]["balanced_accuracy"] for row in released]
        role = "useful" if useful else "sensitive"
        axis.plot(epsilons, values, line, marker="o", ms=4, color=colour, lw=1.5)
        axis.lines[-1].set_label(f"{short(name)} ({role})")
        level = 100 * raw["scores"][name]["balanced_accuracy"]
        axis.axhline(level, color=colour, ls=":", lw=1.2)
        chance = 100 * raw["scores"][name]["chance"]
        axis.axhline(chance, color=colour, ls=CHANCE_LINE, lw=0.8, alpha=0.6)
    axis.plot([], [], color=QUIET, ls=":", lw=1.2, label="raw windows")
    axis.plot([], [], color=QUIET, ls=CHANCE_LINE, lw=0.8, label="chance level")
    label(axis, "ε of a window", "balanced accuracy [%]")
    axis.set_title(heading, fontsize=9)
    axis.set_xscale("log")
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.minorticks_off()
    axis.set_ylim(0, 100)
    axis.legend(fontsize=8, frameon=False, loc="best")
    return picture(
        figure,
        "Balanced accuracy of classifiers trained on released training windows and "
        "tested on released test windows, by ε of each window. Dotted lines: raw "
        "windows. Thin dashed lines: chance level.",
    )
