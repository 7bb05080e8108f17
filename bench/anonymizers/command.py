"""Compares all anonymizers under one protocol, and with published results.

Example: ``python bench anonymizers --case MotionSense --only "CVAE;CAE" --smoke``.

Trains each system of ``entries.py`` on MotionSense (split by trial, and with unseen
people), the smartwatch recordings and UCI HAPT, and tests models of MotionSense on UCI
HAPT. Each system faces every attacker of ``jaxanon evaluate`` and every attack except
``membership``, which applies to runs that generate windows. ``--json F`` writes the
rows to F, the table with published figures to .md and .html, and the figure to .png.
Rows of F from other machines are kept unless ``--folder`` has more results for them;
rows of different seeds are pooled.

The first seed of every case and system runs first, then the further attacks (first seed
and first variant only), then the other seeds. ``--folder`` (runs/anonymizers) saves
runs and results, so that the same command resumes; ``--hours`` limits the time in which
new jobs start. ``--case`` selects a case and ``--only`` systems, separated by
semicolons. ``--seeds`` is the number of seeds and ``--first`` the first one, so that
machines can share the work; ``--further no`` skips the further attacks.
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
    """Runs missing evaluations, then writes all results."""
    args = timing.arguments(
        __doc__,
        folder="anonymizers",
        hours=True,
        case=f"one of {[case.name for case in tried.CASES]}; default: all",
        only=timing.one_of(tried.NAMES, apart=";"),
        seeds=timing.Option("number of seeds; default: 3", type=int),
        first=timing.number(0, "first seed"),
        further=timing.one_of(["no"], "no skips attacks on the first seed only"),
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
                print(f"Skipping {case.name}: {error}")
    failed = results.go_through(jobs(args, benches), args.end, again=False)
    found = [row for bench in benches for row in bench.rows()]
    if args.json is not None:
        order = [one for case in tried.CASES for one in in_order(case)]
        found = rows.together(args.json, found, order)
        page.write(args.json, found)
    print(page.markdown(found))
    results.stop_if("; ".join(failed))


def jobs(args, benches):
    """Yields ``(name, function)`` per evaluation, the first seed's before others'."""
    seeds = args.seeds or (2 if args.smoke else 3)
    for stage, seed in tried.passes(seeds, args.first, further=args.further != "no"):
        for bench in benches:
            for name in bench.case.entries:
                if name in args.only:
                    given = tried.ENTRIES[name], stage, seed, args.end
                    do = functools.partial(bench.run, *given)
                    yield f"{bench.case.name}, {name}", do


def in_order(case):
    """Returns the identifiers of a case's rows in order."""
    entries = [tried.ENTRIES[name] for name in case.entries]
    return [
        (case.name, one.name, variant) for one in entries for variant in one.variants
    ]


def load(case, smoke):
    """Loads a case's data; every eighth window for a smoke test, as pairs need some."""
    found = ja.load(**case.load)
    return data.thin(found, 8) if smoke else found


class Bench:
    """A case with its data and saved results; trains raw-data classifiers once."""

    def __init__(self, case, data, folder, smoke):
        self.case, self.data, self.smoke = case, data, smoke
        self.folder = folder / plain(case.name)
        self.models = folder / plain(case.trained_on or case.name) / "trained"
        self._raw_classifiers = None

    def run(self, entry, stage, seed, end):
        """Evaluates one system with one seed at one stage, unless it is saved."""
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
                raw_classifiers=self.raw_classifiers(),
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
        """Returns the folder of a row's evaluations."""
        name = rows.called(entry.name, variant)
        return self.folder / "found" / plain(name)

    def train(self, entry, seed):
        """Returns ``(run, seconds)`` of a newly trained or saved run."""
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
        # Sum over rounds, because the run may have resumed or been trained before.
        return run, sum(row["seconds"] for row in run.history)

    def train_grid(self, entry, seed, folder):
        """Trains a grid of models as a sweep; returns a run that selects among them."""
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
        # Models trained together have the same seconds, which count once.
        took = {tuple(row["seconds"] for row in one.history) for one in found.runs}
        return run, sum(map(sum, took))

    def epochs(self, entry):
        """Returns the epochs of a system in the case that trains it."""
        if self.smoke:
            return min(1, entry.epochs)
        trains = {case.name: case for case in tried.CASES}
        case = trains.get(self.case.trained_on, self.case)
        return case.epochs.get(entry.name, entry.epochs)

    def as_variant(self, entry, run, settings):
        """Returns a run without a folder that anonymizes with a variant's settings."""
        if not entry.method or entry.grid:
            return run
        return releases.by(run, settings)

    def raw_classifiers(self):
        """Classifiers of raw windows, shared by all rows of the case."""
        if self._raw_classifiers is None:
            self._raw_classifiers = anonymizers.train_raw_classifiers(self.data)
        return self._raw_classifiers

    def tell(self, entry, variant, stage, seed, seconds):
        """Prints a result when it is ready."""
        if stage == "seeds":
            print(" | ".join(rows.cells(self.row(entry, variant))))
        took = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
        system = rows.called(entry.name, variant)
        print(f"{self.case.name}, {system}: {stage}, seed {seed}; {took}", flush=True)

    def row(self, entry, variant):
        """Returns a row, or None if no seed has a result."""
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
        """Returns all rows with enough results."""
        entries = [tried.ENTRIES[name] for name in self.case.entries]
        found = [self.row(one, variant) for one in entries for variant in one.variants]
        return [row for row in found if row is not None]
