"""Tables, page and figures of the PFDRL benchmark."""

import numpy as np

from harness import pages
from harness.comparison import COLOURS, mean, speed_table
from harness.pages import DOTTED, Question, by, label, panels, picture
from pfdrl import goals, tables

SAVED = "fraction of standby saved"
LEAST_SPAN = 0.05  # Minimum range of an axis, so that seed noise looks small.
SAVED_WH = "saved by a home [Wh]"


def _by_place(rows):
    """Returns ``(figure, axes, [(axis, [(rows, colour)])])``, a panel per data set."""
    places, every = by(rows, "place"), []
    drawn, axes = panels(list(places))
    for place, axis in axes.items():
        groups = tables.grouped(places[place])
        coloured = [(own, COLOURS[i % len(COLOURS)]) for i, own in enumerate(groups)]
        every.append((axis, coloured))
    return drawn, axes, every


def _with_legend(drawn, axes, caption):
    return pages.with_legend(drawn, axes, caption, columns=5)


def lines(name, x, y, caption, at=None, beside=None, first=1, **style):
    """Returns a figure function with one line per method, the mean of lists over seeds.

    Args:
      name: key of the list in rows, or a function of a row; rows without the key are
        skipped.
      x, y: labels of the axes.
      caption: caption of the figure.
      at: ``(rows, count) -> xs``; default: count from ``first``.
      beside: key of a second list, drawn dotted.
      **style: style of the lines.
    """
    style = style or {"lw": 1.3}
    read = name if callable(name) else lambda row: row[name]

    def draw(rows):
        rows = rows if callable(name) else [row for row in rows if name in row]
        if not rows:
            return None
        drawn, axes, every = _by_place(rows)
        for axis, groups in every:
            for own, colour in groups:
                values = np.mean([read(row) for row in own], axis=0)
                xs = np.arange(len(values)) + first if at is None else at(own, values)
                axis.plot(xs, values, color=colour, label=own[0]["name"], **style)
            if beside is not None:
                axis.plot(xs, np.mean([row[beside] for row in own], axis=0), **DOTTED)
            label(axis, x, y)
        return _with_legend(drawn, axes, caption)

    return draw


def over_days(name, y, caption):
    """Returns a figure function with one line per method over training days."""
    return lines(
        lambda row: [mark[name] for mark in row["curve"]],
        *("days learned", y, caption),
        at=lambda own, values: [mark["day"] for mark in own[0]["curve"]],
        **{"marker": "o", "ms": 3},
    )


by_day = lines(  # Figure 2.7: savings per home and day.
    *("by_day", "day", SAVED_WH),
    "Saved by a home each day, before training on it; dotted: all standby.",
    beside="standby_by_day",
)
accuracy_cdf = lines(  # Figure 2.5 a: cumulative distribution of the accuracy.
    *("accuracy_cdf", "accuracy of an hour of a device", "share of hours"),
    "Hours of held-out days; lower right is better.",
    at=lambda own, values: np.linspace(0, 1, len(values)),
)
accuracy_by_hour = lines(  # Figure 2.5 b.
    *("accuracy_by_hour", "hour of the day", "accuracy"),
    "Held-out days, all devices; safe at zero.",
    first=0,
)
by_hour = lines(  # Figure 2.9: savings per hour of held-out days.
    *("by_hour", "hour of the day", SAVED_WH),
    "Saved by a home at each hour of held-out days; dotted: all standby.",
    beside="standby_by_hour",
    first=0,
)


def money(rows):
    """Draws figure 2.8 for one month: savings at a fixed and a variable tariff."""
    drawn, axes, every = _by_place(rows)
    for axis, groups in every:
        for shift, rate in ((-0.2, "fixed"), (0.2, "variable")):
            of = [[row[f"{rate}_cents"] for row in own] for own, _ in groups]
            at, spread = np.arange(len(of)) + shift, [np.std(one) for one in of]
            axis.bar(at, [np.mean(x) for x in of], 0.4, yerr=spread, label=rate)
        axis.set_xticks(range(len(groups)), [own[0]["name"] for own, _ in groups])
        axis.set_ylabel("saved by a home [cents a month]", fontsize=8)
    caption = (
        "Savings on held-out days, scaled to 30 days because traces are too short for "
        "whole months. Bars: mean and deviation over seeds."
    )
    return _with_legend(drawn, axes, caption)


