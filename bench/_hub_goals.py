"""What issue 8 asks of PrivateHub: asked, found, and whether it holds."""

import statistics

import _hub_jobs as work
import _hub_tables as tables
import _markdown
from _hub_speed import ON_GPU
from _pfdrl_goals import HOLDS, LIMITS, spread

SEEDS = 5
NOT_RUN = HOLDS[None]
BELOW_RAW, ABOVE_CHANCE, CHANCE = 2.0, 10.0, 50.0  # Points.
OVER_RAW, UNDER_RAW = 1.1, 0.9  # Of an error of forecasts.
READINGS = {
    "of_made": "of rewritten windows, by who learned from raw ones",
    "of_real": "of what really came, from rewritten windows",
    "taught": "of raw windows, by who learned from rewritten ones",
}
FEW, ALL, WITHIN = "20 steps", "100 steps", 1.0
MOTION = (
    ("activity", "public_accuracy", ">=", 96.3),
    ("honest re-identification", "", "<=", 57.0),
)
SPEED = {
    "share of time outside the network, from nothing": "<= 5",
    "share of time outside the network, rewriting": "<= 5",
    "over diffusers' UNet1DModel": ">= 2",
    "MotionSense's test windows rewritten": "<= 10",
}


def table(rows) -> str:
    """A line for each requirement, place and choice; means over seeds, ± deviation."""
    of = lambda question: [row for row in rows if row["question"] == question]
    lines = []
    for question, goals in (
        ("methods", concealing),
        ("forecasts", forecasting),
        ("steps", steps),
    ):
        for where, own in cases(of(question)):
            lines += [[where, *line] for line in goals(own)]
    lines += motionsense(of("motionsense")) + speed(of("speed"))
    head = ["where", "must reach", "asked", "found", ""]
    return _markdown.table(head, lines)


def verdict(holds: bool, count: int) -> str:
    """Whether it holds, in words; of fewer seeds than are asked for, so far.

    Example:
      >>> verdict(True, 2)
      'holds so far'
    """
    return "holds so far" if holds and count < SEEDS else HOLDS[holds]


def cases(rows):
    """``(place and choice, {name: its seeds})``; one without rows if there are none."""
    found = {}
    for own in tables.grouped(rows):
        first = own[0]
        at = f"{first['place']}: {tables.secret(first)}"
        found.setdefault(at, {})[first["name"]] = own
    return list(found.items()) or [("–", {})]


def concealing(own):
    """RQ1: shown, hidden, and better than each GAN on both; each way to rewrite."""
    named = [work.OURS, *(name for name in work.WAYS if name in own)]
    return [line for name in named for line in concealing_as(name, own)]


def concealing_as(name, own):
    """RQ1 of one way to rewrite."""
    shown = lambda rows: [100 * row["shown"] for row in rows]
    worst = lambda rows: [100 * row["worst"] for row in rows]
    line = [f"{name}: classes to show", f">= raw - {BELOW_RAW:g} points", "", NOT_RUN]
    ours, raw = paired(own, name, work.RAW)
    if ours:
        least = statistics.fmean(shown(raw)) - BELOW_RAW
        line[2] = f"{spread(shown(ours))} %; raw {spread(shown(raw))} %"
        line[2] += f"; {seeds(ours)}"
        line[3] = verdict(statistics.fmean(shown(ours)) >= least, len(ours))
    lines = [line]
    most = CHANCE + ABOVE_CHANCE
    line = [f"{name}: class to hide, worst balanced", f"<= {most:g} %", "", NOT_RUN]
    if ours := own.get(name):
        line[2] = f"{spread(worst(ours))} %; {seeds(ours)}"
        line[3] = verdict(statistics.fmean(worst(ours)) <= most, len(ours))
    lines.append(line)
    for gan in work.GANS:
        line = [f"{name} beside {gan}", "shows more, hides more", "", NOT_RUN]
        ours, theirs = paired(own, name, gan)
        if ours:
            line[2] = (
                f"shown {spread(shown(ours))} to {spread(shown(theirs))} %; hidden, "
                f"worst balanced {spread(worst(ours))} to {spread(worst(theirs))} %; "
                f"{seeds(ours)}"
            )
            means = [
                statistics.fmean(f(r)) for f in (shown, worst) for r in (ours, theirs)
            ]
            both = means[0] > means[1] and means[2] < means[3]
            line[3] = verdict(both, len(ours))
        lines.append(line)
    return lines


def paired(own, name, other) -> tuple[list, list]:
    """Rows of two, of seeds that both have: a seed has a judge and networks of its own.

    Either both are empty or none is.
    """
    both = own.get(name, []), own.get(other, [])
    shared = set.intersection(*({row["seed"] for row in rows} for rows in both))
    mine, theirs = ([row for row in rows if row["seed"] in shared] for rows in both)
    return mine, theirs


