"""Every anonymizer under one protocol: python bench anonymizers [--smoke] [options].

Trains each system of ``entries.py`` on MotionSense (by trial, and on people never
seen), the smartwatch recordings and UCI HAPT, and takes models of MotionSense to UCI
HAPT, tries it with every attacker that ``jaxanon evaluate`` knows and every attack but
``membership`` (which is of runs that make windows), and writes the table with the
published figures beside: ``--json F`` writes the rows to F, the same as F with .md and
.html, and the figure as F with .png; rows of F that were found elsewhere stay, unless
what is in ``--folder`` tells more of them, and those of other seeds are put together.

The first seed comes first, of every case and system; then what is tried on that seed
and a system's first form alone; then the other seeds. What is trained and what is found
is kept in ``--folder`` (runs/anonymizers), so that the same command goes on where it
was stopped; ``--hours`` says when to begin nothing new. ``--case`` names one case and
``--only`` systems, with semicolons between, ``--seeds`` how many seeds, ``--first`` the
number of the first, so that machines may share them; ``--further no`` leaves out what
is tried on seed 0 alone.
"""

import functools
import time

import jax

import jaxanon as ja
from anonymizers import entries as tried
from anonymizers import page, rows
from harness import data, releases, results, timing
from harness.results import plain
from jaxanon import methods
from jaxanon.evaluation import anonymizers
from jaxanon.evaluation.summary import aggregate
from jaxanon.sweeps import online_selection


def main():
    """Trains, evaluates and writes what is missing, then all that there is."""
    args = timing.arguments(
        __doc__,
        folder="anonymizers",
        hours=True,
        case=f"one of {[case.name for case in tried.CASES]}; all by default",
        only=timing.one_of(tried.NAMES, apart=";"),
        seeds=timing.Option("seeds, 3 by default", type=int),
        first=timing.number(0, "number of the first seed"),
        further=timing.one_of(["no"], "no leaves out what is tried on seed 0 alone"),
    )
    cases = tried.SMOKE if args.smoke else tried.CASES
    timing.among("case", args.case, [case.name for case in cases])
    benches = []
    for case in cases:
        if args.case in (None, case.name):
            try:
                found = load(case, args.smoke)
                benches.append(Bench(case, found, args.folder, args.smoke))
            except OSError as error:
                print(f"{case.name} is left out: {error}")
    failed = results.go_through(jobs(args, benches), args.end, again=False)
    found = [row for bench in benches for row in bench.rows()]
    if args.json is not None:
        order = [one for case in tried.CASES for one in in_order(case)]
        found = rows.together(args.json, found, order)
        page.write(args.json, found)
    print(page.markdown(found))
    results.stop_if("; ".join(failed))


def jobs(args, benches):
    """``(name, what to do)`` for each evaluation, the first seed's before others'."""
    seeds = args.seeds or (2 if args.smoke else 3)
    for stage, seed in tried.passes(seeds, args.first, further=args.further != "no"):
        for bench in benches:
            for name in bench.case.entries:
                if name in args.only:
                    given = tried.ENTRIES[name], stage, seed, args.end
                    do = functools.partial(bench.run, *given)
                    yield f"{bench.case.name}, {name}", do


def in_order(case):
    """What tells the rows of a case apart, in their order."""
    entries = [tried.ENTRIES[name] for name in case.entries]
    return [
        (case.name, one.name, variant) for one in entries for variant in one.variants
    ]


def load(case, smoke):
    """A case's data; every eighth window for a smoke test, where pairs need some."""
    found = ja.load(**case.load)
    return data.thin(found, 8) if smoke else found


