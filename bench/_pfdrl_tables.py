"""The comparison with PFDRL as tables, the chapter's words beside."""

import statistics

from _markdown import table
from _pfdrl_settled import settled

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
TITLES = {
    "methods": "Every method (figures 2.7 to 2.10)",
    "forecasts": "Load forecasting (figures 2.5 and 2.6)",
    "joining": "A new home joins (figure 2.11)",
    "alpha": "Layers that are shared, α (figure 2.4 a)",
    "beta": "Hours between broadcasts of forecasters, β (figure 2.4 b)",
    "gamma": "Hours between broadcasts of Q-networks, γ (figure 2.4 c)",
    "graphs": "Who hears whom",
    "messages": "Messages that get lost",
    "privacy": "The price of noise",
    "speed": "Speed",
}
BY_NUMBER = ("alpha", "beta", "gamma", "privacy")


def every(rows) -> dict[str, str]:
    """Tables in Markdown by question; none where there are no rows."""
    makers = {
        "forecasts": forecast_table,
        "beta": forecast_table,
        "joining": joining_table,
        "graphs": graph_table,
        "privacy": privacy_table,
        "speed": speed_table,
    }
    found = {}
    for question in TITLES:
        own = [row for row in rows if row["question"] == question]
        if own:
            found[question] = makers.get(question, control_table)(own)
    return found


def grouped(rows) -> list[list[dict]]:
    """Rows of each place and name: its seeds. In order of ``x``, else as they come."""
    found = {}
    for row in sorted(rows, key=order):
        found.setdefault((row["place"], row["name"]), []).append(row)
    return list(found.values())


def order(row):
    """Where a row stands: by place, then by number or by name."""
    by_name = NAMES.index(row["name"]) if row["name"] in NAMES else 0
    return row["place"], row["x"] if row["x"] is not None else by_name


NAMES = (
    *("Local", "Cloud", "FL", "FRL", "PFDRL"),
    *("LR", "SVM", "BP", "LSTM"),
    *("everybody", "4-regular", "random, 0.3", "ring", "nobody"),
    *("all arrive", "10 % lost", "half lost", "half lost, the last kept"),
    "half a round late",
)


def control_table(rows, **more):
    """A row a method or a setting, means over seeds; ``more`` columns of its rows."""
    head = [
        *("homes of", "", "seeds", "saved [%]", "over seeds", "in use, off [%]"),
        *("dimmed [%]", "optimal [%]", "days, saving", "days, with care"),
        *("Wh a home and day", "cents a month, fixed", "variable", *more),
    ]
    lines = []
    for own in grouped(rows):
        percent = lambda name, d=2, own=own: f"{100 * mean(own, name):.{d}f}"
        spread = f"± {100 * deviation([row['saved'] for row in own]):.2f}"
        daily = statistics.fmean(sum(row["by_hour"]) for row in own)
        lines.append(
            [
                *(own[0]["place"], own[0]["name"], len(own), percent("saved")),
                *(spread if len(own) > 1 else "", percent("switched_off")),
                percent("dimmed"),
                *(percent("optimal"), _days(own), _days(own, careful=True)),
                *(f"{daily:.1f}", f"{mean(own, 'fixed_cents'):.2f}"),
                *(f"{mean(own, 'variable_cents'):.2f}",),
                *(told(own) for told in more.values()),
            ]
        )
    return table(head, lines)


def graph_table(rows):
    """The same, and how many others of its kind a device hears."""
    heard = lambda own: kept(own, "heard", lambda x: f"{statistics.fmean(x):.1f}")
    nobody = lambda own: kept(own, "hear_nobody", lambda x: f"{statistics.fmean(x):g}")
    devices = lambda own: f"{mean(own, 'devices'):g}"
    more = {"hears others": heard, "devices that hear nobody": nobody}
    return control_table(rows, **more, **{"of devices": devices})


