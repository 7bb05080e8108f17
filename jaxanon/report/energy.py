"""The report of PFDRL: what it saved, whom it disturbed, how well it forecast."""

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from jaxanon.report import figures, text
from jaxanon.report.figures import GOOD, INK, QUIET, RAW, SAFE, Picture

AHEAD = 60  # Minutes of a forecast.

MODES = ("off", "standby", "on")

MODE_COLOURS = ("#d5dbe2", "#E69F00", RAW)

MOST_DEVICES = 8

_LINEAR_W = 1.0  # Below, watts are drawn on a linear scale.

_DAY = 1440

_SEARCHED = (
    ("saved_share", "standby energy saved [%]", 100),
    ("optimal_share", "best actions [%]", 100),
    ("reached_day", "day that saved 95 % of it", 1),
)


def sentences(report: dict) -> list[str]:
    """What the report of ``jaxanon.evaluation.evaluate`` comes to."""
    late = text.unfinished(report["method"].get("unfinished"), "days")
    minutes = ahead(report["method"]["settings"])
    return late + text.sentences("energy.txt", **report, ahead=minutes)


def ahead(settings: dict) -> int:
    """Minutes that are forecast at a time: a slot's, an hour's at most.

    Args:
      settings: of ``PFDRLSettings``, as a dict.

    Example:
      >>> ahead({"slot_min": 20}), ahead({"slot_min": 720})
      (20, 60)
    """
    return min(settings["slot_min"], AHEAD)


def draw(report: dict) -> dict[str, Picture]:
    """All figures of such a report, by name."""
    drawn = {"saved": saved(report), "training": training(report)}
    if report["example"]["devices"]:
        drawn["day"] = day(report["example"], ahead(report["method"]["settings"]))
    if report["newcomers"] is not None:
        drawn["newcomers"] = newcomers(report["newcomers"])
    return drawn


def saved(report: dict) -> Picture:
    """Standby energy of the held-out days and hours, and what of it was saved."""
    figure, axes = figures.grid(1, 2, 5.2, 3.0)
    for axis, rows, name, words in (
        (axes[0, 0], report["per_day"], "day", "held-out day"),
        (axes[0, 1], report["per_hour"], "hour", "hour of the day"),
    ):
        places = [row[name] for row in rows]
        all_ = [1000 * row["standby_kwh"] for row in rows]
        kept = [1000 * row["saved_kwh"] for row in rows]
        left = np.maximum(np.subtract(all_, kept), 0)
        axis.bar(places, kept, color=GOOD, label="standby switched off")
        axis.bar(places, left, bottom=kept, color=MODE_COLOURS[1], label="left on")
        figures.label(axis, words, "energy [Wh]", lines=False)
        axis.grid(axis="y", alpha=0.25, lw=0.5)
        axis.set_axisbelow(True)
        if name == "hour":
            axis.set_xticks(range(0, 24, 3))
        elif len(places) == 1:
            axis.set_xticks(places)
            axis.set_xlim(places[0] - 1.5, places[0] + 1.5)
        else:
            _whole_days(axis)
    _legend_above(figure, *axes[0, 0].get_legend_handles_labels(), ncols=2)
    return figures.picture(
        figure,
        "Energy that all devices together take in standby on held-out days, by day "
        "and by hour of the day, and what of it being switched off saves.",
    )


def training(report: dict) -> Picture:
    """Shares and reward over the days to learn from, then the held-out days."""
    figure, axes = figures.grid(1, 2, 5.2, 3.0)
    learned, test_days = report["training"], report["per_day"]
    left, right = axes[0]
    lone = {"marker": "s"} if len(learned) == 1 else {}  # A day by itself has no line.
    for name, words, colour in (
        ("saved_share", "standby energy saved", GOOD),
        ("optimal_share", "best action", RAW),
        ("switched_off_share", "switched off in use", SAFE),
    ):
        line = {"label": words} | lone
        for rows, style, more in ((learned, "-", line), (test_days, "o", {})):
            values = [_scaled(100, row[name]) for row in rows]
            days = [row["day"] for row in rows]
            left.plot(days, values, style, color=colour, lw=1.6, ms=4, **more)
    left.set_ylim(-3, 103)
    days = [row["day"] for row in learned]
    rewards = [row["reward"] for row in learned]
    right.plot(days, rewards, color=INK, lw=1.6, ms=4, **lone)
    figures.label(left, "day", "of energy, or of minutes [%]")
    figures.label(right, "day", "mean reward of a minute")
    _whole_days(left)
    _whole_days(right)
    if test_days and learned:
        left.axvspan(
            days[-1] + 0.5, test_days[-1]["day"] + 0.5, color=QUIET, alpha=0.12
        )
    place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
    left.legend(fontsize=8, frameon=False, ncols=3, columnspacing=1.1, **place)
    return figures.picture(
        figure,
        "Left, what agents at their best did on each day before it taught them, and "
        "(shaded) on held-out days with models as they are. Right, the reward of what "
        "they did while they learned, some of it at random.",
    )


