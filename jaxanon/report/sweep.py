"""The Pareto front of a sweep: what each setting keeps, over what it leaks."""

from typing import NamedTuple

from jaxanon.report import figures, text
from jaxanon.report.figures import GOOD, QUIET, RAW, SAFE, Picture

MEASURES = {  # The strongest attackers first.
    "re-identified": "retrained attacker",
    "intrusive": "classifier of raw windows",
}


class Point(NamedTuple):
    """A setting, what it keeps and what it leaks, each ``{"mean", "std"}``."""

    row: dict  # of the summary
    kept: dict
    leaked: dict
    on: bool  # the front


class Panel(NamedTuple):
    """What all settings leak of one private attribute."""

    measure: str  # of ``MEASURES``
    points: list[Point]


def best(points) -> list[bool]:
    """Which points lie on the front: none is as good in both, and better in one.

    Args:
      points: pairs of what is kept, the more the better, and what leaks, the less.

    Example:
      >>> best([(0.9, 0.6), (0.8, 0.5), (0.8, 0.6), (0.7, 0.5)])
      [True, True, False, False]
    """
    beaten = lambda own: any(
        kept >= own[0] and leaked <= own[1] and (kept, leaked) != own
        for kept, leaked in points
    )
    return [not beaten(tuple(own)) for own in points]


def panels(summary: list[dict], report: dict) -> dict[str, Panel]:
    """The panels by name of the private attribute.

    Args:
      summary: of a sweep whose members were evaluated; rows without scores are left
        out.
      report: any of its reports, which names the attributes.

    Returns:
      ``Panel`` each, points in the order of the summary. What leaks is what the
      strongest retrained attacker infers, or the classifier of raw windows if none was
      retrained; an attribute that neither infers is left out.
    """
    rows = [row for row in summary if row["scores"]]
    public = f"{report['utility']['attribute']} accuracy"
    found = {}
    for name in report["intrusive"] if rows else ():
        for measure in MEASURES:
            leak = f"{name} {measure}"
            if leak in rows[0]["scores"]:
                pairs = [(row["scores"][public], row["scores"][leak]) for row in rows]
                front = best([(kept["mean"], leak["mean"]) for kept, leak in pairs])
                points = zip(rows, *zip(*pairs, strict=True), front, strict=True)
                found[name] = Panel(measure, [Point(*point) for point in points])
                break
    return found


def draw(found: dict[str, Panel], report: dict) -> Picture:
    """What every setting keeps, over what it leaks, a panel per private attribute.

    Args:
      found: of ``panels``, at least one.
      report: as ``panels`` takes it.
    """
    figure, axes = figures.grid(1, len(found), 5.6, 4.6)
    for axis, (name, panel) in zip(axes.flat, found.items(), strict=True):
        _draw(axis, report, name, panel)
    utility = report["utility"]["attribute"]
    return figures.picture(
        figure,
        f"Utility ({utility} accuracy) over what an attacker infers, a point for each "
        "setting: up is useful, left is private. The line joins the settings that no "
        "other beats in both; bars are deviations over seeds and splits. Where there "
        "is room, settings stand beside points; the table has all.",
    )


def draw_scores(summary: list[dict]) -> Picture:
    """Draws every score of a learner's settings, a panel per score.

    Args:
      summary: of a sweep whose members were evaluated; rows without scores are left
        out, at least one has some.
    """
    rows = [row for row in summary if row["scores"]]
    names = [text.settings(row["settings"]) or "all seeds" for row in rows]
    measures = list(rows[0]["scores"])
    height = 1.2 + 0.3 * len(rows)
    figure, axes = figures.grid(1, len(measures), 4.6, height, sharey=True)
    for axis, measure in zip(axes.flat, measures, strict=True):
        for place, row in enumerate(rows):
            score = row["scores"][measure]
            bars = {"xerr": score["std"], "lw": 0.8, "color": SAFE}
            axis.errorbar(score["mean"], place, fmt="o", ms=6, **bars)
        axis.set_yticks(range(len(rows)), names, fontsize=8)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        figures.label(axis, measure)
    return figures.picture(
        figure,
        "Mean over clients of each score, a row per setting; bars are standard "
        "deviations over seeds and splits.",
    )


def _draw(axis, report, name, panel):
    public = report["utility"]["attribute"]
    for _, kept, leaked, on in panel.points:
        style = {"color": QUIET, "alpha": 0.6, "mfc": "none"}
        if on:
            style = {"color": SAFE, "mfc": SAFE}
        bars = {"xerr": _bar(leaked), "yerr": _bar(kept), "lw": 0.8}
        point = 100 * leaked["mean"], 100 * kept["mean"]
        axis.errorbar(*point, fmt="o", ms=6, **bars, **style)
    front = sorted(
        (100 * leaked["mean"], 100 * kept["mean"], text.settings(row["settings"]))
        for row, kept, leaked, on in panel.points
        if on
    )
    across, up, names = zip(*front, strict=True)
    axis.plot(across, up, color=SAFE, lw=1.1)
    raw = 100 * report["utility"]["raw"]["accuracy"]
    judged = report["intrusive"][name]
    if judged:
        chance = 100 * judged["raw"]["chance"]
        axis.axvline(chance, color=QUIET, ls="--", lw=1)
        axis.plot(chance, raw, "*", color=GOOD, ms=14, label="goal")
        level = 100 * judged["raw"]["balanced_accuracy"]
        axis.plot(level, raw, "s", color=RAW, ms=7, label="raw windows")
        axis.legend(fontsize=8, frameon=False, loc="lower right")
    _annotate(axis, across, up, names)
    who = MEASURES[panel.measure]
    figures.label(axis, f"{name} told by a {who}, balanced, %", f"{public} kept, %")


def _annotate(axis, across, up, names):
    """Names beside points, as far as the axis and other names leave room."""
    low, high = axis.get_xlim()
    beside = []
    for x, y, name in zip(across, up, names, strict=True):
        near = x - low < 0.4 * (high - low)
        place = {"xytext": (7, -9), "ha": "left"}
        if not near:
            place = {"xytext": (-6, 4), "ha": "right"}
        style = {"textcoords": "offset points", "fontsize": 7, "color": QUIET}
        beside.append(axis.annotate(name, (x, y), **place, **style))
    figures.literal(axis.figure)
    axis.figure.draw_without_rendering()  # Sizes of names are known after that.
    placed = []
    for note in beside[:1] + beside[:0:-1]:  # The ends of the front first.
        box = note.get_window_extent()
        if any(box.overlaps(other) for other in placed):
            note.remove()
        else:
            placed.append(box)


def _bar(spread):
    return None if spread["std"] is None else 100 * spread["std"]