def kept(rows, name, told):
    """What rows have of a name, told; earlier rows have less than later ones."""
    found = [row[name] for row in rows if name in row]
    return told(found) if found else "not kept"


def forecast_table(rows):
    """A row a kind of forecaster or a β, and what holding the last minute gives.

    Step sizes are told where they were chosen, which they are not for β.
    """
    head = ["homes of", "", "seeds", "MASE", "median device"]
    head += ["MAE [W]", "RMSE [W]", "accuracy [%]"]
    chosen = any("fit_rate" in row for row in rows)
    head += ["step sizes"] if chosen else []
    lines = []
    for place in dict.fromkeys(row["place"] for row in rows):
        each = grouped([row for row in rows if row["place"] == place])
        for own in each:
            rates = kept(own, "fit_rate", lambda x: ", ".join(f"{r:g}" for r in x))
            told = [rates] if chosen else []
            lines.append([place, own[0]["name"], len(own), *_errors(own), *told])
        held = [row["held"] for row in own]
        told = [""] if chosen else []
        lines.append([place, "persistence", len(own), *_errors(held), *told])
    return table(head, lines)


def joining_table(rows):
    """A row a method: days of new homes with and without what the street gives."""
    head = [
        *("homes of", "", "new homes", "days, joined", "slowest", "with care"),
        *("slowest", "days, alone", "with care", "saved in the end [%]"),
    ]
    lines = []
    for own in grouped(rows):
        told = [own[0]["place"], own[0]["name"], sum(row["newcomers"] for row in own)]
        joined, careful = (newcomers(own, "joined", care) for care in (False, True))
        alone, so_too = (newcomers(own, "alone", care) for care in (False, True))
        told += [_median(joined), _slowest(joined), _median(careful)]
        told += [_slowest(careful), _median(alone), _median(so_too)]
        final = [share for row in own for share in row["joined"]["final"]]
        lines.append([*told, f"{100 * statistics.fmean(final):.1f}"])
    return table(head, lines)


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


def _median(days):
    if days is None:
        return "not kept"
    return f"{statistics.median(days):g}" if all(days) else "never"


def _slowest(days):
    if days is None:
        return "not kept"
    return str(max(days)) if all(days) else "never"


def privacy_table(rows):
    """A row a noise multiplier: its ε of a device and of a home, and what is saved."""
    head = ["homes of", "", "ε of a device", "ε of a home", "saved [%]"]
    lines = []
    for own in grouped(rows):
        epsilon = lambda name, own=own: (
            "∞" if own[0][name] is None else f"{own[0][name]:.3g}"
        )
        lines.append(
            [
                *(own[0]["place"], own[0]["name"]),
                *(epsilon("epsilon_device"), epsilon("epsilon_home")),
                *(f"{100 * mean(own, 'saved'):.2f}",),
                *(f"{100 * mean(own, 'switched_off'):.2f}",),
                *(f"{100 * mean(own, 'optimal'):.2f}", f"{mean(own, 'mase'):.3f}"),
            ]
        )
    return table([*head, "in use, off [%]", "optimal [%]", "MASE"], lines)


def speed_table(rows):
    """A row a figure."""
    lines = [
        [row["name"], f"{row['value']:.4g}", row["unit"], row["asked"], row["what"]]
        for row in rows
    ]
    return table(["", "measured", "unit", "asked for", "of what"], lines)


def mean(rows, name):
    """The mean over seeds."""
    return statistics.fmean(row[name] for row in rows)


def deviation(values):
    """Standard deviation over seeds; 0 of one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _errors(rows):
    return [
        f"{mean(rows, 'mase'):.3f}",
        kept(rows, "mase_median", lambda x: f"{statistics.fmean(x):.3f}"),
        *(f"{mean(rows, 'mae'):.2f}",),
        *(f"{mean(rows, 'rmse'):.2f}", f"{100 * mean(rows, 'accuracy'):.1f}"),
    ]


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
