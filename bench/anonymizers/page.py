"""The table of anonymizers as files: rows, a page, a figure."""

import functools
from html import escape

from anonymizers import rows as told
from harness import pages
from harness.pages import Section, label
from jaxanon.report.figures import INK, RAW, SAFE, WIDTH, grid, picture
from jaxanon.report.page import table

KINDS = {"better": "key", "worse": "worst"}  # Classes of the page's style.
WIDE = """<style>main { max-width: 84rem; } th, td { padding: .4rem; }
th, td:first-child { white-space: normal; }</style>"""  # So that all columns are seen.
CAPTION = (
    "Left: balanced accuracy of the strongest retrained attacker; dashed: chance. "
    "Right: accuracy of the public attribute by a classifier trained on raw windows. "
    "Each case is sorted by leakage, lowest first. Whiskers are standard deviations "
    "over seeds; rows without whiskers have one seed."
)
ROW = 0.21  # Inches of a row.


def sections(rows) -> list[Section]:
    """The figure, a table for each case, and what there is to say of single rows."""
    front = {"": functools.partial(utility_against_privacy, rows)} if rows else {}
    found = [
        Section("How to read this", (told.LEGEND,)),
        Section("Utility against privacy", pictures=front),
    ]
    for case, own in pages.by(rows, "case").items():
        first = own[0]
        train, test = first["windows"]
        found.append(
            Section(
                f"{case}: keep {first['public']}, hide {first['private']}",
                (f"{train:,} windows to train on, {test:,} to test with.",),
                pages.table(told.HEADER, map(told.cells, own)),
                more=_further(own),
                kinds=KINDS,
            )
        )
    further = [
        f"{told.title(one)}: {name}: {words}"
        for one in rows
        for name, words in told.told_figures(one).items()
    ]
    reasons = [
        f"{told.title(one)}: {one['reason']}" for one in rows if one.get("reason")
    ]
    for title, points in (
        ("What else was tried", further),
        ("What rows differ in from what is published", reasons),
    ):
        found += [Section(title, points=tuple(points))] if points else []
    return found


PAGE = pages.Page("Anonymizers under one protocol", sections, WIDE)
markdown, write = PAGE.markdown, PAGE.write


def utility_against_privacy(rows):
    """Draws leakage and utility of every row, sorted by leakage within each case."""
    cases = pages.by([one for one in rows if one["worst"]], "case")
    heights = [len(own) + 4 for own in cases.values()]
    ratios = {"height_ratios": heights, "sharey": "row"}
    height = ROW * sum(heights) / len(cases)
    canvas, axes = grid(len(cases), 2, WIDTH / 2, height, **ratios)
    for (left, right), (case, own) in zip(axes, cases.items(), strict=True):
        own = sorted(own, key=_leakage)
        _dots(left, [one["retrained_balanced"][one["worst"]] for one in own], SAFE)
        _dots(right, [one["public_accuracy"] for one in own], RAW)
        names = [told.called(one["system"], one["form"]) for one in own]
        left.set_yticks(range(len(own)), names, fontsize=8.5)
        left.set_ylim(len(own) - 0.5, -0.5)
        chance = next((one["chance"][0] for one in own if "chance" in one), None)
        if chance is not None:
            left.axvline(chance, color=INK, ls="--", lw=1)
            note = {"xycoords": ("data", "axes fraction"), "fontsize": 8.5}
            words, side = ("chance ", "right") if chance > 25 else (" chance", "left")
            left.annotate(words, (chance, 0), ha=side, va="bottom", **note)
        left.set_xlim(0, 103)
        right.set_xlim(0, 103)
        left.set_title(case, fontsize=10, fontweight="bold", color=INK, loc="left")
        attribute = own[0]["private"]
        label(left, f"{attribute}: strongest retrained attacker [%]", "", 8.5)
        label(right, f"{own[0]['public']}: accuracy [%]", "", 8.5)
        for axis in (left, right):
            axis.grid(alpha=0.25, lw=0.5)
    return picture(canvas, CAPTION)


def _leakage(one):
    return one["retrained_balanced"][one["worst"]][0]


def _dots(axis, pairs, colour):
    """Draws ``(mean, std)`` of each row; std may be None."""
    for row, (mean, std) in enumerate(pairs):
        style = {"fmt": "o", "ms": 4.5, "lw": 1.2, "color": colour}
        axis.errorbar(mean, row, xerr=std, **style)


def _further(rows):
    """Every attacker's and every attack's figure, folded away."""
    lines = []
    for one in rows:
        figures = {
            f"retrained {name}": told.shown(pair)
            for name, pair in one["retrained_balanced"].items()
        }
        for name, found in one["attacks"].items():
            figures[name] = f"{found['balanced']:.1f} ({found['attacker']})"
        figures |= told.told_figures(one)
        linked = one.get("linkage")
        if linked:
            balanced = told.shown(linked["balanced_accuracy"])
            guess = f"chance level {linked['chance'][0]:.1f}"
            figures["who sent it"] = f"{balanced} ({linked['attacker']}; {guess})"
        shown = table((), figures.items())
        name = escape(told.called(one["system"], one["form"]))
        summary = f"<summary>{name}: every attack</summary>"
        lines.append(f"<details>{summary}{shown}</details>")
    return "".join(lines)
