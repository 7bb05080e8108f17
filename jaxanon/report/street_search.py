"""The figure of a search: what each setting of a street is worth."""

import numpy as np

from jaxanon.report import figures
from jaxanon.report.figures import QUIET, RAW, Picture

_SHOWN = (
    ("saved_share", "standby energy saved [%]", 100),
    ("optimal_share", "best actions [%]", 100),
    ("reached_day", "day that saved 95 % of it", 1),
)


def draw(summary: list[dict]) -> Picture | None:
    """A column for each axis of the grid, a row for each score; None without an axis.

    Args:
      summary: rows of ``jaxanon.energy.sweeping.search``.
    """
    names = list(summary[0]["settings"])
    if not names:
        return None
    figure, axes = figures.grid(
        len(_SHOWN), len(names), 3.9, 2.3, sharex="col", sharey="row"
    )
    for column, name in enumerate(names):
        values = list(dict.fromkeys(_hashed(row["settings"][name]) for row in summary))
        numbers = all(isinstance(v, int | float) for v in values)
        places = values if numbers else range(len(values))
        place_of = dict(zip(values, places, strict=True))
        for row, (score, words, scale) in enumerate(_SHOWN):
            axis = axes[row, column]
            at = [place_of[_hashed(one["settings"][name])] for one in summary]
            told = [_scaled(scale, one["scores"][score]["mean"]) for one in summary]
            axis.plot(at, told, "o", color=QUIET, ms=3.5, alpha=0.6)
            pairs = [*zip(at, told, strict=True)]
            means = [_mean([t for p, t in pairs if p == place]) for place in places]
            axis.plot(places, means, "-D" if numbers else "D", ms=4, color=RAW, lw=1.6)
            axis.grid(alpha=0.25, lw=0.5)
            if column == 0:
                axis.set_ylabel(words, fontsize=8.5)
            if score == "reached_day":
                axis.set_ylim(0, 1 + max([t for t in told if np.isfinite(t)] or [0]))
        axes[-1, column].set_xlabel(name, fontsize=9)
        if not numbers or len(values) <= 9:
            axes[-1, column].set_xticks(places, [f"{v}" for v in values])
    never = sum(row["scores"]["reached_day"]["never"] for row in summary)
    runs = sum(row["seeds"] for row in summary)
    return figures.picture(
        figure,
        "Each dot is a setting of the grid, a mean over seeds; diamonds are means over "
        "all settings with that value. Days are of runs that reached it for good, with "
        f"as many of the best actions: {never} of {runs} never did.",
    )


def _scaled(scale, value):
    return float("nan") if value is None else scale * value


def _mean(values):
    some = [value for value in values if np.isfinite(value)]
    return np.mean(some) if some else float("nan")


def _hashed(value):
    return tuple(value) if isinstance(value, list) else value
