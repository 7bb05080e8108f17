"""Compares PrivateHub with other generators on rooms, an office and homes.

Example: ``python bench privatehub --case homes --question methods --smoke``.

Answers chapter 4's questions on three rooms (Room Climate Datasets), an office with CO2
(UCI Room Occupancy Estimation) and five homes (van Kasteren, MIT, Ordonez). RQ1 and RQ2
(table 4.2, figure 4.8): do rewritten streams preserve the classes to show and hide the
others, for several choices of classes to hide? RQ3 (figure 4.9): do forecasts of the
measured quantities still work? RQ4 (figure 4.10): how much accuracy do missing labels
cost? Further questions: the benefit of others' windows for a new home, the class and
realism of generated windows, and the number of sampling steps. A raw-data classifier
that was not used in fine-tuning measures accuracy. The first table compares results
with requirements. ``--question motionsense`` rewrites MotionSense and attacks it as
``anonymizers`` does. ``--question speed`` compares the sampler with its network alone
and with Hugging Face's diffusers.

``--json F`` merges the rows into F and writes tables (.md, .html) and figures (.png)
with the same name. ``--folder`` (runs/privatehub) saves runs and answers, so that the
same command resumes; ``--hours`` limits the time in which new jobs start. ``--case``
selects rooms, office, homes or a place ("room A", "home B"). ``--question`` selects one
of methods, switched, forecasts, missing, new_home, quality, steps, motionsense, speed.
``--choice first`` skips further choices of classes to hide. ``--seeds`` is the number
of seeds (default 1) and ``--first`` the first seed. ``--rivals DIR`` is the folder of
diffusers' environment; ``python bench harness.rivals DIR`` prints how to install it.
"""

import functools
import json
import time

from harness import results, timing
from harness.results import file_name
from privatehub import answers, page, places, speed
from privatehub import jobs as work
from privatehub import motion_sense as motion

ALONE = ("motionsense", "speed")
QUESTIONS = (*work.QUESTIONS, *ALONE)


def main():
    """Runs missing jobs, then writes all results."""
    args = timing.arguments(
        __doc__,
        folder="privatehub",
        hours=True,
        case="rooms, office, homes or the name of a place; default: all",
        question=timing.one_of(QUESTIONS, f"all but {' and '.join(ALONE)} by default"),
        choice=timing.one_of(["first"], "all choices of classes to hide by default"),
        seeds=timing.number(1, "number of seeds"),
        first=timing.number(0, "first seed"),
        rivals="folder of diffusers' environment",
    )
    folder, seeds = args.folder, range(args.first, args.first + args.seeds)
    failed = []
    if args.question == "speed":
        _merge(folder / "speed.json", speed.rows(args.smoke, args.rivals))
    elif args.question == "motionsense":
        found = motion.rows(folder, seeds, args.smoke, args.end)
        _merge(folder / "motionsense.json", found)
    else:
        failed = results.go_through(jobs(args, seeds), args.end)
    rows = results.with_earlier(args, found_in(folder))
    rows = page.slim(up_to_date(rows, args))
    if args.json is not None:
        page.write(args.json, rows)
    print(page.markdown(rows))
    results.stop_if(failed)


def jobs(args, seeds):
    """Yields ``(name, function)`` for each answer."""
    for seed in seeds:
        for question in [args.question] if args.question else work.QUESTIONS:
            for place in places.every(args.smoke, args.case):
                for job in work.jobs(question, place, args.smoke):
                    later = list(place.choices).index(job.choice) > 0
                    if args.choice == "first" and later:
                        continue
                    given = args.folder, place, job, seed, args.smoke
                    name = place.name, question, job.choice, job.name
                    yield name, functools.partial(answer, *given)


def answer(folder, place, job, seed, smoke):
    """Computes and saves an answer unless it exists."""
    name = file_name(place.name, job.choice, job.name, seed)
    path = folder / job.question / name
    way = work.way_of(job.question, job.name)
    digest = digest_of(job.method, way, place, job.choice, smoke)
    if path.is_file() and json.loads(path.read_text()).get("digest") == digest:
        return
    start = time.monotonic()
    own = answers.Asked(place, job, seed, smoke, folder / "trained")
    found = answers.ANSWERS[job.question](own)
    train, test = place.data.train.windows, place.data.test.windows
    row = {
        "question": job.question,
        "place": place.name,
        "choice": job.choice,
        "at": list(place.choices).index(job.choice),
        "name": job.name,
        "x": job.x,
        "seed": seed,
        "method": job.method,
        "digest": digest,
        "beside": place.beside,
        "classes": list(place.data.spec.classes["activity"]),
        "shapes": f"{train.shape} to train on, {test.shape} to test with",
        **found,
        "seconds": time.monotonic() - start,
        **timing.about(),
    }
    results.keep(path, row)
    print(told(row), flush=True)


def digest_of(method, way, place, choice, smoke):
    """Returns a hash of the settings and windows of a row."""
    return work.digest(method, place, place.choices[choice], smoke, way)


def told(row):
    """Returns a short description of a row."""
    parts = [f"{row['place']}, {row['question']}, {row['choice']}: {row['name']}"]
    if "shown" in row:
        parts.append(f"shown {100 * row['shown']:.1f} %")
        parts.append(f"hidden, worst balanced {100 * row['worst']:.1f} %")
    if "retrained" in row:
        worst = max(row["retrained"].values())
        parts.append(f"retrained {100 * worst:.1f} %")
    return ", ".join([*parts, f"{row['seconds']:.0f} s"])


def up_to_date(rows, args):
    """Returns rows whose settings and windows have not changed.

    Rows of places whose data are missing cannot be checked and are kept.
    """
    if not any("digest" in row for row in rows):
        return rows
    known = {place.name: place for place in places.every(args.smoke, args.case)}
    digests = {}

    def outdated(row):
        if "digest" not in row or row["place"] not in known:
            return False
        place = known[row["place"]]
        if row["choice"] not in place.choices:
            return True
        way = work.way_of(row["question"], row["name"])
        at = row["method"], json.dumps(way), row["place"], row["choice"]
        if at not in digests:
            digests[at] = digest_of(at[0], way, place, at[3], args.smoke)
        return row["digest"] != digests[at]

    return [row for row in rows if not outdated(row)]


def found_in(folder):
    """Returns all saved answers."""
    apart = [row for name in ALONE for row in results.kept(folder / f"{name}.json")]
    return results.answers(folder, work.QUESTIONS) + apart


def _merge(path, found):
    """Merges rows into a file; new rows replace old ones."""
    before = results.kept(path)
    named = lambda row: [row.get(name) for name in ("name", "system", "form")]
    anew = [named(row) for row in found]
    results.keep(path, [*(row for row in before if named(row) not in anew), *found])