def day(example: dict, minutes: int) -> Picture:
    """A day of a home, a panel for each device: load, forecast, mode and action."""
    devices = example["devices"][:MOST_DEVICES]
    ratios = {"sharex": True, "height_ratios": [3, 1] * len(devices)}
    figure, axes = figures.grid(2 * len(devices), 1, 10.4, 0.95, **ratios)
    hours = np.arange(_DAY) / 60
    found: dict = {}  # Handles of the legend, by what they show.
    for place, one in enumerate(devices):
        axis, strip = axes[2 * place, 0], axes[2 * place + 1, 0]
        axis.plot(hours, one["load"], color=INK, lw=1.0, label="true load")
        predicted = {"color": SAFE, "alpha": 0.85, "lw": 1.0, "label": "forecast"}
        axis.plot(hours, one["forecast"], **predicted)
        level = "no standby"
        if one["standby_w"]:
            level = f"standby {one['standby_w']:.3g} W"
            line = {"color": QUIET, "lw": 0.8, "ls": ":", "label": "level of standby"}
            axis.axhline(one["standby_w"], **line)
        handles, labels = axis.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
        _watts(axis, max([*one["load"], *one["forecast"], 10.0]))
        title = f"{one['name']}  ({level}, on {one['on_w']:.4g} W)"
        axis.set_title(title, fontsize=9, loc="left", pad=3)
        _strip(strip, np.array([one["mode"], one["action"]]))
    axes[-1, 0].set_xlabel("hour of the day", fontsize=9)
    axes[-1, 0].set_xticks(range(0, 25, 3))
    axes[-1, 0].set_xlim(0, 24)
    for name, colour in zip(MODES, MODE_COLOURS, strict=True):
        found[name] = Patch(color=colour)
    _legend_above(figure, list(found.values()), list(found), ncols=6)
    when = f"day {example['day']}" + (f" ({example['date']})" * bool(example["date"]))
    return figures.picture(
        figure,
        f"{example['home']}, held-out {when}, minute by minute: what each device takes "
        f"(linear below 1 W, logarithmic above), what was forecast for it {minutes} "
        "minutes at a time, and below the mode that it is in and what the agent chose.",
    )


def newcomers(found: dict) -> Picture:
    """What new homes do day by day, with the street's layers and without."""
    figure, axes = figures.grid(1, 2, 5.2, 3.0)
    for axis, key, words in (
        (axes[0, 0], "saved", "standby energy saved [%]"),
        (axes[0, 1], "optimal", "best actions [%]"),
    ):
        for name, label, colour in (
            ("joined", "with the street's layers", GOOD),
            ("alone", "with nothing", QUIET),
        ):
            shares = 100 * np.array(found[name][key])
            days = 1 + np.arange(len(shares))
            axis.plot(days, shares, "o-", ms=3, color=colour, lw=1.6, label=label)
        figures.label(axis, "day after joining", words)
        _whole_days(axis)
        axis.set_ylim(-3, 103)
    _legend_above(figure, *axes[0, 0].get_legend_handles_labels(), ncols=2)
    count = len(found["homes"])
    return figures.picture(
        figure,
        f"{count} new home{'s' * (count > 1)}, on each day before it taught them.",
    )


def draw_search(summary: list[dict]) -> Picture | None:
    """A column per axis of the grid, a row per score; None without an axis."""
    names = list(summary[0]["settings"])
    if not names:
        return None
    shared = {"sharex": "col", "sharey": "row"}
    figure, axes = figures.grid(len(_SEARCHED), len(names), 3.9, 2.3, **shared)
    for column, name in enumerate(names):
        values = list(dict.fromkeys(_hashed(row["settings"][name]) for row in summary))
        numbers = all(isinstance(v, int | float) for v in values)
        places = values if numbers else range(len(values))
        place_of = dict(zip(values, places, strict=True))
        for row, (score, words, scale) in enumerate(_SEARCHED):
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


def _whole_days(axis):
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _watts(axis, top):
    axis.set_yscale("symlog", linthresh=_LINEAR_W, linscale=0.4)
    axis.set_ylim(-0.15, 2 * top)
    ticks = [0, *(10**power for power in range(5) if 10**power <= 2 * top)]
    axis.set_yticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_ylabel("W", fontsize=8)
    axis.tick_params(labelbottom=False)
    axis.grid(alpha=0.2, lw=0.5)


def _strip(axis, rows):
    """Two rows of colours: the mode, and the action."""
    style = {"aspect": "auto", "interpolation": "nearest", "extent": (0, 24, 2, 0)}
    colours = {"cmap": ListedColormap(MODE_COLOURS), "vmin": 0, "vmax": len(MODES) - 1}
    axis.imshow(rows, **style, **colours)
    axis.axhline(1, color="white", lw=1.2)
    axis.set_yticks([0.5, 1.5], ["mode", "action"], fontsize=7)
    axis.tick_params(length=0)
    axis.spines[["bottom", "left"]].set_visible(False)


def _legend_above(figure, handles, labels, *, ncols):
    style = {"fontsize": 8.5, "frameon": False, "ncols": ncols}
    figure.legend(handles, labels, loc="outside upper center", **style)
