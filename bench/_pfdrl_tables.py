"""The comparison with PFDRL as tables, the chapter's words beside."""

import statistics

PAPER = (
    "The chapter tells of Pecan Street: 98 % of standby energy saved, 92 % of loads "
    "forecast, LR < SVM < BP < LSTM; saved: Cloud ≈ FL ≈ FRL < Local ≈ PFDRL; days "
    "until the best: PFDRL ≈ FRL < FL ≈ Cloud < Local; best α = 6 of 8, β = 6 or 12 "
    "hours, γ = 2, 6 or 12; a new home needs about 7 days. Its saved energy is load "
    "less forecast, which is an error; here it is what devices in standby take while "
    "they are switched off, on days that nothing was learned of. In use, off: minutes "
    "in which a device that was in use was switched off; dimmed: put to standby. "
    "Optimal: minutes with the action of the highest reward. Days: until held-out "
    "saving is 95 % of the last and stays so. MASE: mean absolute error over that of "
    "holding the last minute for an hour, of all devices together, whose largest "
    "count most; median device: each by its own. Tracebase's homes are composed: they "
    "share devices, and days repeat. Runs over α, γ, graphs, messages and noise "
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
)


def control_table(rows):
    """A row a method or a setting, means over seeds."""
    head = [
        *("homes of", "", "seeds", "saved [%]", "over seeds", "in use, off [%]"),
        *("dimmed [%]", "optimal [%]", "days", "Wh a home and day"),
        *("cents a month, fixed", "variable"),
    ]
    lines = []
    for own in grouped(rows):
        percent = lambda name, d=2, own=own: f"{100 * mean(own, name):.{d}f}"
        spread = 100 * deviation([row["saved"] for row in own])
        daily = statistics.fmean(sum(row["by_hour"]) for row in own)
        lines.append(
            [
                *(own[0]["place"], own[0]["name"], len(own), percent("saved")),
                *(f"± {spread:.2f}", percent("switched_off"), percent("dimmed")),
                *(percent("optimal"), _days(own), f"{daily:.1f}"),
                *(f"{mean(own, 'fixed_cents'):.2f}",),
                *(f"{mean(own, 'variable_cents'):.2f}",),
            ]
        )
    return markdown(head, lines)


def forecast_table(rows):
    """A row a kind of forecaster or a β, and what holding the last minute gives."""
    head = [
        "homes of",
        "",
        "seeds",
        "MASE",
        "median device",
        "MAE [W]",
        "RMSE [W]",
        "accuracy [%]",
    ]
    lines = []
    for place in dict.fromkeys(row["place"] for row in rows):
        each = grouped([row for row in rows if row["place"] == place])
        for own in each:
            lines.append([place, own[0]["name"], len(own), *_errors(own)])
        held = [row["held"] for row in own]
        lines.append([place, "persistence", len(own), *_errors(held)])
    return markdown(head, lines)


def joining_table(rows):
    """A row a method: days of new homes with and without what the street gives."""
    head = ["homes of", "", "new homes", "days, joined", "slowest", "days, alone"]
    lines = []
    for own in grouped(rows):
        told = [own[0]["place"], own[0]["name"], sum(row["newcomers"] for row in own)]
        joined, alone = (
            [day for row in own for day in row[which]["days"]]
            for which in ("joined", "alone")
        )
        some = lambda days: f"{statistics.median(days):g}" if all(days) else "never"
        final = [share for row in own for share in row["joined"]["final"]]
        told += [some(joined), max(joined), some(alone)]
        lines.append([*told, f"{100 * statistics.fmean(final):.1f}"])
    return markdown([*head, "saved in the end [%]"], lines)


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
    return markdown([*head, "in use, off [%]", "optimal [%]", "MASE"], lines)


def speed_table(rows):
    """A row a figure."""
    lines = [
        [row["name"], f"{row['value']:.4g}", row["unit"], row["asked"], row["what"]]
        for row in rows
    ]
    return markdown(["", "measured", "unit", "asked for", "of what"], lines)


def mean(rows, name):
    """The mean over seeds."""
    return statistics.fmean(row[name] for row in rows)


def deviation(values):
    """Standard deviation over seeds; 0 of one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def markdown(head, lines):
    """A table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _errors(rows):
    return [
        *(f"{mean(rows, 'mase'):.3f}", f"{mean(rows, 'mase_median'):.3f}"),
        *(f"{mean(rows, 'mae'):.2f}",),
        *(f"{mean(rows, 'rmse'):.2f}", f"{100 * mean(rows, 'accuracy'):.1f}"),
    ]


def _days(rows):
    days = sorted(row["days"] for row in rows)
    return "–".join(dict.fromkeys(map(str, (days[0], days[-1]))))