def forecasting(own):
    """RQ3: CO2 and temperature, each way to read the requirement, and to rewrite."""
    named = [work.OURS, *(name for name in work.OF_FORECASTS if name in own)]
    return [line for name in named for line in forecasting_as(name, own.get(name))]


def forecasting_as(name, ours):
    """RQ3 of one way to rewrite."""
    lines = []
    for what in ours[0]["errors"] if ours else ("CO2", "temperature"):
        for kind, reading in READINGS.items():
            # What is flat is easily foretold: too small an error is no good either.
            least = UNDER_RAW if kind == "of_made" else 0.0
            asked = f"{least:g} to" if least else "<="
            asked = f"{asked} {OVER_RAW:g} x raw"
            line = [f"{name}: {what}, error {reading}", asked, "", NOT_RUN]
            if ours:
                each = [row["errors"][what] for row in ours]
                ratios = [tables.over_raw([one], kind) for one in each]
                line[2] = f"{spread(ratios)} x; {seeds(ours)}"
                within = least <= statistics.fmean(ratios) <= OVER_RAW
                line[3] = verdict(within, len(ours))
            lines.append(line)
    return lines


def steps(own):
    """20 steps of DDIM, and of another solver, beside 100 of DDIM."""
    named = [FEW, *(name for name in (f"{FEW}{work.BY_DPM}",) if name in own)]
    return [line for name in named for line in steps_as(name, own)]


def steps_as(name_few, own):
    """The same of one solver."""
    (few, many), lines = paired(own, name_few, ALL), []
    for what, name in (("rewritten", "shown"), ("from nothing", "asked_shown")):
        asked = f">= 100 steps - {WITHIN:g} point"
        line = [f"PrivateHub: {name_few}, classes to show, {what}", asked, "", NOT_RUN]
        if few:
            values, others = ([100 * r[name] for r in rows] for rows in (few, many))
            line[2] = f"{spread(values)} %; 100 steps {spread(others)} %; {seeds(few)}"
            near = statistics.fmean(values) >= statistics.fmean(others) - WITHIN
            line[3] = verdict(near, len(few))
        lines.append(line)
    asked = f"<= 100 steps + {WITHIN:g} point"
    hidden = f"PrivateHub: {name_few}, class to hide, worst balanced"
    line = [hidden, asked, "", NOT_RUN]
    if few:
        values, others = ([100 * r["worst"] for r in rows] for rows in (few, many))
        line[2] = f"{spread(values)} %; 100 steps {spread(others)} %; {seeds(few)}"
        near = statistics.fmean(values) <= statistics.fmean(others) + WITHIN
        line[3] = verdict(near, len(few))
    return [*lines, line]


def motionsense(rows):
    """As a rewriter; what ``bench/anonymizers.py`` found."""
    ours = [row for row in rows if row["system"] == work.OURS]
    return [line for row in ours or [None] for line in motionsense_as(row)]


def motionsense_as(row):
    """As a rewriter in one way; None where it was not tried."""
    where = ", ".join(["MotionSense", *([row["form"]] if row and row["form"] else [])])
    lines, told = [], lambda value: f"{value:.2f} %; {seeds(row['seeds'])}"
    for what, name, sign, limit in MOTION:
        line = [where, what, f"{sign} {limit:g} %", "", NOT_RUN]
        if row:
            value = row[name][0] if name else row["retrained_balanced"][row["worst"]][0]
            holds = LIMITS[sign](float(value), limit)
            line[3:] = told(value), verdict(holds, len(row["seeds"]))
        lines.append(line)
    line = [where, "gender, balanced", "50 ± 2 %", "", NOT_RUN]
    if row:
        value = row["private_balanced_accuracy"][0]
        line[3:] = told(value), verdict(abs(value - CHANCE) <= 2, len(row["seeds"]))
    return [lines[0], line, lines[1]]


def speed(rows):
    """Figures of which something is asked; what lacks is not run."""
    lines = []
    for name, asked in SPEED.items():
        own = [row for row in rows if row["name"].removesuffix(ON_GPU) == name]
        if not own:
            lines.append(["speed", name, asked, "", NOT_RUN])
        for row in own:
            sign, limit = asked.split()
            found = f"{row['value']:.4g} {row['unit']} ({row['what']})"
            holds = LIMITS[sign](float(row["value"]), float(limit))
            line = ["speed", row["name"], f"{asked} {row['unit']}", found]
            lines.append([*line, verdict(holds, SEEDS)])
    return lines


def seeds(found):
    """How many rows or seeds there are, of those that are asked for."""
    return f"{len(found)} of {SEEDS} seeds"
