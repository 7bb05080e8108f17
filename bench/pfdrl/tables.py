"""The comparison with PFDRL as tables, the chapter's words beside."""

import statistics

from harness import comparison
from harness.comparison import deviation, first, kept, number, percent
from harness.pages import by, columns_table, table
from pfdrl.runs import settled

PAPER = (
    "The chapter tells of Pecan Street: 98 % of standby energy saved, 92 % of loads "
    "forecast, LR < SVM < BP < LSTM; saved: Cloud ≈ FL ≈ FRL < Local ≈ PFDRL; days "
    "until the best: PFDRL ≈ FRL < FL ≈ Cloud < Local; best α = 6 of 8, β = 6 or 12 "
    "hours, γ = 2, 6 or 12; a new home needs about 7 days. Its saved energy is load "
    "less forecast, which is an error; here it is what devices in standby take while "
    "they are switched off, on days that nothing was learned of. In use, off: minutes "
    "in which a device that was in use was switched off; dimmed: put to standby. "
    "Optimal: minutes with the action of the highest reward. Days, saving: until "
    "held-out saving is 95 % of the last and stays so, which switching everything off "
    "gives, too; days, with care: until minutes with the best action are 95 % of the "
    "last as well, and in-use minutes off a hundredth more than in the end at most. "
    "Money a month is that of the held-out days, times 30 over their number: no trace "
    "is long enough for months (figure 2.8). Not drawn: accuracy over the number of "
    "homes (2.6 b). Where forecasters are compared each has the step size, of the same "
    "three, that does best on the last fifth of the days that teach; rows that do not "
    "tell theirs are older. MASE: mean absolute error over that of holding the last "
    "minute for an hour, of all devices together, whose largest count most; median "
    "device: each by its own. Tracebase's homes are composed: they share devices, and "
    "days repeat. Runs over α, γ, graphs, messages and noise "
    "forecast by BP, which costs less; those of forecasters and β have a Q-network of "
    "8."
)
NAMES = (
    *("Local", "Cloud", "FL", "FRL", "PFDRL"),
    *("LR", "SVM", "BP", "LSTM"),
    *("everybody", "4-regular", "random, 0.3", "ring", "nobody"),
    *("all arrive", "10 % lost", "half lost", "half lost, the last kept"),
    "half a round late",
)
WHICH = {"homes of": first("place"), "": first("name")}


def order(row):
    """Where a row stands: by place, then by number or by name."""
    by_name = NAMES.index(row["name"]) if row["name"] in NAMES else 0
    return row["place"], row["x"] if row["x"] is not None else by_name


def grouped(rows) -> list[list[dict]]:
    """Rows of each place and name: its seeds. In order of ``x``, else as they come."""
    return comparison.grouped(rows, ("place", "name"), order)


def control_table(rows, **more):
    """A row a method or a setting, means over seeds; ``more`` columns of its rows."""

    def over_seeds(own):
        spread = 100 * deviation([row["saved"] for row in own])
        return f"± {spread:.2f}" if len(own) > 1 else ""

    columns = {
        "seeds": len,
        "saved [%]": percent("saved"),
        "over seeds": over_seeds,
        "in use, off [%]": percent("switched_off"),
        "dimmed [%]": percent("dimmed"),
        "optimal [%]": percent("optimal"),
        "days, saving": _days,
        "days, with care": lambda own: _days(own, careful=True),
        "Wh a home and day": lambda own: (
            f"{statistics.fmean(sum(row['by_hour']) for row in own):.1f}"
        ),
        "cents a month, fixed": number("fixed_cents"),
        "variable": number("variable_cents"),
    }
    return columns_table(grouped(rows), WHICH | columns | more)


def graph_table(rows):
    """The same, and how many others of its kind a device hears."""
    told = lambda name, form: (
        lambda own: kept(own, name, lambda x: f"{statistics.fmean(x):{form}}")
    )
    more = {
        "hears others": told("heard", ".1f"),
        "devices that hear nobody": told("hear_nobody", "g"),
        "of devices": number("devices", "g"),
    }
    return control_table(rows, **more)


