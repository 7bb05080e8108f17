"""Rows, a page and a figure of the table of anonymizers."""

import functools
from html import escape

from anonymizers import rows as told
from harness import pages
from harness.pages import COLOURS, Section, label
from jaxanon.report.figures import grid, picture
from jaxanon.report.page import table

MARKS = "os^Dv<>P"
FILLS = {"flip": "none", "flip of half": "left"}  # Markers of forms; default: full.
KINDS = {"better": "key", "worse": "worst"}  # CSS classes of the page.
WIDE = """<style>main { max-width: 84rem; } th, td { padding: .4rem; }
th, td:first-child { white-space: normal; }</style>"""  # All columns stay visible.
CAPTION = (
    "Utility against privacy: up is useful, left is private, dotted is guessing. "
    "Hollow marks flip the private class, half-full ones that of half the windows."
)


def sections(rows) -> list[Section]:
    """Returns the figure, a table per case, and notes on single rows."""
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
    """Draws utility over the strongest retrained attacker, a panel per case."""
    rows = [one for one in rows if one["worst"]]
    cases = pages.by(rows, "case")
    systems = list(dict.fromkeys(one["system"] for one in rows))
    wide = min(2, max(1, len(cases)))
    canvas, axes = grid(-(-len(cases) // wide), wide, 6.4, 4.6)
    handles = {}
    for axis, (case, own) in zip(axes.flat, cases.items(), strict=False):
        for one in own:
            drawn = _point(axis, one, systems.index(one["system"]))
            if one["form"] not in FILLS:
                handles[one["system"]] = drawn
            else:
                handles.setdefault(one["system"], drawn)
        chance = next((one["chance"][0] for one in own if "chance" in one), None)
        if chance is not None:
            axis.axvline(chance, **pages.DOTTED)
        axis.set_title(case, fontsize=11, fontweight="bold", color="#1c2430")
        read = f"{own[0]['private']} told by the worst attacker, balanced, %"
        label(axis, read, f"{own[0]['public']} kept, %", 9)
        axis.grid(alpha=0.25, lw=0.5)
    for axis in axes.flat[len(cases) :]:
        axis.set_axis_off()
    style = {"loc": "outside lower center", "frameon": False, "fontsize": 8}
    canvas.legend(handles.values(), handles.keys(), ncols=2 * wide, **style)
    return picture(canvas, CAPTION)


def _point(axis, one, number):
    private, private_std = one["retrained_balanced"][one["worst"]]
    public, public_std = one["public_accuracy"]
    return axis.errorbar(
        *(private, public, public_std, private_std),
        fmt=MARKS[number // len(COLOURS) % len(MARKS)],
        color=COLOURS[number % len(COLOURS)],
        fillstyle=FILLS.get(one["form"], "full"),
        ms=7,
        lw=1,
        label=one["system"],
    )


def _further(rows):
    """Returns the results of every attacker and attack in collapsed elements."""
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
            guess = f"guessing {linked['chance'][0]:.1f}"
            figures["who sent it"] = f"{balanced} ({linked['attacker']}; {guess})"
        shown = table((), figures.items())
        name = escape(told.called(one["system"], one["form"]))
        summary = f"<summary>{name}: every attack</summary>"
        lines.append(f"<details>{summary}{shown}</details>")
    return "".join(lines)
