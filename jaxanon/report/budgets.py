"""The curve of a budget: what is read of released windows over their ε."""

from html import escape

from jaxanon.report import figures, page
from jaxanon.report.figures import QUIET, RAW, SAFE, Picture
from jaxanon.report.tables import table

LINES = ("-", "--", "-.", (0, (1, 1)))
GUESS = (0, (6, 6))


def draw(heading: str, rows: list[dict]) -> Picture:
    """Balanced accuracy of every inference over ε; dotted, what raw windows tell.

    Args:
      heading: above it.
      rows: of ``evaluation.budgets.curve``.
    """
    raw, *released = rows
    figure, axes = figures.grid(1, 1, 6.4, 4.4)
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
    axis.set_title(heading, fontsize=9)
    axis.set_xscale("log")
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.minorticks_off()
    axis.set_ylim(0, 100)
    axis.set_xlabel("ε of a window", fontsize=9)
    axis.set_ylabel("balanced accuracy, %", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)
    axis.legend(fontsize=8, frameon=False, loc="best")
    return figures.picture(
        figure,
        "Balanced accuracy of classifiers that are taught on released training windows "
        "and tried on released test windows, over the ε of each window. In the same "
        "colour what raw windows tell (dotted) and what guessing does (thin, dashed).",
    )


def render(heading: str, about: str, rows: list[dict], picture: Picture) -> str:
    """The page: the curve, and its numbers.

    Args:
      heading: of the page.
      about: what was released, and who read it.
      rows, picture: of ``draw``.
    """
    names = list(rows[0]["scores"])
    words = ("ε of a window", *(f"{name}, balanced %" for name in names))
    numbers = table(words, [_cells(row, names) for row in rows])
    shown = page.figure("budget", picture)
    told = f"<p>{escape(about)}</p>"
    curves = page.section("Read over ε", told + shown)
    parts = [curves, page.section("Numbers", numbers)]
    return page.document(heading, "jaxanon evaluation", "\n".join(parts))


def _cells(row, names):
    epsilon = "raw windows" if row["epsilon"] is None else f"{row['epsilon']:g}"
    told = [f"{100 * row['scores'][name]['balanced_accuracy']:.1f}" for name in names]
    return [epsilon, *told]
