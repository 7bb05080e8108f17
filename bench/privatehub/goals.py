"""Requirements for PrivateHub: bound, result, and whether it holds."""

import statistics

from harness import pages
from harness.comparison import HOLDS, LIMITS, held, spread
from privatehub import jobs as work
from privatehub import tables
from privatehub.speed import ON_GPU

SEEDS = 5
NOT_RUN = HOLDS[None]
BELOW_RAW, ABOVE_CHANCE, CHANCE = 2.0, 10.0, 50.0  # Percentage points.
OVER_RAW, UNDER_RAW = 1.1, 0.9  # Ratios of forecast errors.
READINGS = {
    "of_made": "on rewritten windows, trained on raw ones",
    "of_real": "on the real samples, predicted from rewritten windows",
    "taught": "on raw windows, trained on rewritten ones",
}
FEW, ALL, WITHIN = "20 steps", "100 steps", 1.0
MOTION = (
    ("activity", "public_accuracy", ">=", 96.3),
    ("gender, balanced", "private_balanced_accuracy", "±", 2.0),
    ("honest re-identification", "", "<=", 57.0),
)
SPEED = {
    "share of time outside the network, from nothing": "<= 5",
    "share of time outside the network, rewriting": "<= 5",
    "over diffusers' UNet1DModel": ">= 2",
    "MotionSense's test windows rewritten": "<= 10",
}


def table(rows) -> str:
    """Returns a line per requirement, place and choice; means ± std over seeds."""
    asked = {"methods": concealing, "forecasts": forecasting, "steps": steps}
    lines = []
    for question, goals in asked.items():
        for where, own in cases(pages.asked(rows, question)):
            lines += [[where, *line] for line in goals(own)]
    lines += motionsense(pages.asked(rows, "motionsense"))
    lines += speed(pages.asked(rows, "speed"))
    return pages.table(["where", "must reach", "asked", "found", ""], lines)


def verdict(holds: bool, count: int) -> str:
    """Returns the verdict as text, with "so far" if seeds are missing.

    Example:
      >>> verdict(True, 2)
      'holds so far'
    """
    return "holds so far" if holds and count < SEEDS else HOLDS[holds]


def cases(rows):
    """Yields ``(place and choice, {name: its seeds})``; one empty case without rows."""
    found = {}
    for own in tables.grouped(rows):
        first = own[0]
        at = f"{first['place']}: {tables.secret(first)}"
        found.setdefault(at, {})[first["name"]] = own
    return list(found.items()) or [("–", {})]


def line(what, asked, ours=(), told="", holds=None) -> tuple[str, ...]:
    """Returns a line: the requirement, our result and the verdict."""
    if not ours:
        return what, asked, "", NOT_RUN
    return what, asked, f"{told}; {seeds(ours)}", verdict(holds, len(ours))


def percents(rows, name) -> list[float]:
    """Returns a fraction of each row in percent."""
    return [100 * row[name] for row in rows]


def concealing(own):
    """RQ1: shown and hidden accuracy of each way to rewrite, compared with each GAN."""
    for name in (work.OURS, *(name for name in work.WAYS if name in own)):
        yield from concealing_as(name, own)


def concealing_as(name, own):
    """RQ1 for one way to rewrite."""
    what, asked = f"{name}: classes to show", f">= raw - {BELOW_RAW:g} points"
    ours, raw = (percents(rows, "shown") for rows in paired(own, name, work.RAW))
    told = ours and f"{spread(ours)} %; raw {spread(raw)} %"
    least = ours and statistics.fmean(raw) - BELOW_RAW
    yield line(what, asked, ours, told, ours and statistics.fmean(ours) >= least)
    most = CHANCE + ABOVE_CHANCE
    what, asked = f"{name}: class to hide, worst balanced", f"<= {most:g} %"
    ours = percents(own.get(name, []), "worst")
    told = ours and f"{spread(ours)} %"
    yield line(what, asked, ours, told, ours and statistics.fmean(ours) <= most)
    for gan in work.GANS:
        both = paired(own, name, gan)
        told, holds = "", None
        if both[0]:
            shown, theirs = (percents(rows, "shown") for rows in both)
            hidden, leaked = (percents(rows, "worst") for rows in both)
            told = (
                f"shown {spread(shown)} to {spread(theirs)} %; hidden, worst balanced "
                f"{spread(hidden)} to {spread(leaked)} %"
            )
            shows = statistics.fmean(shown) > statistics.fmean(theirs)
            holds = shows and statistics.fmean(hidden) < statistics.fmean(leaked)
        what, asked = f"{name} over {gan}", "shows more, hides more"
        yield line(what, asked, both[0], told, holds)


