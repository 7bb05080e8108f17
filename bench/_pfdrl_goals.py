"""What issue 7 asks of PFDRL: asked, found, and whether it holds."""

import statistics

import _markdown
import _pfdrl_tables as tables

HOLDS = {True: "holds", False: "does not hold", None: "not run"}
FORECASTERS = ("LR", "SVM", "BP")
LIMITS = {"<=": float.__le__, ">=": float.__ge__}
MOST_DAYS = 7


def table(rows) -> str:
    """A line for each requirement and place; means and deviations over seeds."""
    of = lambda question: [row for row in rows if row["question"] == question]
    asked = {"methods": control, "forecasts": forecasting, "joining": joining}
    lines = []
    for question, goals in asked.items():
        places = sorted({row["place"] for row in of(question)}) or ["–"]
        # What is asked is asked of Tracebase's homes; others stand below.
        for place in sorted(places, key=lambda place: place != "tracebase"):
            own = {}
            for row in of(question):
                if row["place"] == place:
                    own.setdefault(row["name"], []).append(row)
            lines += [[place, *line] for line in goals(own)]
    lines += speed(of("speed"))
    head = ["homes of", "must reach", "asked", "found", ""]
    return _markdown.table(head, [[*line[:-1], HOLDS[line[-1]]] for line in lines])


def control(own):
    """Of the methods on held-out days."""
    pfdrl, local, frl = (own.get(name) for name in ("PFDRL", "Local", "FRL"))
    lines = []
    for what, name, sign, limit in (
        ("standby energy saved", "saved", ">=", 95.0),
        ("in-use minutes switched off", "switched_off", "<=", 1.0),
        ("minutes with the best action", "optimal", ">=", 99.0),
    ):
        line = [f"PFDRL: {what}", f"{sign} {limit:g} %", "", None]
        if pfdrl:
            values = [100 * row[name] for row in pfdrl]
            holds = LIMITS[sign](statistics.fmean(values), limit)
            line[2:] = f"{spread(values)} %", holds
        lines.append(line)
    for careful, measure in ((False, "saving alone"), (True, "with care")):
        line = [f"PFDRL: days until it converges, {measure}", "<= FRL", "", None]
        found = [tables.days(each, careful) if each else None for each in (pfdrl, frl)]
        if all(found):
            line[2] = f"{_told(found[0])}; FRL {_told(found[1])}"
            line[3] = _no_later(*found)
        lines.append(line)
    line = ["PFDRL: saved, less the seeds' deviation", ">= Local", "", None]
    if pfdrl and local:
        values, others = ([100 * r["saved"] for r in each] for each in (pfdrl, local))
        least = statistics.fmean(others) - max(map(tables.deviation, (values, others)))
        line[2] = f"{spread(values)} %; Local {spread(others)} %"
        line[3] = statistics.fmean(values) >= least
    return [*lines, line]


def forecasting(own):
    """LSTM before the others, and before holding the last minute."""
    line = ["LSTM: MASE", "< LR, SVM, BP, 1", "", None]
    if {"LSTM", *FORECASTERS} <= set(own):
        of = lambda name: [row["mase"] for row in own[name]]
        others = [f"{name} {spread(of(name), 3)}" for name in FORECASTERS]
        line[2] = "; ".join([spread(of("LSTM"), 3), *others])
        bound = min(1.0, *(statistics.fmean(of(name)) for name in FORECASTERS))
        line[3] = statistics.fmean(of("LSTM")) < bound
    return [line]


def joining(own):
    """Every new home within a week."""
    lines = []
    for careful, measure in ((False, "saving alone"), (True, "with care")):
        asked = f"<= {MOST_DAYS}, each"
        line = [f"PFDRL: days of a new home, {measure}", asked, "", None]
        found = tables.newcomers(own.get("PFDRL", []), "joined", careful)
        if found:
            final = [x for row in own["PFDRL"] for x in row["joined"]["final"]]
            slowest = f", slowest {max(found)}" if all(found) else ""
            share = f"; saves {100 * statistics.fmean(final):.1f} % in the end"
            line[2] = _told(found) + slowest + share
            line[3] = all(found) and max(found) <= MOST_DAYS
        lines.append(line)
    return lines


def speed(rows):
    """Figures of which something is asked, measured once."""
    lines = []
    for row in rows:
        if row["asked"]:
            sign, limit = row["asked"].split()
            found = f"{row['value']:.4g} {row['unit']} ({row['what']})"
            holds = LIMITS[sign](float(row["value"]), float(limit))
            lines.append(["speed", row["name"], row["asked"], found, holds])
    lacking = {
        "a street's 30 days": ("<= 600 s", "<="),
        "over Stable-Baselines3": (">= 50 x", ">= 50"),
    }
    for name, (told, begin) in lacking.items():
        if not any(row["asked"].startswith(begin) for row in rows):
            lines.append(["speed", name, told, "", None])
    return lines


def spread(values, digits=2):
    """Mean and standard deviation over seeds."""
    mean, deviation = statistics.fmean(values), tables.deviation(values)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def _told(days):
    never = days.count(0)
    if never:
        return f"never in {never} of {len(days)}"
    return spread(days, 1)


def _no_later(days, others):
    if not all(days):
        return False
    return not all(others) or statistics.fmean(days) <= statistics.fmean(others)