class Bench:
    """A case in the making. A class, for judges are trained once, when first needed."""

    def __init__(self, case, data, folder, smoke):
        self.case, self.data, self.smoke = case, data, smoke
        self.folder = folder / plain(case.name)
        self.models = folder / plain(case.trained_on or case.name) / "trained"
        self._judges = None

    def run(self, entry, stage, seed, end):
        """Tries one system, trained by one seed, in one way, unless that was done."""
        if seed and (entry.once or self.case.once):
            return
        run = None
        for number, (variant, settings) in enumerate(entry.variants.items()):
            path = self.place(entry, variant) / f"{stage}-{seed}.json"
            if path.is_file() or (number and stage in tried.FURTHER):
                continue
            if time.monotonic() > end:
                return
            if run is None:
                run, trained = self.train(entry, seed)
            attacks = (tried.STAGES_SMOKE if self.smoke else tried.STAGES)[stage]
            if stage == "seeds":
                attacks += entry.attacks
            start = time.monotonic()
            report = anonymizers.evaluate(
                self.as_variant(entry, run, settings),
                self.data,
                attacks=attacks,
                seed=seed,
                share=self.case.share if stage in tried.FURTHER else 0.2,
                judges=self.judges(),
                output_dir=path.parent / "report"
                if stage == "seeds" and not seed
                else None,
            )
            seconds = {"evaluation": time.monotonic() - start}
            if stage == "seeds":
                seconds["training"] = trained
            kept = {"seconds": seconds, **timing.about(), "report": report}
            results.keep(path, kept)
            self.tell(entry, variant, stage, seed, seconds)

    def place(self, entry, variant):
        """Where the evaluations of one row are kept."""
        name = rows.called(entry.name, variant)
        return self.folder / "found" / plain(name)

    def train(self, entry, seed):
        """``(run, seconds)``: trained and saved, or found as saved."""
        if not entry.method:
            return data.Untouched(), 0.0
        folder = self.models / plain(entry.name) / f"seed-{seed}"
        if self.case.trained_on:
            return ja.open_run(folder), 0.0
        if entry.grid:
            return self.train_grid(entry, seed, folder)
        run = ja.train(
            methods.build(entry.method, self.data.spec, **entry.settings),
            self.data,
            epochs=self.epochs(entry),
            seed=seed,
            output_dir=folder,
            resume=True,
        )
        # Rounds' own, for it may have been resumed, or trained before.
        return run, sum(row["seconds"] for row in run.history)

    def train_grid(self, entry, seed, folder):
        """A grid of models as one sweep, and the choice among them as a run."""
        if seed:
            raise ValueError(f"{entry.name} trains by seed 0 alone, got {seed}.")
        few = slice(1 if self.smoke else None)
        found = ja.sweep(
            entry.method,
            self.data,
            grid={name: list(values[few]) for name, values in entry.grid.items()},
            epochs=self.epochs(entry),
            output_dir=folder,
            resume=True,
            **entry.settings,
        )
        runs, _ = online_selection.members(folder)
        run = online_selection.choose_online(jax.random.key(seed), runs, self.data)
        # Those that were trained side by side took the same seconds, which count once.
        took = {tuple(row["seconds"] for row in one.history) for one in found.runs}
        return run, sum(map(sum, took))

    def epochs(self, entry):
        """That a system is trained for, in the case that trains it."""
        if self.smoke:
            return min(1, entry.epochs)
        trains = {case.name: case for case in tried.CASES}
        case = trains.get(self.case.trained_on, self.case)
        return case.epochs.get(entry.name, entry.epochs)

    def as_variant(self, entry, run, settings):
        """A trained run that anonymizes as a variant does, and has no folder."""
        if not entry.method or entry.grid:
            return run
        return releases.by(run, settings)

    def judges(self):
        """Classifiers of raw windows, that all rows of the case share."""
        if self._judges is None:
            self._judges = anonymizers.train_raw_classifiers(self.data)
        return self._judges

    def tell(self, entry, variant, stage, seed, seconds):
        """Says what was found, as it is found."""
        if stage == "seeds":
            print(" | ".join(rows.cells(self.row(entry, variant))))
        took = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
        system = rows.called(entry.name, variant)
        print(f"{self.case.name}, {system}: {stage}, seed {seed}; {took}", flush=True)

    def row(self, entry, variant):
        """What there is of a row; None where no seed was tried."""
        place = self.place(entry, variant)
        found = {
            stage: [
                results.kept(path) for path in sorted(place.glob(f"{stage}-*.json"))
            ]
            for stage in tried.STAGES
        }
        if not found["seeds"]:
            return None
        kept = {
            stage: {
                "report": parts[0]["report"],
                "seconds": {
                    name: sum(part["seconds"][name] for part in parts)
                    for name in parts[0]["seconds"]
                },
            }
            for stage, parts in found.items()
            if parts
        }
        reports = [part["report"] for part in found["seeds"]]
        kept["seeds"]["report"] = aggregate(reports)
        kept["seeds"]["seeds"] = [report["seed"] for report in reports]
        how = {name: found["seeds"][-1][name] for name in timing.about()}
        how |= {"epochs": self.epochs(entry)}
        return rows.row(self.case, entry, variant, self.data, kept, how)

    def rows(self):
        """Every row of which there is enough."""
        entries = [tried.ENTRIES[name] for name in self.case.entries]
        found = [self.row(one, variant) for one in entries for variant in one.variants]
        return [row for row in found if row is not None]
