"""The comparison with PFDRL as tables, a page and figures."""

import functools

import _pfdrl_goals as goals
import _pfdrl_tables as tables
import _question_page as question_page
import numpy as np

from jaxanon.report.figures import picture

COLOURS = ("#767676", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00")
GREY = {"color": "#767676", "ls": ":", "lw": 1}


def panels(rows, width=4.4, height=3.3):
    """``(figure, {place: axis})``, a panel for each data set."""
    places = list(dict.fromkeys(row["place"] for row in rows))
    return question_page.panels(places, width, height)


def over_days(name, label, caption):
    """A line for each method over the days that it has learned."""

    def draw(rows):
        drawn, axes = panels(rows)
        for place, axis in axes.items():
            for own, colour in _coloured(rows, place):
                days = [mark["day"] for mark in own[0]["curve"]]
                each = [[mark[name] for mark in row["curve"]] for row in own]
                values = np.mean(each, axis=0)
                axis.plot(days, values, "-o", ms=3, color=colour, label=own[0]["name"])
            axis.set_xlabel("days learned", fontsize=8)
            axis.set_ylabel(label, fontsize=8)
        return _with_legend(drawn, axes, caption)

    return draw


def by_day(rows):
    """Figure 2.7: what a home saves each day that it lives, beside what there is."""
    drawn, axes = panels(rows)
    for place, axis in axes.items():
        for own, colour in _coloured(rows, place):
            values = np.mean([row["by_day"] for row in own], axis=0)
            days = np.arange(1, len(values) + 1)
            axis.plot(days, values, lw=1.3, color=colour, label=own[0]["name"])
        axis.plot(days, np.mean([r["standby_by_day"] for r in own], axis=0), **GREY)
        axis.set_xlabel("day", fontsize=8)
        axis.set_ylabel("saved by a home [Wh]", fontsize=8)
    caption = "Saved by a home each day, before that day taught; dotted: all standby."
    return _with_legend(drawn, axes, caption)


def accuracy_cdf(rows):
    """Figure 2.5 a: the share of devices' hours that are forecast at most so well."""
    found = [row for row in rows if "accuracy_cdf" in row]
    if not found:
        return None
    drawn, axes = panels(found)
    for place, axis in axes.items():
        for own, colour in _coloured(found, place):
            values = np.mean([row["accuracy_cdf"] for row in own], axis=0)
            at = np.linspace(0, 1, len(values))
            axis.plot(at, values, lw=1.3, color=colour, label=own[0]["name"])
        axis.set_xlabel("accuracy of an hour of a device", fontsize=8)
        axis.set_ylabel("share of hours", fontsize=8)
    return _with_legend(drawn, axes, "Hours of held-out days; lower right is better.")


def accuracy_by_hour(rows):
    """Figure 2.5 b: accuracy by hour of the day."""
    found = [row for row in rows if "accuracy_by_hour" in row]
    if not found:
        return None
    drawn, axes = panels(found)
    for place, axis in axes.items():
        for own, colour in _coloured(found, place):
            values = np.mean([row["accuracy_by_hour"] for row in own], axis=0)
            axis.plot(range(24), values, lw=1.3, color=colour, label=own[0]["name"])
        axis.set_xlabel("hour of the day", fontsize=8)
        axis.set_ylabel("accuracy", fontsize=8)
    return _with_legend(drawn, axes, "Held-out days, all devices; safe at zero.")


def money(rows):
    """Figure 2.8, of one month: what a home saves at a fixed and at a variable rate."""
    drawn, axes = panels(rows)
    for place, axis in axes.items():
        each = [own for own, _ in _coloured(rows, place)]
        for shift, rate in ((-0.2, "fixed"), (0.2, "variable")):
            of = [[row[f"{rate}_cents"] for row in own] for own in each]
            at, spread = np.arange(len(of)) + shift, [np.std(one) for one in of]
            axis.bar(at, [np.mean(x) for x in of], 0.4, yerr=spread, label=rate)
        axis.set_xticks(range(len(each)), [own[0]["name"] for own in each])
        axis.set_ylabel("saved by a home [cents a month]", fontsize=8)
    caption = (
        "Saved on held-out days, times 30 over their number: not months that were "
        "lived, for which traces are too short. Bars: mean and deviation over seeds."
    )
    return _with_legend(drawn, axes, caption)


def by_hour(rows):
    """Figure 2.9: what a home saves at each hour of held-out days."""
    drawn, axes = panels(rows)
    for place, axis in axes.items():
        for own, colour in _coloured(rows, place):
            values = np.mean([row["by_hour"] for row in own], axis=0)
            axis.plot(range(24), values, lw=1.3, color=colour, label=own[0]["name"])
        axis.plot(
            range(24), np.mean([r["standby_by_hour"] for r in own], axis=0), **GREY
        )
        axis.set_xlabel("hour of the day", fontsize=8)
        axis.set_ylabel("saved by a home [Wh]", fontsize=8)
    caption = "Saved by a home at each hour of held-out days; dotted: all standby."
    return _with_legend(drawn, axes, caption)


def by_home(rows):
    """Figure 2.10: the share that each home saves, by method."""
    drawn, axes = panels(rows)
    for place, axis in axes.items():
        names = []
        for number, (own, colour) in enumerate(_coloured(rows, place)):
            homes = [share for row in own for share in row["by_home"]]
            values = 100 * np.array([share for share in homes if share is not None])
            bar = {"color": colour, "alpha": 0.5, "yerr": values.std(), "capsize": 3}
            axis.bar(number, values.mean(), **bar)
            spread = number + np.linspace(-0.25, 0.25, len(values))
            axis.plot(spread, values, ".", ms=3, color="#333333")
            names.append(own[0]["name"])
        axis.set_xticks(range(len(names)), names)
        axis.set_ylabel("standby energy saved [%]", fontsize=8)
    caption = (
        "Every dot is a home of a seed, on held-out days, if it has any standby then; "
        "bars: mean, deviation."
    )
    return picture(drawn, caption)


LEAST_SPAN = 0.05  # Of an axis: what differs by less than seeds do should look so.


def over_number(name, label, x_label, log=True):
    """Figure 2.4: a value over a hyper-parameter, seeds as dots."""

    def draw(rows):
        drawn, axes = panels(rows)
        for place, axis in axes.items():
            own = [group for group, _ in _coloured(rows, place)]
            xs = [group[0]["x"] for group in own]
            axis.plot(xs, [tables.mean(g, name) for g in own], "-o", ms=3)
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
            axis.set_xlabel(x_label, fontsize=8)
            axis.set_ylabel(label, fontsize=8)
        return picture(drawn, f"{label} on held-out days over {x_label}; dots: seeds.")

    return draw


def joined(rows):
    """Figure 2.11: the share that new homes save day by day."""
    drawn, axes = panels(rows)
    for place, axis in axes.items():
        for own, colour in _coloured(rows, place):
            for which, style in (("joined", "-"), ("alone", ":")):
                values = 100 * np.mean([r[which]["by_day"] for r in own], axis=0)
                label = own[0]["name"] if which == "joined" else None
                days = np.arange(1, len(values) + 1)
                axis.plot(days, values, style, lw=1.3, color=colour, label=label)
        axis.set_xlabel("days since the home is there", fontsize=8)
        axis.set_ylabel("standby energy saved [%]", fontsize=8)
    caption = "New homes, each day before it taught; dotted: without joining."
    return _with_legend(drawn, axes, caption)


def _coloured(rows, place):
    groups = tables.grouped([row for row in rows if row["place"] == place])
    return [(own, COLOURS[i % len(COLOURS)]) for i, own in enumerate(groups)]


def _with_legend(drawn, axes, caption):
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    return picture(drawn, caption)


SAVED = "share of standby saved"
FIGURES = {
    "methods": {
        "days": by_day,
        "held_out": over_days("saved", SAVED, "Held-out days, as homes learn."),
        "hours": by_hour,
        "homes": by_home,
        "money": money,
    },
    "forecasts": {
        "forecasts": over_days("mase", "MASE", "Held-out days, as homes learn."),
        "accuracy": over_days("accuracy", "accuracy", "Held-out days; safe at zero."),
        "accuracy_cdf": accuracy_cdf,
        "accuracy_by_hour": accuracy_by_hour,
    },
    "joining": {"joining": joined},
    "alpha": {"alpha": over_number("saved", SAVED, "α", log=False)},
    "beta": {
        "beta": over_number("mase", "MASE", "β [hours]"),
        "beta_saved": over_number("saved", SAVED, "β [hours]"),
    },
    "gamma": {"gamma": over_number("saved", SAVED, "γ [hours]")},
    "privacy": {"privacy": over_number("saved", SAVED, "noise multiplier")},
}
PAGE = question_page.Page("PFDRL beside its rivals", tables, goals, FIGURES)
markdown = functools.partial(question_page.markdown, PAGE)
write = functools.partial(question_page.write, PAGE)
