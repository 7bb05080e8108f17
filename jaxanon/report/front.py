"""The front of a sweep: what each of its settings keeps, over what it leaks."""

from html import escape
from typing import NamedTuple

from jaxanon.report import figures, page
from jaxanon.report.figures import GOOD, QUIET, RAW, SAFE, Picture
from jaxanon.report.tables import table

MEASURES = ("re-identified", "intrusive")  # Retrained adversaries first: the worst.
WORDS = {
    "re-identified": "retrained adversary",
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
      ``Panel`` each, points in the order of the summary. What leaks is what the worst
      retrained adversary reads, or where there is none the classifier of raw windows;
      an attribute that neither reads is left out.
    """
    rows = [row for row in summary if row["scores"]]
    public = f"{report['utility']['attribute']} accuracy"
    found = {}
    for name in report["intrusive"]:
        told = [
            one for one in MEASURES if rows and f"{name} {one}" in rows[0]["scores"]
        ]
        if told:
            kept = [row["scores"][public] for row in rows]
            leaked = [row["scores"][f"{name} {told[0]}"] for row in rows]
            means = [
                (one["mean"], other["mean"])
                for one, other in zip(kept, leaked, strict=True)
            ]
            points = zip(rows, kept, leaked, best(means), strict=True)
            found[name] = Panel(told[0], [Point(*point) for point in points])
    return found


def draw(summary: list[dict], report: dict) -> Picture | None:
    """What every setting keeps, over what it leaks, a panel per private attribute.

    Args:
      summary, report: as ``panels`` takes them.

    Returns:
      ``Picture``; None where there is nothing to draw.
    """
    found = panels(summary, report)
    if not found:
        return None
    figure, axes = figures.grid(1, len(found), 5.6, 4.6)
    for axis, (name, panel) in zip(axes.flat, found.items(), strict=True):
        _draw(axis, report, name, panel)
    utility = report["utility"]["attribute"]
    return figures.picture(
        figure,
        f"Utility ({utility} accuracy) over what an adversary reads, a point for each "
        "setting: up is useful, left is private. The line joins the settings that no "
        "other beats in both; bars are deviations over seeds and splits. Where there "
        "is room, settings stand beside points; the table has all.",
    )


def _draw(axis, report, name, panel):
    public = report["utility"]["attribute"]
    for _, kept, leaked, on in panel.points:
        axis.errorbar(
            100 * leaked["mean"],
            100 * kept["mean"],
            xerr=_bar(leaked),
            yerr=_bar(kept),
            fmt="o",
            color=SAFE if on else QUIET,
            alpha=1.0 if on else 0.6,
            mfc=SAFE if on else "none",
            ms=6,
            lw=0.8,
        )
    front = sorted(
        (100 * leaked["mean"], 100 * kept["mean"], said(row["settings"]))
        for row, kept, leaked, on in panel.points
        if on
    )
    across, up, words = zip(*front, strict=True)
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
    _annotate(axis, across, up, words)
    who = WORDS[panel.measure]
    axis.set_xlabel(f"{name} told by a {who}, balanced, %", fontsize=9)
    axis.set_ylabel(f"{public} kept, %", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)


def _annotate(axis, across, up, words):
    """Words beside points, where the axis leaves room for them, and other words do."""
    low, high = axis.get_xlim()
    beside = []
    for x, y, text in zip(across, up, words, strict=True):
        near = x - low < 0.4 * (high - low)
        note = axis.annotate(
            text,
            (x, y),
            xytext=(7, -9) if near else (-6, 4),
            textcoords="offset points",
            ha="left" if near else "right",
            fontsize=7,
            color=QUIET,
        )
        beside.append(note)
    axis.figure.draw_without_rendering()  # Sizes of words are known after that.
    placed = []
    for note in beside[:1] + beside[:0:-1]:  # The ends of the front first.
        box = note.get_window_extent()
        if any(box.overlaps(other) for other in placed):
            note.remove()
        else:
            placed.append(box)


def _bar(spread):
    return None if spread["std"] is None else 100 * spread["std"]


def said(settings: dict) -> str:
    """Settings in words.

    Example:
      >>> said({"alpha": 0.1, "lambda_": 0.4})
      'alpha 0.1, lambda 0.4'
    """
    return ", ".join(f"{name.rstrip('_')} {value}" for name, value in settings.items())


def render(heading: str, summary: list[dict], report: dict, picture: Picture) -> str:
    """The page of a sweep: the front, and every setting's scores.

    Args:
      heading: of the page.
      summary, report: as ``panels`` takes them.
      picture: of ``draw``.
    """
    shown = page.figure("front", picture)
    parts = [page.section("Utility against privacy", shown)]
    for name, panel in panels(summary, report).items():
        title = f"Settings, by what they tell of {name}"
        parts.append(page.section(title, _table(panel.points)))
    lost = sum(row["diverged"] for row in summary)
    if lost:
        note = f"<p>{lost} of the sweep's runs diverged and are left out.</p>"
        parts.append(page.section("Diverged", note))
    early = [
        f"{said(row['settings'])} (epoch {row['stopped']})"
        for row in summary
        if row.get("stopped")
    ]
    if early:
        note = f"<p>{escape('; '.join(early))}.</p>"
        parts.append(page.section("Stopped early, for others beat them", note))
    return page.document(heading, "jaxanon sweep", "\n".join(parts))


def _table(points):
    """Rows by utility, those of the front in bold and with a star."""
    names = list(points[0].row["scores"])
    ordered = sorted(points, key=lambda point: -point.kept["mean"])
    rows = [_cells(row, names, on) for row, _, _, on in ordered]
    note = '<p class="note">Per cent; a star marks the front.</p>'
    return table(("settings", *names), rows) + note


def _cells(row, names, on):
    kind, star = ("key", "★ ") if on else ("", "")
    words = said(row["settings"]) or "all seeds"
    told = [_shown(row["scores"][name]) for name in names]
    return [(text, kind) for text in (star + words, *told)]


def _shown(spread):
    mean = f"{100 * spread['mean']:.1f}"
    return mean if spread["std"] is None else f"{mean} ± {100 * spread['std']:.1f}"
