"""Pareto front of a sweep: utility over leakage of each setting."""

from typing import NamedTuple

from matplotlib.transforms import Bbox

from jaxanon.report import figures, text
from jaxanon.report.figures import GOOD, QUIET, RAW, SAFE, Picture

MEASURES = {  # The strongest attackers first.
    "re-identified": "retrained attacker",
    "intrusive": "raw-data classifier",
}


class Point(NamedTuple):
    """Utility and leakage of a setting, each ``{"mean", "std"}``."""

    row: dict  # of the summary
    utility: dict
    leaked: dict
    on: bool  # on the front


class Panel(NamedTuple):
    """Points of all settings for one private attribute."""

    measure: str  # of ``MEASURES``
    points: list[Point]


def best(points) -> list[bool]:
    """Returns which points are on the Pareto front.

    Args:
      points: pairs of utility (higher is better) and leakage (lower is better).

    Example:
      >>> best([(0.9, 0.6), (0.8, 0.5), (0.8, 0.6), (0.7, 0.5)])
      [True, True, False, False]
    """
    dominated = lambda point: any(
        utility >= point[0] and leaked <= point[1] and (utility, leaked) != point
        for utility, leaked in points
    )
    return [not dominated(tuple(point)) for point in points]


def panels(summary: list[dict], report: dict) -> dict[str, Panel]:
    """Returns a ``Panel`` for each private attribute.

    Leakage is the balanced accuracy of the strongest retrained attacker, or of the
    raw-data classifier if none was retrained. Attributes without either are skipped.

    Args:
      summary: summary of an evaluated sweep; rows without scores are skipped.
      report: any report of the sweep.

    Returns:
      Panels by attribute, with points in the order of the summary.
    """
    rows = [row for row in summary if row["scores"]]
    public = f"{report['utility']['attribute']} accuracy"
    found = {}
    for name in report["intrusive"] if rows else ():
        for measure in MEASURES:
            leak = f"{name} {measure}"
            if leak in rows[0]["scores"]:
                pairs = [(row["scores"][public], row["scores"][leak]) for row in rows]
                front = best([(use["mean"], lost["mean"]) for use, lost in pairs])
                points = zip(rows, *zip(*pairs, strict=True), front, strict=True)
                found[name] = Panel(measure, [Point(*point) for point in points])
                break
    return found


def draw(found: dict[str, Panel], report: dict) -> Picture:
    """Draws utility over leakage of every setting, a panel per private attribute.

    Args:
      found: result of ``panels``, at least one panel.
      report: any report of the sweep.
    """
    columns = min(2, len(found))
    width = figures.WIDTH / 2 if columns > 1 else 6.4
    figure, axes = figures.wrapped(len(found), columns, width, 4.2)
    for axis, (name, panel) in zip(axes.flat, found.items(), strict=False):
        _draw(axis, report, name, panel)
    utility = report["utility"]["attribute"]
    return figures.picture(
        figure,
        f"Utility ({utility} accuracy) over leakage, one point per setting: up is "
        "useful, left is private. The line joins the Pareto-optimal settings. Bars are "
        "standard deviations over seeds and splits. The table lists all settings.",
    )


def draw_scores(summary: list[dict]) -> Picture:
    """Draws every score of a learner's settings, a panel per score.

    Args:
      summary: summary of an evaluated sweep, at least one row with scores; other rows
        are skipped.
    """
    rows = [row for row in summary if row["scores"]]
    names = [
        figures.short(text.settings(row["settings"]) or "all seeds", 40) for row in rows
    ]
    measures = list(rows[0]["scores"])
    height = 1.2 + 0.3 * len(rows)
    width = min(4.6, figures.WIDTH / len(measures))
    figure, axes = figures.grid(1, len(measures), width, height, sharey=True)
    for axis, measure in zip(axes.flat, measures, strict=True):
        for place, row in enumerate(rows):
            score = row["scores"][measure]
            bars = {"xerr": _bar(score), "lw": 0.8, "color": SAFE}
            axis.errorbar(100 * score["mean"], place, fmt="o", ms=6, **bars)
        axis.set_yticks(range(len(rows)), names, fontsize=9)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        name = measure.replace("macro_f1", "macro F1")
        figures.label(axis, f"{name} [%]")
    return figures.picture(
        figure,
        "Mean over clients of each score, a row per setting; bars are standard "
        "deviations over seeds and splits.",
    )


