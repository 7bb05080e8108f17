"""Report of PFDRL: saved energy, comfort and forecasts."""

import numpy as np
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from jaxanon.report import figures, text
from jaxanon.report.figures import AMBER, GOOD, INK, PALE, QUIET, RAW, SAFE, Picture

MAX_AHEAD = 60  # Minutes of a forecast.

MODES = ("off", "standby", "on")

MODE_COLOURS = (PALE, AMBER, RAW)

MAX_DEVICES = 6

_LINEAR_W = 1.0  # Watts below are drawn on a linear scale.

_DAY = 1440

_SCORES = (
    ("saved_share", "standby energy saved [%]", 100),
    ("optimal_share", "best actions [%]", 100),
    ("reached_day", "day of 95 % of the saving", 1),
)


def sentences(report: dict) -> list[str]:
    """Returns the results of a PFDRL report in sentences."""
    unfinished = text.unfinished(report["method"].get("unfinished"), "days")
    minutes = ahead(report["method"]["settings"])
    return unfinished + text.sentences("energy.txt", **report, ahead=minutes)


def ahead(settings: dict) -> int:
    """Returns the minutes of one forecast: a slot, at most an hour.

    Args:
      settings: ``PFDRLSettings`` as a dict.

    Example:
      >>> ahead({"slot_min": 20}), ahead({"slot_min": 720})
      (20, 60)
    """
    return min(settings["slot_min"], MAX_AHEAD)


def draw(report: dict) -> dict[str, Picture]:
    """Draws all figures of a PFDRL report, by name."""
    drawn = {"saved": saved(report), "training": training(report)}
    if report["example"]["devices"]:
        drawn["day"] = day(report["example"], ahead(report["method"]["settings"]))
    if report["newcomers"] is not None:
        drawn["newcomers"] = newcomers(report["newcomers"])
    return drawn


def saved(report: dict) -> Picture:
    """Draws standby energy and its saved part, by held-out day and by hour."""
    figure, axes = figures.grid(1, 2, figures.WIDTH / 2, 3.0)
    for axis, rows, name, words in (
        (axes[0, 0], report["per_day"], "day", "held-out day"),
        (axes[0, 1], report["per_hour"], "hour", "hour of the day"),
    ):
        places = [row[name] for row in rows]
        standby = [1000 * row["standby_kwh"] for row in rows]
        off = [1000 * row["saved_kwh"] for row in rows]
        on = np.maximum(np.subtract(standby, off), 0)
        axis.bar(places, off, color=GOOD, label="standby, switched off (saved)")
        axis.bar(places, on, bottom=off, color=AMBER, label="standby, left on")
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
        "Standby energy of all devices on held-out days, by day and by hour, "
        "split into the saved part and the rest.",
    )


