"""PrivateHub beside what it is compared with: python bench privatehub [--smoke].

Answers chapter 4's questions on three rooms (Room Climate Datasets), an office with CO2
(UCI Room Occupancy Estimation) and five homes (van Kasteren, MIT, Ordonez): whether
rewritten streams tell what they should and hide what they should, for several choices
of what to hide (RQ1 and RQ2: table 4.2, figure 4.8); whether they still do what sensors
are there for (RQ3: figure 4.9); what missing labels cost (RQ4: figure 4.10); what
others' windows give a new home. Asked besides: whether windows from nothing are of the
class that was asked for, how like real ones they are, and how few steps will do. The
judge is a classifier that fine-tuning never saw. A table says what must be reached and
what is. ``--question motionsense`` rewrites MotionSense and attacks it as
``anonymizers`` does, ``--question speed`` times the sampler beside its network and
beside Hugging Face's diffusers.

``--json F`` writes the rows to F, beside those there that were not found anew, tables
as F with .md and .html, figures as F with their names and .png. What was trained and
found is kept in ``--folder`` (runs/privatehub), so that the same command goes on where
it was stopped; ``--hours`` says when to begin nothing new. ``--case`` names rooms,
office, homes, or one place ("room A", "home B"); ``--question`` one of methods,
switched, forecasts, missing, new_home, quality, steps, motionsense, speed; ``--choice
first`` leaves out other choices of what to hide; ``--seeds`` how many seeds, 1 by
default, ``--first`` the number of the first. ``--rivals DIR`` is where diffusers is
installed: ``python bench harness.rivals DIR`` prints how.
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
    """Runs what is missing, then writes all that there is."""
    args = timing.arguments(
        __doc__,
        folder="privatehub",
        hours=True,
        case="rooms, office, homes or one place's name; all by default",
        question=timing.one_of(QUESTIONS, f"all but {' and '.join(ALONE)} by default"),
        choice=timing.one_of(["first"], "else further choices of what to hide as well"),
        seeds=timing.number(1, "how many seeds"),
        first=timing.number(0, "number of the first seed"),
        rivals="where diffusers is installed",
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
    """``(name, what to do)`` for each answer."""
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
    """Finds and keeps one answer, unless that was done."""
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
    """What tells answers of one row from those by other settings or windows."""
    return work.digest(method, place, place.choices[choice], smoke, way)


def told(row):
    """A row in a few words."""
    parts = [f"{row['place']}, {row['question']}, {row['choice']}: {row['name']}"]
    if "shown" in row:
        parts.append(f"shown {100 * row['shown']:.1f} %")
        parts.append(f"hidden, worst balanced {100 * row['worst']:.1f} %")
    if "retrained" in row:
        worst = max(row["retrained"].values())
        parts.append(f"retrained {100 * worst:.1f} %")
    return ", ".join([*parts, f"{row['seconds']:.0f} s"])


def up_to_date(rows, args):
    """Rows, but those that settings or windows as they are now would answer anew.

    Of places that are not at hand nobody can tell, and rows stay.
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
    """Every answer that there is."""
    apart = [row for name in ALONE for row in results.kept(folder / f"{name}.json")]
    return results.answers(folder, work.QUESTIONS) + apart


def _merge(path, found):
    """Keeps rows that were found before, and not anew."""
    before = results.kept(path)
    named = lambda row: [row.get(name) for name in ("name", "system", "form")]
    anew = [named(row) for row in found]
    results.keep(path, [*(row for row in before if named(row) not in anew), *found])
