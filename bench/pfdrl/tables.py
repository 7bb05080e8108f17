"""Tables of the PFDRL benchmark, with the chapter's results."""

import statistics

from harness import comparison
from harness.comparison import deviation, first, kept, number, percent
from harness.pages import by, columns_table, table
from pfdrl.runs import settled

PAPER = (
    "The chapter reports results on Pecan Street. PFDRL saves 98 % of standby energy. "
    "Forecast accuracy is 92 %, with LR < SVM < BP < LSTM. Savings: Cloud ≈ FL ≈ FRL < "
    "Local ≈ PFDRL. Days to converge: PFDRL ≈ FRL < FL ≈ Cloud < Local. Best settings: "
    "α = 6 of 8, β = 6 or 12 hours, γ = 2, 6 or 12. A new home needs about 7 days. The "
    "chapter's saved energy is load less forecast, which is a forecast error. Here it "
    "is the energy of devices in standby while switched off, on held-out days. In use, "
    "off: in-use minutes in which a device is switched off; dimmed: put in standby. "
    "Optimal: minutes with the action of the highest reward. Days, saving: days until "
    "held-out saving stays above 95 % of its final value; switching off everything "
    "achieves it too. Days, with care: optimal minutes also stay above 95 % of their "
    "final value, and in-use minutes off exceed theirs by at most a hundredth. Money a "
    "month is that of the held-out days, scaled to 30 days, because traces are too "
    "short for months (figure 2.8). Figure 2.6 b, accuracy over the number of homes, "
    "is omitted. Each forecaster uses the best of three learning rates on the last "
    "fifth of the training days; older rows do not show it. MASE is the mean absolute "
    "error divided by that of persistence over an hour. It pools all devices, so large "
    "loads dominate; the median device is also shown. Tracebase's homes are composed: "
    "they share devices, and days repeat. Runs over α, γ, graphs, messages and noise "
    "use the cheaper BP forecaster; those of forecasters and β use a Q-network of "
    "width 8."
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
    """Returns the sort key of a row: place, then number or name."""
    by_name = NAMES.index(row["name"]) if row["name"] in NAMES else 0
    return row["place"], row["x"] if row["x"] is not None else by_name


def grouped(rows) -> list[list[dict]]:
    """Returns the rows of each place and name (its seeds), in order of ``x`` if set."""
    return comparison.grouped(rows, ("place", "name"), order)


def control_table(rows, **more):
    """Returns a table by method or setting, with means over seeds."""

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
    """Returns the same, with the number of neighbors of a device."""
    told = lambda name, form: (
        lambda own: kept(own, name, lambda x: f"{statistics.fmean(x):{form}}")
    )
    more = {
        "neighbors": told("heard", ".1f"),
        "devices without neighbors": told("hear_nobody", "g"),
        "of devices": number("devices", "g"),
    }
    return control_table(rows, **more)


def forecast_table(rows):
    """Returns a table by forecaster or β, with the errors of persistence.

    Learning rates are shown where they were selected, which excludes β.
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
    """Returns a table by method: days of new homes with and without shared layers."""

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
    """Returns the final saving of each new home that joined."""
    return [share for row in rows for share in row["joined"]["final"]]


def newcomers(rows, which, careful=False):
    """Returns the days of each new home, 0 if never; None if rows lack curves."""
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
    """Returns a table by noise multiplier: ε per device and home, and savings."""
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
    """Returns the days until each run reached its final level; None without curves."""
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
