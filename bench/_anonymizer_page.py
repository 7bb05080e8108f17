"""The table of anonymizers as files: rows, a page, a figure."""

import io
import json
from html import escape

import _anonymizer_rows
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxanon.report.figures import Picture
from jaxanon.report.page import document, figure, section, table

INK, FAINT = "#1c2430", "#767676"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = "os^Dv<>P"
FILLS = {"flip": "none", "flip of half": "left"}  # Of forms; all others are full.
KINDS = {"better": "key", "worse": "worst"}  # Classes of the page's style.
WIDE = """<style>main { max-width: 84rem; } th, td { padding: .4rem; }
th, td:first-child { white-space: normal; }</style>"""  # So that all columns are seen.


def write(path, rows):
    """``path`` itself, and beside it .md, .html and .png."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    path.with_suffix(".md").write_text(_anonymizer_rows.markdown(rows))
    if rows:
        png = picture(rows)
        path.with_suffix(".png").write_bytes(png)
        path.with_suffix(".html").write_text(page(rows, png))


def picture(rows) -> bytes:
    """Utility over the worst retrained attacker, a panel per case; as PNG."""
    rows = [one for one in rows if one["worst"]]
    cases = list(dict.fromkeys(one["case"] for one in rows))
    systems = list(dict.fromkeys(one["system"] for one in rows))
    wide = min(2, max(1, len(cases)))
    high = -(-len(cases) // wide)
    canvas = Figure((6.4 * wide, 4.6 * high), dpi=110, layout="constrained")
    FigureCanvasAgg(canvas)
    axes = list(canvas.subplots(high, wide, squeeze=False).flat)
    handles = {}
    for axis, case in zip(axes, cases, strict=False):
        own = [one for one in rows if one["case"] == case]
        for one in own:
            number = systems.index(one["system"])
            private, private_std = one["retrained_balanced"][one["worst"]]
            public, public_std = one["public_accuracy"]
            drawn = axis.errorbar(
                private,
                public,
                xerr=private_std,
                yerr=public_std,
                fmt=MARKS[number // len(COLOURS) % len(MARKS)],
                color=COLOURS[number % len(COLOURS)],
                fillstyle=FILLS.get(one["form"], "full"),
                ms=7,
                lw=1,
                label=one["system"],
            )
            if one["form"] not in FILLS:
                handles[one["system"]] = drawn
            else:
                handles.setdefault(one["system"], drawn)
        chance = next((one["chance"][0] for one in own if "chance" in one), None)
        if chance is not None:
            axis.axvline(chance, color=FAINT, lw=1, ls=":")
        axis.set_title(case, fontsize=11, fontweight="bold", color=INK)
        axis.set_xlabel(
            f"{own[0]['private']} told by the worst attacker, balanced, %", fontsize=9
        )
        axis.set_ylabel(f"{own[0]['public']} kept, %", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25, lw=0.5)
        axis.tick_params(labelsize=8)
    for axis in axes[len(cases) :]:
        axis.set_axis_off()
    canvas.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=2 * wide,
        frameon=False,
        fontsize=8,
    )
    file = io.BytesIO()
    canvas.savefig(file, format="png", facecolor="white")
    return file.getvalue()


def page(rows, png) -> str:
    """The table as one file that needs no network."""
    parts = [f"<p>{escape(_anonymizer_rows.LEGEND.replace('*', ''))}</p>"]
    caption = (
        "Utility against privacy: up is useful, left is private, dotted is guessing. "
        "Hollow marks flip the private class, half-full ones that of half the windows."
    )
    drawn = Picture(png, caption)
    parts.append(section("Utility against privacy", figure("front", drawn)))
    for case in dict.fromkeys(one["case"] for one in rows):
        own = [one for one in rows if one["case"] == case]
        title = f"{case}: keep {own[0]['public']}, hide {own[0]['private']}"
        shown = table(_anonymizer_rows.HEADER, map(_cells, own))
        parts.append(section(title, shown + _further(own) + _reasons(own)))
    title = "Anonymizers under one protocol"
    return document(title, "jaxanon benchmark", "\n".join([WIDE, *parts]))


def _cells(one):
    *rest, verdict = _anonymizer_rows.cells(one)
    return [*rest, (verdict, KINDS.get(verdict, ""))]


def _further(rows):
    """Every attacker's and every attack's figure, folded away."""
    lines = []
    for one in rows:
        told = {
            f"retrained {name}": _anonymizer_rows.shown(pair)
            for name, pair in one["retrained_balanced"].items()
        }
        for name, found in one["attacks"].items():
            told[name] = f"{found['balanced']:.1f} ({found['attacker']})"
        told |= _anonymizer_rows.told_figures(one)
        linked = one.get("linkage")
        if linked:
            balanced = _anonymizer_rows.shown(linked["balanced_accuracy"])
            guess = f"guessing {linked['chance'][0]:.1f}"
            told["who sent it"] = f"{balanced} ({linked['attacker']}; {guess})"
        shown = table((), told.items())
        summary = f"<summary>{escape(_name(one))}: every attack</summary>"
        lines.append(f"<details>{summary}{shown}</details>")
    return "".join(lines)


def _reasons(rows):
    told = [
        f"<p class='note'>{escape(_name(one))}: {escape(one['reason'])}</p>"
        for one in rows
        if one.get("reason")
    ]
    return "".join(told)


def _name(one):
    return _anonymizer_rows.called(one["system"], one["form"])
