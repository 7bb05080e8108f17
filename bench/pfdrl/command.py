"""PFDRL against other methods: python bench pfdrl [--smoke] [options].

Answers the questions of chapter 2 on homes composed of Tracebase's devices and on the
five homes of REFIT, UK-DALE and IDEAL. It measures the standby energy saved and the use
disturbed on held-out days (figures 2.7 to 2.10). It also measures the accuracy of load
forecasts (2.5 and 2.6 a), the effect of α, β and γ (2.4), and the days until a new home
saves as much (2.11 b). Money (2.8) is given for one month, computed from held-out days,
and not by month. Figure 2.6 b, over the number of homes, is omitted. A table compares
results with goals. Additional questions vary the communication graph, lost messages,
and the noise on broadcasts with its ε. ``--question speed`` times hundreds of homes,
and our deep Q-learning against others on the same number of cores.

``--json F`` writes the rows to F and keeps earlier rows that are not recomputed. It
also writes tables as F with .md and .html, and figures as F with the question and .png.
Results are stored in ``--folder`` (runs/pfdrl), so that the same command resumes where
it stopped; no job starts after ``--hours``. ``--case`` is one of tracebase, households,
simulated. ``--question`` is one of methods, forecasts, joining, alpha, gamma, beta,
graphs, messages, privacy, speed. ``--seeds`` is the number of seeds, 1 by default.
``--rivals DIR`` is the folder where Stable-Baselines3 is installed; ``python bench
harness.rivals DIR`` prints instructions.
"""

import functools
import time

import numpy as np

from harness import results, timing
from harness.results import file_name
from jaxanon import energy
from jaxanon.energy.guarantee import DELTA
from jaxanon.energy.neighborhood import count_neighbors
from pfdrl import homes as bench_homes
from pfdrl import jobs as work
from pfdrl import newcomers, page, runs, speed

QUESTIONS = (*work.QUESTIONS, "speed")


def main():
    """Runs the missing jobs, then writes all results."""
    args = timing.arguments(
        __doc__,
        folder="pfdrl",
        hours=True,
        case=timing.one_of(bench_homes.SIZES, "the first two by default"),
        question=timing.one_of(QUESTIONS, "all but speed by default"),
        seeds=timing.number(1, "how many seeds"),
        rivals="where Stable-Baselines3 is installed",
    )
    failed = []
    if args.question == "speed":
        found = speed.rows(args.smoke, args.rivals)
        results.keep(args.folder / "speed.json", found)
    else:
        failed = results.go_through(jobs(args), args.end)
    rows = results.with_earlier(args, found_in(args.folder))
    if args.json is not None:
        page.write(args.json, rows)
    print(page.markdown(rows))
    results.stop_if(failed)


def jobs(args):
    """Yields ``(name, function)`` for each job."""
    asked = [args.question] if args.question else work.QUESTIONS
    for seed in range(args.seeds):
        places = bench_homes.every(args.smoke, args.case, seed)
        for question in asked:
            for place in places:
                for job in work.jobs(question, args.smoke):
                    given = args.folder, place, job, seed, args.smoke
                    do = functools.partial(answer, *given)
                    yield (place.name, question, job.name), do


def answer(folder, place, job, seed, smoke):
    """Computes and stores the result of a job, unless it exists."""
    path = folder / job.question / file_name(place.name, job.name, seed)
    if path.is_file():
        return
    start = time.monotonic()
    neighborhood = bench_homes.neighborhood(
        place, bench_homes.graph(job.graph, place.homes, seed)
    )
    hearing = count_neighbors(neighborhood)
    config, hyper = work.config(job, smoke), work.hyper(job, smoke)
    if job.question == "joining":
        found = newcomers.joining(place, config, hyper, seed)
    else:
        best = runs.chosen(place, config, hyper, seed, job.rates) if job.rates else {}
        hyper |= (
            {"forecaster_learning_rate": best["forecaster_learning_rate"]}
            if best
            else {}
        )
        marks = runs.marks(place.train_days)
        found = best | runs.follow(place, neighborhood, config, hyper, seed, marks)
    row = {
        "question": job.question,
        "place": place.name,
        "name": job.name,
        "x": job.x,
        "seed": seed,
        "homes": place.homes,
        "devices": int(np.asarray(neighborhood.present).sum()),
        "heard": hearing["mean"],
        "hear_nobody": hearing["nobody"],
        "train_days": place.train_days,
        "test_days": place.test_days,
        "seconds": time.monotonic() - start,
        **found,
        **(budgets(config, place) if job.question == "privacy" else {}),
        **timing.about(),
    }
    results.keep(path, row)
    print(f"{place.name}, {job.question}: {job.name}, {told(row)}", flush=True)


def budgets(config, place):
    """Returns ε per device and per home with all devices; None is infinite."""
    slots, most = runs.SLOTS * place.train_days, place.power.shape[2]
    each = {"epsilon_device": 1, "epsilon_home": most}
    found = {
        name: energy.broadcast_epsilon(config, slots, DELTA, devices=devices)
        for name, devices in each.items()
    }
    return {name: e if np.isfinite(e) else None for name, e in found.items()}


def found_in(folder):
    """Returns all stored results."""
    rows = results.answers(folder, work.QUESTIONS)
    return rows + results.kept(folder / "speed.json")


def told(row):
    """Returns a one-line summary of a row."""
    if "saved" not in row:
        return ""
    return (
        f"{100 * row['saved']:.1f} % saved, {100 * row['switched_off']:.2f} % off in "
        f"use, {100 * row['optimal']:.2f} % optimal, MASE {row['mase']:.3f}, "
        f"{row['seconds']:.0f} s"
    )