def training(report: dict) -> Picture:
    """Draws scores and reward over training days, then scores of held-out days."""
    figure, axes = figures.grid(1, 2, figures.WIDTH / 2, 3.0)
    learned, test_days = report["training"], report["per_day"]
    left, right = axes[0]
    lone = {"marker": "s"} if len(learned) == 1 else {}  # One day draws no line.
    for name, words, colour in (
        ("saved_share", "standby energy saved", GOOD),
        ("optimal_share", "best actions", RAW),
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
    figures.label(left, "day", "of energy or of minutes [%]")
    figures.label(right, "day", "mean reward per minute")
    _whole_days(left)
    _whole_days(right)
    if test_days and learned:
        left.axvspan(
            days[-1] + 0.5, test_days[-1]["day"] + 0.5, color=QUIET, alpha=0.12
        )
    place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
    left.legend(fontsize=9, frameon=False, ncols=2, columnspacing=1.1, **place)
    return figures.picture(
        figure,
        "Left: greedy actions on each training day before agents learn from it, and "
        "on held-out days (shaded). Right: reward in training, which includes random "
        "actions.",
    )


def day(example: dict, minutes: int) -> Picture:
    """Draws a day of a home: load, forecast, mode and action of each device."""
    devices = example["devices"][:MAX_DEVICES]
    ratios = {"sharex": True, "height_ratios": [3, 1] * len(devices)}
    figure, axes = figures.grid(2 * len(devices), 1, figures.WIDTH, 0.95, **ratios)
    hours = np.arange(_DAY) / 60
    legend: dict = {}  # Handles by label.
    for place, one in enumerate(devices):
        axis, strip = axes[2 * place, 0], axes[2 * place + 1, 0]
        axis.plot(hours, one["load"], color=INK, lw=1.0, label="true load")
        predicted = {"color": SAFE, "alpha": 0.85, "lw": 1.0, "label": "forecast"}
        axis.plot(hours, one["forecast"], **predicted)
        level = "no standby"
        if one["standby_w"]:
            level = f"standby {one['standby_w']:.3g} W"
            line = {"color": QUIET, "lw": 0.8, "ls": ":", "label": "standby level"}
            axis.axhline(one["standby_w"], **line)
        handles, labels = axis.get_legend_handles_labels()
        legend = dict(zip(labels, handles, strict=True)) | legend
        _watts(axis, max([*one["load"], *one["forecast"], 10.0]))
        title = f"{figures.short(one['name'], 60)}  ({level}, on {one['on_w']:.4g} W)"
        axis.set_title(title, fontsize=9, loc="left", pad=3)
        _strip(strip, np.array([one["mode"], one["action"]]))
    axes[-1, 0].set_xlabel("hour of the day", fontsize=9)
    axes[-1, 0].set_xticks(range(0, 25, 3))
    axes[-1, 0].set_xlim(0, 24)
    for name, colour in zip(MODES, MODE_COLOURS, strict=True):
        legend[name] = Patch(color=colour)
    _legend_above(figure, list(legend.values()), list(legend), ncols=6)
    when = f"day {example['day']}" + (f" ({example['date']})" * bool(example["date"]))
    return figures.picture(
        figure,
        f"{example['home']}, held-out {when}, by minute: load of each device (linear "
        f"below 1 W, logarithmic above) and its forecast, {minutes} minutes at a time. "
        "Strips: mode of the device and action of the agent.",
    )


def newcomers(results: dict) -> Picture:
    """Draws scores of new homes by day, with and without the shared layers."""
    figure, axes = figures.grid(1, 2, figures.WIDTH / 2, 3.0)
    for axis, key, words in (
        (axes[0, 0], "saved", "standby energy saved [%]"),
        (axes[0, 1], "optimal", "best actions [%]"),
    ):
        for name, label, colour in (
            ("joined", "with the shared layers", GOOD),
            ("alone", "without shared layers", QUIET),
        ):
            shares = 100 * np.array(results[name][key])
            days = 1 + np.arange(len(shares))
            axis.plot(days, shares, "o-", ms=3, color=colour, lw=1.6, label=label)
        figures.label(axis, "day after joining", words)
        _whole_days(axis)
        axis.set_ylim(-3, 103)
    _legend_above(figure, *axes[0, 0].get_legend_handles_labels(), ncols=2)
    count = len(results["homes"])
    return figures.picture(
        figure,
        f"Scores of {count} new home{'s' * (count > 1)} on each day, before learning "
        "from it.",
    )


def draw_search(summary: list[dict]) -> Picture | None:
    """Draws a column per grid axis and a row per score; None without an axis."""
    names = list(summary[0]["settings"])
    if not names:
        return None
    shared = {"sharex": "col", "sharey": "row"}
    figure, axes = figures.grid(len(_SCORES), len(names), 3.9, 2.3, **shared)
    for column, name in enumerate(names):
        values = list(dict.fromkeys(_hashed(row["settings"][name]) for row in summary))
        numbers = all(isinstance(v, int | float) for v in values)
        places = values if numbers else range(len(values))
        place_of = dict(zip(values, places, strict=True))
        for row, (score, words, scale) in enumerate(_SCORES):
            axis = axes[row, column]
            at = [place_of[_hashed(one["settings"][name])] for one in summary]
            values_at = [
                _scaled(scale, one["scores"][score]["mean"]) for one in summary
            ]
            axis.plot(at, values_at, "o", color=QUIET, ms=3.5, alpha=0.6)
            pairs = [*zip(at, values_at, strict=True)]
            means = [_mean([v for p, v in pairs if p == place]) for place in places]
            axis.plot(places, means, "-D" if numbers else "D", ms=4, color=RAW, lw=1.6)
            axis.grid(alpha=0.25, lw=0.5)
            if column == 0:
                axis.set_ylabel(words, fontsize=8.5)
            if score == "reached_day":
                axis.set_ylim(
                    0, 1 + max([v for v in values_at if np.isfinite(v)] or [0])
                )
        axes[-1, column].set_xlabel(name, fontsize=9)
        if not numbers or len(values) <= 9:
            axes[-1, column].set_xticks(places, [f"{v}" for v in values])
    never = sum(row["scores"]["reached_day"]["never"] for row in summary)
    runs = sum(row["seeds"] for row in summary)
    return figures.picture(
        figure,
        "Dots: settings of the grid, means over seeds. Diamonds: means over all "
        "settings with that value. Days are those of runs that reached 95 % of their "
        f"saving and best actions permanently; {never} of {runs} did not.",
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
    """Draws two rows of colors: mode and action."""
    for row, modes in enumerate(rows):
        starts = np.flatnonzero(np.diff(modes, prepend=-1))
        ends = np.append(starts[1:], len(modes))
        for start, end in zip(starts, ends, strict=True):
            corner = start / 60, row + 0.06
            cell = {"facecolor": MODE_COLOURS[modes[start]], "lw": 0}
            axis.add_patch(Rectangle(corner, (end - start) / 60, 0.88, **cell))
    axis.set_ylim(2, 0)
    axis.set_yticks([0.5, 1.5], ["mode", "action"], fontsize=8.5)
    axis.tick_params(length=0)
    axis.spines[["bottom", "left"]].set_visible(False)


def _legend_above(figure, handles, labels, *, ncols):
    style = {"fontsize": 8.5, "frameon": False, "ncols": ncols}
    figure.legend(handles, labels, loc="outside upper center", **style)