def by_home(rows):
    """Draws figure 2.10: the fraction saved by each home, by method."""
    drawn, _, every = _by_place(rows)
    for axis, groups in every:
        for number, (own, colour) in enumerate(groups):
            homes = [share for row in own for share in row["by_home"]]
            values = 100 * np.array([share for share in homes if share is not None])
            bar = {"color": colour, "alpha": 0.5, "yerr": values.std(), "capsize": 3}
            axis.bar(number, values.mean(), **bar)
            spread = number + np.linspace(-0.25, 0.25, len(values))
            axis.plot(spread, values, ".", ms=3, color="#333333")
        axis.set_xticks(range(len(groups)), [own[0]["name"] for own, _ in groups])
        axis.set_ylabel("standby energy saved [%]", fontsize=8)
    caption = (
        "Each dot is a home with standby on held-out days, for one seed; bars: mean, "
        "deviation."
    )
    return picture(drawn, caption)


def over_number(name, y, x, log=True):
    """Returns figure 2.4: a value over a hyper-parameter, with a dot per seed."""

    def draw(rows):
        drawn, _, every = _by_place(rows)
        for axis, groups in every:
            own = [group for group, _ in groups]
            xs = [group[0]["x"] for group in own]
            axis.plot(xs, [mean(group, name) for group in own], "-o", ms=3)
            for group in own:
                values = [row[name] for row in group]
                axis.plot([group[0]["x"]] * len(group), values, ".", color="#767676")
            if log:
                axis.set_xscale("symlog", linthresh=1e-3)
                axis.set_xticks(xs, [f"{x:g}" for x in xs])
                axis.minorticks_off()
            low, high = axis.get_ylim()
            room = max(0, LEAST_SPAN - (high - low)) / 2
            axis.set_ylim(low - room, high + room)
            label(axis, x, y)
        return picture(drawn, f"{y} on held-out days over {x}; dots: seeds.")

    return draw


def joined(rows):
    """Draws figure 2.11: the fraction that new homes save each day."""
    drawn, axes, every = _by_place(rows)
    for axis, groups in every:
        for own, colour in groups:
            for which, style in (("joined", "-"), ("alone", ":")):
                values = 100 * np.mean([r[which]["by_day"] for r in own], axis=0)
                name = own[0]["name"] if which == "joined" else None
                days = np.arange(1, len(values) + 1)
                axis.plot(days, values, style, lw=1.3, color=colour, label=name)
        label(axis, "days since joining", "standby energy saved [%]")
    caption = "New homes, each day before training on it; dotted: trained from scratch."
    return _with_legend(drawn, axes, caption)


QUESTIONS = {
    "methods": Question(
        "Every method (figures 2.7 to 2.10)",
        tables.control_table,
        {
            "days": by_day,
            "test_days": over_days("saved", SAVED, "Held-out days, as homes learn."),
            "hours": by_hour,
            "homes": by_home,
            "money": money,
        },
    ),
    "forecasts": Question(
        "Load forecasting (figures 2.5 and 2.6)",
        tables.forecast_table,
        {
            "forecasts": over_days("mase", "MASE", "Held-out days, as homes learn."),
            "accuracy": over_days(
                "accuracy", "accuracy", "Held-out days; safe at zero."
            ),
            "accuracy_cdf": accuracy_cdf,
            "accuracy_by_hour": accuracy_by_hour,
        },
    ),
    "joining": Question(
        "A new home joins (figure 2.11)", tables.joining_table, {"joining": joined}
    ),
    "alpha": Question(
        "Shared layers, α (figure 2.4 a)",
        tables.control_table,
        {"alpha": over_number("saved", SAVED, "α", log=False)},
    ),
    "beta": Question(
        "Hours between broadcasts of forecasters, β (figure 2.4 b)",
        tables.forecast_table,
        {
            "beta": over_number("mase", "MASE", "β [hours]"),
            "beta_saved": over_number("saved", SAVED, "β [hours]"),
        },
    ),
    "gamma": Question(
        "Hours between broadcasts of Q-networks, γ (figure 2.4 c)",
        tables.control_table,
        {"gamma": over_number("saved", SAVED, "γ [hours]")},
    ),
    "graphs": Question("Communication graph", tables.graph_table),
    "messages": Question("Lost messages", tables.control_table),
    "privacy": Question(
        "Cost of noise",
        tables.privacy_table,
        {"privacy": over_number("saved", SAVED, "noise multiplier")},
    ),
    "speed": Question("Speed", speed_table),
}


PAGE = pages.chapter(
    "PFDRL compared with other methods", goals.table, tables.PAPER, QUESTIONS
)
markdown, write = PAGE.markdown, PAGE.write