def forecast_table(rows):
    """A row a kind of forecaster or a β, and what holding the last minute gives.

    Step sizes are told where they were chosen, which they are not for β.
    """
    errors = {
        "MASE": number("mase", ".3f"),
        "median device": lambda own: kept(
            own, "mase_median", lambda x: f"{statistics.fmean(x):.3f}"
        ),
        "MAE [W]": number("mae"),
        "RMSE [W]": number("rmse"),
        "accuracy [%]": percent("accuracy", 1),
    }
    told = lambda own: [make(own) for make in errors.values()]
    rates = lambda own: kept(
        own, "forecaster_learning_rate", lambda x: ", ".join(f"{r:g}" for r in x)
    )
    chosen = (
        ["step sizes"] if any("forecaster_learning_rate" in row for row in rows) else []
    )
    lines = []
    for place, each in by(rows, "place").items():
        for own in grouped(each):
            line = [place, own[0]["name"], len(own), *told(own)]
            lines.append([*line, rates(own)] if chosen else line)
        held = [row["held"] for row in own]
        lines.append([place, "persistence", len(own), *told(held), *[""] * len(chosen)])
    return table([*WHICH, "seeds", *errors, *chosen], lines)


def joining_table(rows):
    """A row a method: days of new homes with and without what the street gives."""

    def days(told, which, careful=False):
        def cell(own):
            found = newcomers(own, which, careful)
            if found is None:
                return "not kept"
            return f"{told(found):g}" if all(found) else "never"

        return cell

    columns = {
        **WHICH,
        "new homes": lambda own: sum(row["newcomers"] for row in own),
        "days, joined": days(statistics.median, "joined"),
        "slowest": days(max, "joined"),
        "with care": days(statistics.median, "joined", careful=True),
        "slowest, with care": days(max, "joined", careful=True),
        "days, alone": days(statistics.median, "alone"),
        "alone, with care": days(statistics.median, "alone", careful=True),
        "saved in the end [%]": lambda own: f"{100 * statistics.fmean(final(own)):.1f}",
    }
    return columns_table(grouped(rows), columns)


def final(rows):
    """What each new home that joined saves in the end."""
    return [share for row in rows for share in row["joined"]["final"]]


def newcomers(rows, which, careful=False):
    """Days of each new home, 0 if never; None where rows do not tell."""
    if not careful:
        return [day for row in rows for day in row[which]["days"]]
    if not all("curves" in row[which] for row in rows):
        return None
    return [
        settled(curve, careful=True, last=last)
        for row in rows
        for curve, last in zip(row[which]["curves"], row[which]["last"], strict=True)
    ]


def privacy_table(rows):
    """A row a noise multiplier: its ε of a device and of a home, and what is saved."""
    epsilon = lambda name: (
        lambda own: "∞" if own[0][name] is None else f"{own[0][name]:.3g}"
    )
    columns = {
        **WHICH,
        "ε of a device": epsilon("epsilon_device"),
        "ε of a home": epsilon("epsilon_home"),
        "saved [%]": percent("saved"),
        "in use, off [%]": percent("switched_off"),
        "optimal [%]": percent("optimal"),
        "MASE": number("mase", ".3f"),
    }
    return columns_table(grouped(rows), columns)


def days(rows, careful=False):
    """Days until each run did as well as in the end; None where rows do not tell."""
    if not careful:
        return [row["days"] for row in rows]
    if not all("curve" in row for row in rows):
        return None
    return [settled(row["curve"], careful=True) for row in rows]


def _days(rows, careful=False):
    found = days(rows, careful)
    if found is None:
        return "not kept"
    ends = [min(found), max(found)] if all(found) else ["never"]
    return "–".join(dict.fromkeys(map(str, ends)))