def _draw(axis, report, name, panel):
    public = report["utility"]["attribute"]
    for _, useful, leaked, on in panel.points:
        style = {"color": QUIET, "alpha": 0.6, "mfc": "none"}
        if on:
            style = {"color": SAFE, "mfc": SAFE}
        bars = {"xerr": _bar(leaked), "yerr": _bar(useful), "lw": 0.8}
        point = 100 * leaked["mean"], 100 * useful["mean"]
        axis.errorbar(*point, fmt="o", ms=6, **bars, **style)
    front = sorted(
        (
            100 * leaked["mean"],
            100 * useful["mean"],
            figures.short(text.settings(row["settings"]), 48),
        )
        for row, useful, leaked, on in panel.points
        if on
    )
    across, up, names = zip(*front, strict=True)
    axis.plot(across, up, color=SAFE, lw=1.1)
    raw = 100 * report["utility"]["raw"]["accuracy"]
    judged = report["intrusive"][name]
    if judged:
        chance = 100 * judged["raw"]["chance"]
        axis.axvline(chance, color=QUIET, ls="--", lw=1)
        low, high = axis.get_ylim()
        top = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
        axis.annotate("chance", (chance, 1.0), color=QUIET, fontsize=8.5, **top)
        axis.plot(chance, raw, "*", color=GOOD, ms=14, zorder=0)
        level = 100 * judged["raw"]["balanced_accuracy"]
        axis.plot(level, raw, "s", color=RAW, ms=7)
        top = max(high, raw) + 0.12 * (max(high, raw) - low)
        axis.set_ylim(low, top)
        above = {"xytext": (8, 6), "textcoords": "offset points", "fontsize": 8.5}
        axis.annotate("goal", (chance, raw), color=GOOD, ha="left", **above)
        above["xytext"] = (0, 9)
        axis.annotate("raw windows", (level, raw), color=RAW, ha="right", **above)
    _annotate(axis, across, up, names)
    attacker = MEASURES[panel.measure]
    leakage = f"{figures.short(name)}: balanced accuracy of the {attacker} [%]"
    figures.label(axis, leakage, f"{figures.short(public)}: accuracy [%]")


def _annotate(axis, across, up, names):
    """Writes the settings next to points that leave space for them."""
    style = {"textcoords": "offset points", "fontsize": 8, "color": QUIET}
    notes = [
        axis.annotate(name, (x, y), xytext=(0, 0), **style)
        for x, y, name in zip(across, up, names, strict=True)
    ]
    figures.literal(axis.figure)
    axis.figure.draw_without_rendering()  # Computes the sizes of labels.
    texts = [text.get_window_extent() for text in axis.texts if text not in notes]
    taken = texts + [Bbox.from_bounds(*point) for point in _drawn(axis)]
    for note in notes[:1] + notes[:0:-1]:  # The ends of the front first.
        own = [box for spot in SPOTS if (box := _move(note, *spot))]
        inside = [box for box in own if _within(axis, box[1])]
        free = [box for box in inside if not _overlaps(box[1], taken)]
        if not free and note in (notes[0], notes[-1]):
            free = [box for box in inside or own if not _overlaps(box[1], texts)]
        if not free:
            note.remove()
            continue
        spot, box = free[0]
        _move(note, *spot)
        texts.append(box)
        taken.append(box)


# Offsets of a label from its point, and its alignment.
SPOTS = (
    (7, -11, "left"),
    (-7, 6, "right"),
    (7, 6, "left"),
    (-7, -11, "right"),
    (7, -22, "left"),
    (-7, 17, "right"),
)


def _move(note, x, y, side):
    """Moves a label; returns the spot and the label's box."""
    note.set_position((x, y))
    note.set_ha(side)
    return (x, y, side), note.get_window_extent()


def _overlaps(box, others):
    return any(box.overlaps(other) for other in others)


def _within(axis, box):
    frame = axis.get_window_extent()
    return frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0


def _drawn(axis):
    """Boxes ``(x, y, width, height)`` of markers and error bars, in pixels."""
    for line in axis.lines:
        if line.get_marker() not in ("o", "*", "s"):
            continue
        for x, y in axis.transData.transform(line.get_xydata()):
            yield x - 8, y - 8, 16, 16
    for bars in axis.collections:
        for path in getattr(bars, "get_segments", list)():
            ends = axis.transData.transform(path)
            low, high = ends.min(0), ends.max(0)
            yield *(low - 2), *(high - low + 4)


def _bar(score):
    return None if score["std"] is None else 100 * score["std"]
