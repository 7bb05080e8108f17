"""Every anonymizer under one protocol: python bench/anonymizers.py [--smoke] [options].

Trains each system of ``_entries.py`` on MotionSense (by trial, and on people never
seen), the smartwatch recordings and UCI HAPT, tries it with every attacker and every
attack that ``jaxanon evaluate`` knows, and writes the table with the published figures
beside: ``--json F`` writes the rows to F, the same as F with .md and .html, and the
figure as F with .png.

What is trained and what is found is kept in ``--folder`` (runs/anonymizers), so that
the same command goes on where it was stopped; ``--hours`` says when to begin nothing
new. ``--case`` names one case and ``--only`` systems, with semicolons between,
``--seeds`` how many seeds; ``--further no`` leaves out what is tried on the first seed
alone.
"""

import dataclasses
import datetime
import json
import pathlib
import platform
import time
import traceback

import _anonymizer_page
import _anonymizer_rows
import _entries
import _timing
import blinder
import jax
import numpy as np

import jaxanon as ja
from jaxanon import evaluation, methods

STAGES = {
    "seeds": ("mlp", "forest", "stream"),
    "attackers": ("cnn", "lstm", "boosting", "logistic", "tree", "svm"),
    "attacks": ("mlp", "forest", "per-class", "pairs", "self-training", "released"),
}
FIRST_SEED = ("attackers", "attacks")  # Stages that try the first seed alone.
STAGES_SMOKE = {
    "seeds": ("forest", "stream"),
    "attackers": ("tree",),
    "attacks": ("forest", "pairs"),
}


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
        seeds="seeds trained together, 3 by default",
        hours="begin nothing new after so many hours",
        further="no: leave out what is tried on the first seed alone",
    )
    seeds = int(args.seeds or (2 if args.smoke else 3))
    default = "runs/anonymizers-smoke" if args.smoke else "runs/anonymizers"
    folder = pathlib.Path(args.folder or default)
    end = time.monotonic() + 3600 * float(args.hours or np.inf)
    only = args.only.split(";") if args.only else None
    failed, rows = [], []
    for case in _entries.SMOKE if args.smoke else _entries.CASES:
        if args.case not in (None, case.name):
            continue
        try:
            data = load(case, args.smoke)
        except OSError as error:
            print(f"{case.name} is left out: {error}")
            continue
        bench = Bench(case, data, folder, seeds, args.smoke, args.further != "no")
        for name in case.entries:
            if only and name not in only:
                continue
            try:
                bench.run(_entries.ENTRIES[name], end)
            except Exception:  # One system must not cost the others their hours.
                failed.append(f"{case.name}, {name}")
                traceback.print_exc()
        rows += bench.rows()
    if args.json is not None:
        _anonymizer_page.write(args.json, rows)
    print(_anonymizer_rows.markdown(rows))
    if failed:
        raise SystemExit(f"failed, and left out: {'; '.join(failed)}")


def load(case, smoke):
    """A case's data; every so many windows of it for a smoke test."""
    data = ja.load(**case.load)
    return blinder.thin(data) if smoke else data


class Bench:
    """A case in the making. A class, for judges are trained once, when first needed."""

    def __init__(self, case, data, folder, seeds, smoke, further):
        self.case, self.data, self.seeds = case, data, seeds
        self.smoke, self.further = smoke, further
        self.folder = folder / case.name.replace(",", "").replace(" ", "_")
        self._judges = None

    def run(self, entry, end):
        """Trains and tries one system, as far as that is not done."""
        runs = None
        for variant, settings in entry.variants.items():
            for stage, attacks in (STAGES_SMOKE if self.smoke else STAGES).items():
                if stage in FIRST_SEED and not self.further:
                    continue
                path = self.place(entry, variant) / f"{stage}.json"
                if path.is_file() or time.monotonic() > end:
                    continue
                if runs is None:
                    runs, trained = self.train(entry)
                tried = [self.as_variant(entry, run, settings) for run in runs]
                if stage in FIRST_SEED:
                    tried = tried[:1]
                start = time.monotonic()
                found = evaluation.evaluate_many(
                    tried, self.data, attacks=attacks, judges=self.judges()
                )
                seconds = {"evaluation": time.monotonic() - start}
                if stage == "seeds":
                    seconds["training"] = trained
                kept = {"count": len(tried), "seconds": seconds, **about()}
                first = found["reports"][0]
                kept["report"] = first if stage in FIRST_SEED else found["summary"]
                path.parent.mkdir(parents=True, exist_ok=True)
                draft = path.with_suffix(".draft")
                draft.write_text(json.dumps(kept))
                draft.replace(path)
                self.tell(entry, variant, stage, kept)

    def place(self, entry, variant):
        """Where the evaluations of one row are kept."""
        name = "_".join(filter(None, (entry.name, variant)))
        return self.folder / "found" / name.replace(",", "").replace(" ", "_")

    def train(self, entry):
        """``(runs, seconds)``: one for each seed, saved, or found as saved."""
        start = time.monotonic()
        count = entry.seeds or self.seeds
        if not entry.method:
            return [Untouched()] * count, 0.0
        swept = ja.sweep(
            methods.build(entry.method, self.data.spec, **entry.settings),
            self.data,
            seeds=count,
            epochs=1 if self.smoke else max(1, entry.epochs // self.case.less),
            out=self.folder / "trained" / entry.name.replace(" ", "_"),
            resume=True,
        )
        return swept.runs, time.monotonic() - start

    def as_variant(self, entry, run, settings):
        """A trained run that anonymizes as a variant does."""
        if not settings:
            return run
        config = dataclasses.asdict(run.method.config) | settings
        method = methods.build(entry.method, run.spec, **config)
        return dataclasses.replace(run, method=method)

    def judges(self):
        """Classifiers of raw windows, that all rows of the case share."""
        if self._judges is None:
            self._judges = evaluation.raw_judges(self.data)
        return self._judges

    def tell(self, entry, variant, stage, kept):
        """Says what was found, as it is found."""
        if stage == "seeds":
            stages = {stage: kept}
            row = _anonymizer_rows.row(
                self.case, entry, variant, self.data, stages, about()
            )
            print(" | ".join(_anonymizer_rows.cells(row)), flush=True)
        seconds = {name: round(value) for name, value in kept["seconds"].items()}
        print(
            f"{self.case.name}, {entry.name} {variant}: {stage}, {seconds} s",
            flush=True,
        )

    def rows(self):
        """Every row of which there is enough."""
        found = []
        for name in self.case.entries:
            entry = _entries.ENTRIES[name]
            for variant in entry.variants:
                place = self.place(entry, variant)
                stages = {
                    stage: json.loads((place / f"{stage}.json").read_text())
                    for stage in STAGES
                    if (place / f"{stage}.json").is_file()
                }
                if "seeds" in stages:
                    how = {key: stages["seeds"][key] for key in about()}
                    row = _anonymizer_rows.row(
                        self.case, entry, variant, self.data, stages, how
                    )
                    found.append(row)
        return found


def about() -> dict:
    """What measured a row, and when."""
    return {
        "device": _timing.device(),
        "versions": {"jax": jax.__version__, "python": platform.python_version()},
        "date": datetime.date.today().isoformat(),
    }


if __name__ == "__main__":
    main()
