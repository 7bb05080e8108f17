"""Goals of PFDRL: the requirement, the result, and whether it holds."""

import statistics

from harness import pages
from harness.comparison import HOLDS, LIMITS, deviation, held, spread
from pfdrl import tables

FORECASTERS = ("LR", "SVM", "BP")
MOST_DAYS = 7
MEASURES = ((False, "saving alone"), (True, "with care"))
LACKING = {  # Start of the requirement: name, requirement.
    "<=": ("30 days of a neighborhood", "<= 600 s"),
    ">= 50": ("over Stable-Baselines3", ">= 50 x"),
}


def table(rows) -> str:
    """Returns a table of requirements and places, with means over seeds."""
    asked = {"methods": control, "forecasts": forecasting, "joining": joining}
    lines = []
    for question, goals in asked.items():
        places = pages.by(pages.asked(rows, question), "place") or {"–": []}
        # Requirements refer to Tracebase's homes; others follow.
        for place in sorted(places, key=lambda place: (place != "tracebase", place)):
            own = pages.by(places[place], "name")
            lines += [[place, *line] for line in goals(own)]
    lines += speed(pages.asked(rows, "speed"))
    head = ["homes of", "must reach", "asked", "found", ""]
    return pages.table(head, [[*line[:-1], HOLDS[line[-1]]] for line in lines])


def control(own):
    """Yields the goals of the methods on held-out days."""
    pfdrl, local, frl = (own.get(name) for name in ("PFDRL", "Local", "FRL"))
    for what, name, sign, limit in (
        ("standby energy saved", "saved", ">=", 95.0),
        ("in-use minutes switched off", "switched_off", "<=", 1.0),
        ("minutes with the best action", "optimal", ">=", 99.0),
    ):
        told, holds = "", None
        if pfdrl:
            values = [100 * row[name] for row in pfdrl]
            told = f"{spread(values)} %"
            holds = LIMITS[sign](statistics.fmean(values), limit)
        yield f"PFDRL: {what}", f"{sign} {limit:g} %", told, holds
    for careful, measure in MEASURES:
        told, holds = "", None
        found = [tables.days(each, careful) if each else None for each in (pfdrl, frl)]
        if all(found):
            told = f"{_told(found[0])}; FRL {_told(found[1])}"
            holds = _no_later(*found)
        yield f"PFDRL: days until it converges, {measure}", "<= FRL", told, holds
    told, holds = "", None
    if pfdrl and local:
        values, others = ([100 * r["saved"] for r in each] for each in (pfdrl, local))
        least = statistics.fmean(others) - max(map(deviation, (values, others)))
        told = f"{spread(values)} %; Local {spread(others)} %"
        holds = statistics.fmean(values) >= least
    yield "PFDRL: saved, less the seeds' deviation", ">= Local", told, holds


def forecasting(own):
    """Yields the goal of LSTM against other forecasters and persistence."""
    told, holds = "", None
    if {"LSTM", *FORECASTERS} <= set(own):
        mase = {name: [row["mase"] for row in rows] for name, rows in own.items()}
        others = [f"{name} {spread(mase[name], 3)}" for name in FORECASTERS]
        told = "; ".join([spread(mase["LSTM"], 3), *others])
        bound = min(1.0, *(statistics.fmean(mase[name]) for name in FORECASTERS))
        holds = statistics.fmean(mase["LSTM"]) < bound
    yield "LSTM: MASE", "< LR, SVM, BP, 1", told, holds


def joining(own):
    """Yields the goal that every new home learns within a week."""
    for careful, measure in MEASURES:
        told, holds = "", None
        found = tables.newcomers(own.get("PFDRL", []), "joined", careful)
        if found:
            slowest = f", slowest {max(found)}" if all(found) else ""
            saves = 100 * statistics.fmean(tables.final(own["PFDRL"]))
            told = f"{_told(found)}{slowest}; saves {saves:.1f} % in the end"
            holds = all(found) and max(found) <= MOST_DAYS
        what = f"PFDRL: days of a new home, {measure}"
        yield what, f"<= {MOST_DAYS}, each", told, holds


def speed(rows):
    """Yields the figures with a required speed, from one measurement."""
    for row in rows:
        if row["asked"]:
            yield "speed", row["name"], row["asked"], *held(row)
    for begin, lacking in LACKING.items():
        if not any(row["asked"].startswith(begin) for row in rows):
            yield "speed", *lacking, "", None


def _told(days):
    never = days.count(0)
    return f"never in {never} of {len(days)}" if never else spread(days, 1)


def _no_later(days, others):
    if not all(days):
        return False
    return not all(others) or statistics.fmean(days) <= statistics.fmean(others)