def paired(own, name, other) -> tuple[list, list]:
    """Returns rows of two methods for the seeds that both have.

    Seeds differ in classifier and networks. Either both lists are empty or neither is.
    """
    both = own.get(name, []), own.get(other, [])
    shared = set.intersection(*({row["seed"] for row in rows} for rows in both))
    mine, theirs = ([row for row in rows if row["seed"] in shared] for rows in both)
    return mine, theirs


def forecasting(own):
    """RQ3: CO2 and temperature, for each reading of the requirement and each way."""
    for name in (work.OURS, *(name for name in work.OF_FORECASTS if name in own)):
        yield from forecasting_as(name, own.get(name, []))


def forecasting_as(name, ours):
    """RQ3 for one way to rewrite."""
    for what in ours[0]["errors"] if ours else ("CO2", "temperature"):
        for kind, reading in READINGS.items():
            # Flat windows are easy to forecast: too small an error is also a fault.
            least = UNDER_RAW if kind == "of_made" else 0.0
            asked = f"{least:g} to" if least else "<="
            told, within = "", None
            if ours:
                each = [row["errors"][what] for row in ours]
                ratios = [tables.over_raw([one], kind) for one in each]
                told = f"{spread(ratios)} x"
                within = least <= statistics.fmean(ratios) <= OVER_RAW
            called = f"{name}: {what}, error {reading}"
            yield line(called, f"{asked} {OVER_RAW:g} x raw", ours, told, within)


def steps(own):
    """Compares 20 steps of DDIM and of another sampler with 100 of DDIM."""
    for name in (FEW, *(name for name in (f"{FEW}{work.BY_DPM}",) if name in own)):
        yield from steps_as(name, own)


def steps_as(few, own):
    """Compares 20 steps of one sampler."""
    both = paired(own, few, ALL)
    for what, name, sign in (
        ("classes to show, rewritten", "shown", -1),
        ("classes to show, from nothing", "asked_shown", -1),
        ("class to hide, worst balanced", "worst", 1),
    ):
        told, near = "", None
        if both[0]:
            values, others = (percents(rows, name) for rows in both)
            told = f"{spread(values)} %; 100 steps {spread(others)} %"
            worse = statistics.fmean(values) - statistics.fmean(others)
            near = sign * worse <= WITHIN
        bound = "<= 100 steps +" if sign > 0 else ">= 100 steps -"
        yield line(
            f"PrivateHub: {few}, {what}",
            f"{bound} {WITHIN:g} point",
            both[0],
            told,
            near,
        )


def motionsense(rows):
    """Requirements on MotionSense from the results of ``anonymizers``."""
    for row in [row for row in rows if row["system"] == work.OURS] or [None]:
        yield from motionsense_as(row)


def motionsense_as(row):
    """Requirements for one way to rewrite MotionSense; None if it was not run."""
    where = ", ".join(filter(None, ("MotionSense", row["form"] if row else "")))
    own = row["seeds"] if row else ()
    for what, name, sign, limit in MOTION:
        value, holds = None, None
        if row:
            of = row[name] if name else row["retrained_balanced"][row["worst"]]
            value = float(of[0])
            near = abs(value - CHANCE) <= limit
            holds = near if sign == "±" else LIMITS[sign](value, limit)
        asked = f"50 ± {limit:g} %" if sign == "±" else f"{sign} {limit:g} %"
        yield where, *line(what, asked, own, row and f"{value:.2f} %", holds)


def speed(rows):
    """Speed rows with a requirement; missing rows count as not run."""
    for name, asked in SPEED.items():
        own = [row for row in rows if row["name"].removesuffix(ON_GPU) == name]
        if not own:
            yield "speed", name, asked, "", NOT_RUN
        for row in own:
            found, holds = held(row, asked)
            told = row["name"], f"{asked} {row['unit']}", found
            yield "speed", *told, verdict(holds, SEEDS)


def seeds(found):
    """Returns the number of seeds found and required."""
    return f"{len(found)} of {SEEDS} seeds"
