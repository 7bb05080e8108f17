"""Every anonymizer under one protocol: python bench/anonymizers.py [--smoke] [options].

Trains each system of ``_entries.py`` on MotionSense (by trial, and on people never
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

import json
import pathlib
import time
import traceback

import _anonymizer_page
import _anonymizer_rows
import _answers
import _entries
import _released
import _stages
import _timing
import blinder
import jax
import numpy as np

import jaxanon as ja
from jaxanon import methods
from jaxanon.evaluation import anonymizers
from jaxanon.evaluation.summary import aggregate
from jaxanon.sweeps import online_selection


class Untouched:
    """Raw windows, as an anonymizer that changes nothing."""

    def anonymize(self, key, windows):
        """The windows."""
        del key
        return np.asarray(windows, np.float32)


def main():
    """Trains, evaluates and writes what is missing, then all that there is."""
    args = _timing.arguments(
        __doc__.splitlines()[0],
        folder="what was trained and found so far, runs/anonymizers by default",
        case=f"one of {[case.name for case in _entries.CASES]}; all by default",
        only="systems, with semicolons between; all by default",
        seeds="seeds, 3 by default",
        first="number of the first seed, 0 by default",
        hours="begin nothing new after so many hours",
        further="no: leave out what is tried on seed 0 alone",
    )
    seeds = int(args.seeds or (2 if args.smoke else 3))
    first = int(args.first or 0)
    default = "runs/anonymizers-smoke" if args.smoke else "runs/anonymizers"
    folder = pathlib.Path(args.folder or default)
    end = _timing.end(args)
    only = args.only.split(";") if args.only else _entries.NAMES
    _timing.among("only", only, _entries.NAMES)
    cases = _entries.SMOKE if args.smoke else _entries.CASES
    _timing.among("case", args.case, [case.name for case in cases])
    _timing.among("further", args.further, ("no",))
    benches = []
    for case in cases:
        if args.case in (None, case.name):
            try:
                benches.append(Bench(case, load(case, args.smoke), folder, args.smoke))
            except OSError as error:
                print(f"{case.name} is left out: {error}")
    failed = set()
    for stage, seed in _stages.passes(seeds, first, further=args.further != "no"):
        for bench in benches:
            for name in bench.case.entries:
                if name not in only or (bench, name) in failed:
                    continue
                try:
                    bench.run(_entries.ENTRIES[name], stage, seed, end)
                except Exception:  # One system must not cost the others their hours.
                    failed.add((bench, name))
                    traceback.print_exc()
    rows = [row for bench in benches for row in bench.rows()]
    if args.json is not None:
        order = [one for case in _entries.CASES for one in in_order(case)]
        rows = _anonymizer_rows.together(args.json, rows, order)
        _anonymizer_page.write(args.json, rows)
    print(_anonymizer_rows.markdown(rows))
    if failed:
        told = "; ".join(f"{bench.case.name}, {name}" for bench, name in failed)
        raise SystemExit(f"failed, and left out: {told}")


def in_order(case):
    """What tells the rows of a case apart, in their order."""
    entries = [_entries.ENTRIES[name] for name in case.entries]
    return [
        (case.name, one.name, variant) for one in entries for variant in one.variants
    ]


def load(case, smoke):
    """A case's data; every eighth window for a smoke test, where pairs need some."""
    data = ja.load(**case.load)
    return blinder.thin(data, 8) if smoke else data


def plain(name):
    """A name as that of a folder.

    Example:
      >>> plain("Blinder, guided")
      'Blinder_guided'
    """
    return name.replace(",", "").replace(" ", "_")


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
            if path.is_file() or (number and stage in _stages.FURTHER):
                continue
            if time.monotonic() > end:
                return
            if run is None:
                run, trained = self.train(entry, seed)
            attacks = (_stages.SMOKE if self.smoke else _stages.STAGES)[stage]
            if stage == "seeds":
                attacks += entry.attacks
            start = time.monotonic()
            report = anonymizers.evaluate(
                self.as_variant(entry, run, settings),
                self.data,
                attacks=attacks,
                seed=seed,
                share=self.case.share if stage in _stages.FURTHER else 0.2,
                judges=self.judges(),
                out=path.parent / "report" if stage == "seeds" and not seed else None,
            )
            seconds = {"evaluation": time.monotonic() - start}
            if stage == "seeds":
                seconds["training"] = trained
            kept = {"seconds": seconds, **_timing.about(), "report": report}
            _answers.keep(path, kept)
            self.tell(entry, variant, stage, seed, seconds)

    def place(self, entry, variant):
        """Where the evaluations of one row are kept."""
        name = _anonymizer_rows.called(entry.name, variant)
        return self.folder / "found" / plain(name)

    def train(self, entry, seed):
        """``(run, seconds)``: trained and saved, or found as saved."""
        if not entry.method:
            return Untouched(), 0.0
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
            out=folder,
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
            out=folder,
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
        trains = {case.name: case for case in _entries.CASES}
        case = trains.get(self.case.trained_on, self.case)
        return case.epochs.get(entry.name, entry.epochs)

    def as_variant(self, entry, run, settings):
        """A trained run that anonymizes as a variant does, and has no folder."""
        if not entry.method or entry.grid:
            return run
        return _released.by(run, settings)

    def judges(self):
        """Classifiers of raw windows, that all rows of the case share."""
        if self._judges is None:
            self._judges = anonymizers.raw_judges(self.data)
        return self._judges

    def tell(self, entry, variant, stage, seed, seconds):
        """Says what was found, as it is found."""
        if stage == "seeds":
            print(" | ".join(_anonymizer_rows.cells(self.row(entry, variant))))
        took = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
        system = _anonymizer_rows.called(entry.name, variant)
        print(f"{self.case.name}, {system}: {stage}, seed {seed}; {took}", flush=True)

    def row(self, entry, variant):
        """What there is of a row; None where no seed was tried."""
        found = {
            stage: [
                json.loads(path.read_text())
                for path in sorted(self.place(entry, variant).glob(f"{stage}-*.json"))
            ]
            for stage in _stages.STAGES
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
        how = {name: found["seeds"][-1][name] for name in _timing.about()}
        how |= {"epochs": self.epochs(entry)}
        return _anonymizer_rows.row(self.case, entry, variant, self.data, kept, how)

    def rows(self):
        """Every row of which there is enough."""
        entries = [_entries.ENTRIES[name] for name in self.case.entries]
        found = [self.row(one, variant) for one in entries for variant in one.variants]
        return [row for row in found if row is not None]


if __name__ == "__main__":
    main()
