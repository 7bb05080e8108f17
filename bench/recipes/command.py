"""Compares the utility and privacy of Blinder's recipes with their stated limits.

Example: ``python bench recipes --seeds 1 --recipe recommended --smoke``.

Trains a recipe without further settings: five seeds on MotionSense (``mag4``, hiding
gender), five on the smartwatch recordings (hiding the side), and one seed each on
unseen people of MotionSense, on UCI HAPT and on WISDM. Raw-data classifiers measure the
public accuracy and the private balanced accuracy. Three attackers (MLP, forest,
boosting) are retrained on anonymized windows; the row has the strongest one on
validation windows, for single windows and for 30 windows of one person. ``--json F``
writes each row to F as soon as it is measured, and skips rows that F already has.
"""

import json
import time

import numpy as np

import jaxanon as ja
from harness import data as shared
from harness import timing
from harness.comparison import LIMITS, spread
from harness.pages import columns_table
from jaxanon.evaluation import anonymizers
from recipes import measure

FIGURES = {
    "raw": "public, raw windows",
    "kept": "public",
    "raw_classifier": "private by raw-data classifier",
    "retrained": "retrained attacker",
    "retrained_auc": "its AUC",
    "retrained_stream": "over 30 windows",
    "retrained_stream_auc": "AUC over 30",
    "retrained_worst_of_three": "worst of three",
    "retrained_stream_worst_of_three": "worst over 30",
    "cpu_minutes": "CPU minutes",
}


def main():
    """Measures missing rows; prints the table and the verdicts."""
    args = timing.arguments(
        __doc__,
        cases=timing.one_of(measure.CASES, apart=";"),
        seeds=timing.number(5, "maximum number of seeds per case"),
        recipe="recipe of Blinder, recommended by default",
        hours=True,
    )
    recipe = args.recipe or "recommended"
    rows = []
    if args.json is not None and args.json.is_file() and not args.smoke:
        rows = json.loads(args.json.read_text())
    if args.smoke:
        rows = [smoke(recipe)]
    for name in () if args.smoke else args.cases:
        run_case(name, measure.CASES[name], args, recipe, rows)
    print(table(rows))
    for line in verdicts(rows):
        print(line)
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


def smoke(recipe):
    """Returns a row of a short training that only tests the code."""
    data = shared.thin(ja.load("smartwatch", preset="acc10", private=["side"]), 10)
    raw_classifiers = anonymizers.train_raw_classifiers(data)
    found = measure.measure(
        data, raw_classifiers, 0, recipe, epochs=1, settings=shared.SMOKE
    )
    return {"case": "smartwatch", "recipe": recipe} | found


def run_case(name, case, args, recipe, rows):
    """Adds a row for each missing seed; skips unavailable data."""
    done = {
        row["seed"] for row in rows if (row["case"], row["recipe"]) == (name, recipe)
    }
    seeds = [seed for seed in range(min(case.seeds, args.seeds)) if seed not in done]
    if not seeds or time.monotonic() > args.end:
        return
    try:
        data = ja.load(**case.load)
    except OSError as error:
        print(f"Skipping {name}, data not available: {error}")
        return
    raw_classifiers = anonymizers.train_raw_classifiers(data)
    for seed in seeds:
        if time.monotonic() > args.end:
            return
        found = measure.measure(data, raw_classifiers, seed, recipe)
        rows.append({"case": name, "recipe": recipe, **found})
        told = {name: round(found[name], 2) for name in FIGURES if found.get(name)}
        print(name, seed, told, flush=True)
        if args.json is not None:
            args.json.write_text(json.dumps(rows, indent=1) + "\n")


def grouped(rows):
    """Groups rows by case and recipe, in the order of the cases."""
    found = {}
    for row in rows:
        found.setdefault((row["case"], row["recipe"]), []).append(row)
    order = list(measure.CASES)
    return sorted(found.items(), key=lambda item: order.index(item[0][0]))


def figure(own, name, digits=1) -> str:
    """Returns mean and standard deviation over seeds, or a dash for missing values."""
    values = [row[name] for row in own if row.get(name) is not None]
    return spread(values, digits) if values else "–"


def table(rows) -> str:
    """Returns a line per case and recipe."""
    columns = {
        "data": lambda item: item[0][0],
        "recipe": lambda item: item[0][1],
        "seeds": lambda item: str(len(item[1])),
    }
    for name, title in FIGURES.items():
        columns[title] = lambda item, name=name: figure(item[1], name)
    return columns_table(grouped(rows), columns)


def verdicts(rows):
    """Yields a line per limit, with the mean over seeds and the worst seed."""
    for (name, recipe), own in grouped(rows):
        if recipe != "recommended":
            continue
        for measured, (sign, limit) in measure.CASES[name].limits.items():
            values = [row[measured] for row in own if row.get(measured) is not None]
            if not values:
                continue
            holds = LIMITS[sign](float(np.mean(values)), limit)
            worst = (min if sign == ">=" else max)(values)
            yield (
                f"{name}: {measured} {np.mean(values):.2f} (worst seed {worst:.2f}) "
                f"should be {sign} {limit:g}: {'holds' if holds else 'does not hold'}"
            )
        finite = all(np.isfinite(row["loss"]) for row in own)
        yield f"{name}: {'no seed' if finite else 'a seed'} of {len(own)} diverged"


if __name__ == "__main__":
    main()
