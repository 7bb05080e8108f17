"""PFDRL beside what it is compared with: python bench/pfdrl.py [--smoke] [options].

Answers chapter 2's questions on homes composed of Tracebase's devices and on the five
homes of REFIT, UK-DALE and IDEAL: how much standby energy each method saves on held-out
days and whom it disturbs (figures 2.7 to 2.10), how well loads are forecast (2.5 and
2.6 a), over α, β and γ (2.4), how soon a new home saves as much (2.11 b). Money (2.8)
is that of one month, reckoned from held-out days, and not drawn by months; 2.6 b, over
the number of homes, is not drawn. A table says what must be reached and what is. Asked
besides: other graphs than everybody's, messages that get lost, noise on broadcasts and
its ε. ``--question speed`` times homes by the hundred, and our deep Q-learning beside
others, core for core.

``--json F`` writes the rows to F, beside those there that were not found anew, tables
as F with .md and .html, figures as F with the question and .png. What was found is kept
in ``--folder`` (runs/pfdrl), so that the same command goes on where it was stopped;
``--hours`` says when to begin nothing new. ``--case`` names one of tracebase,
households, simulated; ``--question`` one of methods, forecasts, joining, alpha, gamma,
beta, graphs, messages, privacy, speed; ``--seeds`` how many seeds, 1 by default.
``--rivals DIR`` is where Stable-Baselines3 is installed: ``python bench/_rivals.py
DIR`` prints how.
"""

import json
import pathlib
import time
import traceback

import _answers
import _pfdrl_jobs as work
import _pfdrl_joining as joining
import _pfdrl_page as page
import _pfdrl_rates as rates
import _pfdrl_runs as runs
import _pfdrl_speed as speed
import _pfdrl_streets as streets
import _timing
import numpy as np

from jaxanon import energy
from jaxanon.energy import neighbourhood
from jaxanon.energy.guarantee import DELTA

QUESTIONS = (*work.QUESTIONS, "speed")


def main():
    """Runs what is missing, then writes all that there is."""
    args = _timing.arguments(
        __doc__.splitlines()[0],
        folder="what was found so far, runs/pfdrl by default",
        case="tracebase, households or simulated; the first two by default",
        question=f"one of {QUESTIONS}; all but speed by default",
        seeds="seeds, 1 by default",
        hours="begin nothing new after so many hours",
        rivals="where Stable-Baselines3 is installed",
    )
    _timing.among("question", args.question, QUESTIONS)
    _timing.among("case", args.case, streets.SIZES)
    default = "runs/pfdrl-smoke" if args.smoke else "runs/pfdrl"
    folder = pathlib.Path(args.folder or default)
    end = _timing.end(args)
    asked = work.QUESTIONS if args.question is None else (args.question,)
    failed = []
    if asked == ("speed",):
        asked = ()
        _answers.keep(folder / "speed.json", speed.rows(args.smoke, args.rivals))
    for seed in range(int(args.seeds or 1)):
        places = streets.every(args.smoke, args.case, seed) if asked else []
        for question in asked:
            for place in places:
                for job in work.jobs(question, args.smoke):
                    if time.monotonic() > end:
                        break
                    try:
                        answer(folder, place, job, seed, args.smoke)
                    # One run must not cost the others their hours.
                    except Exception:
                        failed.append((place.name, question, job.name))
                        traceback.print_exc()
    rows = _answers.with_earlier(args, found_in(folder))
    if args.json is not None:
        page.write(args.json, rows)
    print(page.markdown(rows))
    if failed:
        raise SystemExit(f"failed, and left out: {failed}")


def answer(folder, place, job, seed, smoke):
    """Finds and keeps one answer, unless that was done."""
    what = f"{plain(place.name)}-{plain(job.name)}-{seed}.json"
    path = folder / job.question / what
    if path.is_file():
        return
    start = time.monotonic()
    street = streets.street(place, streets.graph(job.graph, place.homes, seed))
    hearing = neighbourhood.hearing(street)
    config, hyper = work.config(job, smoke), work.hyper(job, smoke)
    if job.question == "joining":
        found = joining.joining(place, config, hyper, seed)
    else:
        best = rates.chosen(place, config, hyper, seed, job.rates) if job.rates else {}
        hyper |= {"fit_rate": best["fit_rate"]} if best else {}
        marks = runs.marks(place.train_days)
        found = best | runs.follow(place, street, config, hyper, seed, marks)
    row = {
        "question": job.question,
        "place": place.name,
        "name": job.name,
        "x": job.x,
        "seed": seed,
        "homes": place.homes,
        "devices": int(np.asarray(street.present).sum()),
        "heard": hearing["mean"],
        "hear_nobody": hearing["nobody"],
        "train_days": place.train_days,
        "test_days": place.test_days,
        "seconds": time.monotonic() - start,
        **found,
        **(budgets(config, place) if job.question == "privacy" else {}),
        **_timing.about(),
    }
    _answers.keep(path, row)
    print(f"{place.name}, {job.question}: {job.name}, {told(row)}", flush=True)


def budgets(config, place):
    """ε of a device and of a home whose devices are all there; None is infinite."""
    slots, most = runs.SLOTS * place.train_days, place.power.shape[2]
    each = {"epsilon_device": 1, "epsilon_home": most}
    found = {
        name: energy.broadcast_epsilon(config, slots, DELTA, devices=devices)
        for name, devices in each.items()
    }
    return {name: e if np.isfinite(e) else None for name, e in found.items()}


def found_in(folder):
    """Every answer that there is."""
    places = [folder / question for question in work.QUESTIONS]
    paths = [path for place in places for path in sorted(place.glob("*.json"))]
    rows = [json.loads(path.read_text()) for path in paths]
    timed = folder / "speed.json"
    return rows + (json.loads(timed.read_text()) if timed.is_file() else [])


def told(row):
    """A row in a few words."""
    if "saved" not in row:
        return ""
    return (
        f"{100 * row['saved']:.1f} % saved, {100 * row['switched_off']:.2f} % off in "
        f"use, {100 * row['optimal']:.2f} % optimal, MASE {row['mase']:.3f}, "
        f"{row['seconds']:.0f} s"
    )


def plain(name):
    """A name as that of a file.

    Example:
      >>> plain("REFIT, UK-DALE")
      'REFIT_UK-DALE'
    """
    return name.replace(",", "").replace(" ", "_").replace("%", "percent")


if __name__ == "__main__":
    main()
