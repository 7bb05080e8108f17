"""Compares DEEProtect's mechanisms with Laplace noise on raw windows, over ε.

Example: ``python bench deeprotect --part features --seeds 1 --smoke``.

Trains DEEProtect on windows of one second at 10 Hz, as published, for three case
studies on three data sets. ``--part`` selects one of these parts:

- ``features``: useful accuracy over the number of features, for every extractor;
- ``budgets``: useful and sensitive accuracy over ε, for mechanisms on features and for
  Laplace noise on raw windows, and the ε at which useful accuracy is within 10 points
  of that on raw windows;
- ``speed``: time of training and of releases.

Accuracies are of random forests trained on released training windows and tested on
released test windows. ``--json F`` merges the rows into F and writes .md, .html and
.png with the same name. ``--folder`` (runs/deeprotect) saves answers, so that the same
command resumes; ``--hours`` limits the time in which new jobs start.
"""

import dataclasses
import json
import time

import jax
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis

import jaxanon as ja
from deeprotect import page, speed, tables
from harness import results, timing
from jaxanon import methods, metrics
from jaxanon.methods.deeprotect.config import in_range
from jaxanon.models import deeprotect

PARTS = ("features", "budgets", "speed")
EPOCHS, MOST = 80, 8000  # Epochs, and maximum training windows of a forest.
COUNTS = (3, 7, 15, 30)
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0)
RAW_EPSILONS = (5.0, 20.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0)
EXTRACTORS = ("autoencoder", "pca", "dct", "dft", "haar", "dictionary")
# Names of curves and settings of their release.
RELEASES = {
    "everything, PrivUnit": {"mechanism": "privunit", "radius": 0.35},
    "everything, L2": {"mechanism": "l2", "radius": 0.35},
    "everything, Laplace": {"mechanism": "laplace", "radius": 0.35},
    "everything, as published": {"mechanism": "laplace", "sensitivity": "published"},
    "named, within the span": {"mechanism": "span", "mode": "named", "radius": 0.35},
    "named, L2": {"mechanism": "l2", "mode": "named", "radius": 0.35},
}
# Settings with more features and with budgets beyond the paper's.
WIDER = {
    f"{name}, 15 features": RELEASES[name]
    for name in ("everything, PrivUnit", "named, within the span")
}
WIDER_EPSILONS = (5.0, 10.0, 20.0, 40.0, 80.0)
SPAN_EPSILONS = (5.0, 10.0, 20.0, 30.0)  # PrivUnit in 1 or 2 dimensions rejects more.
RAW = {
    "everything, Laplace on raw windows": {"mechanism": "laplace"},
    "named, Laplace on raw windows": {"mechanism": "laplace", "mode": "named"},
}
# A useful inference, further useful ones, a sensitive one.
CASES = {
    "motion_sense": (
        ("1 identity / activity", "subject", (), "activity"),
        ("2 activity / gender", "activity", (), "gender"),
        ("3 activity and gender / identity", "activity", ("gender",), "subject"),
    ),
    "smartwatch": (
        ("1 identity / exercise", "subject", (), "exercise"),
        ("2 exercise / side", "exercise", (), "side"),
        ("3 exercise and side / identity", "exercise", ("side",), "subject"),
    ),
    "uci_hapt": (
        ("1 identity / activity", "subject", (), "activity"),
        ("2 activity / identity", "activity", (), "subject"),
    ),
}
# Studies whose features are compared.
EXTRACTED = {
    "motion_sense": ("1 identity / activity", "2 activity / gender"),
    "smartwatch": ("1 identity / exercise",),
    "uci_hapt": (),
}


def main():
    """Measures missing rows, then writes all results."""
    args = timing.arguments(
        __doc__,
        folder="deeprotect",
        hours=True,
        part=timing.one_of(PARTS),
        seeds=timing.number(3, "number of seeds of the features"),
    )
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for dataset, cases in list(CASES.items())[1 if args.smoke else 0 :]:
        # Two classes give one direction, whose polytope is quick to sample.
        for case in cases[1:2] if args.smoke else cases:
            try:
                study = Study(dataset, *case, args)
            except OSError as error:
                print(f"Skipping {dataset}: {error}")
                continue
            extracted = args.smoke or case[0] in EXTRACTED[dataset]
            if args.part in (None, "features") and extracted:
                rows += study.features()
            if args.part in (None, "budgets"):
                rows += study.budgets()
        if args.smoke:
            break
    if args.part in (None, "speed") and time.monotonic() < args.end:
        rows += speed.rows(args.smoke)
    rows = results.with_earlier(args, [row for row in rows if row is not None])
    print(page.markdown(rows))
    if args.json is not None:
        page.write(args.json, rows)


class Study:
    """A case study that keeps its trained runs."""

    def __init__(self, dataset, name, public, also, private, args):
        load = {"preset": "acc10", "public": public, "private": [private]}
        self.data = ja.load(dataset, **load)
        self.dataset, self.name, self.also = dataset, name, also
        self.folder, self.end = args.folder, args.end
        self.smoke, self.trained = args.smoke, {}
        self.seeds = 1 if args.smoke else args.seeds
        self.epochs = 2 if args.smoke else EPOCHS
        self.useful, self.sensitive = (public, *also), private
        every = max(1, len(self.data.train.windows) // MOST) * (8 if args.smoke else 1)
        self.rows = np.arange(0, len(self.data.train.windows), every)

    def train(self, seed=0, **settings):
        """Trains a run of the study that does not add noise yet."""
        given = {"mechanism": "none", "radius": None, "mode": "named"}
        given |= {"extra_public": self.also}
        method = methods.deeprotect(self.data.spec, **given | settings)
        learned = method.config.features in ("autoencoder", "dictionary")
        epochs = self.epochs if learned else 2
        return ja.train(method, self.data, epochs=epochs, seed=seed, progress=False)

    def read(self, train, test, attribute):
        """Returns the accuracy of a forest trained on ``train``, tested on ``test``."""
        forest = RandomForestClassifier(
            50, min_samples_leaf=2, max_samples=0.5, n_jobs=2, random_state=0
        )
        flat = lambda windows: windows.reshape(len(windows), -1)
        known = self.data.train.labels[attribute][self.rows]
        forest.fit(flat(train[self.rows]), known)
        return float(forest.score(flat(test), self.data.test.labels[attribute]))

    def told(self, release):
        """Returns the accuracy of every inference on ``release(key, windows)``."""
        sides = zip(jax.random.split(jax.random.key(7)), self.data[1:], strict=True)
        sent = [release(key, side.windows) for key, side in sides]
        names = (*self.useful, self.sensitive)
        return {name: self.read(*sent, name) for name in names}

    def kept(self, kind, of, make):
        """Returns a saved row, or computes and saves it; None after the end."""
        words = f"{self.dataset} {self.name} {kind} {of}"
        name = "".join(x if x.isalnum() else "_" for x in words)
        path = self.folder / f"{name}.json"
        if not path.exists():
            if time.monotonic() > self.end:
                return None
            row = {"kind": kind, "dataset": self.dataset, "case": self.name, "of": of}
            row |= {"useful": self.useful, "sensitive": self.sensitive, **make()}
            results.keep(path, row | timing.about())
            print(tables.line(row), flush=True)
        return json.loads(path.read_text())

    def features(self):
        """Yields rows of useful accuracy without noise, by number of features."""
        rows = []
        for extractor in EXTRACTORS[: 1 if self.smoke else None]:
            for count in COUNTS[1:2] if self.smoke else COUNTS:
                make = lambda e=extractor, k=count: self.extracted(e, k)
                rows.append(self.kept("features", f"{extractor}, {count}", make))
        if self.useful == ("subject",):  # Others have fewer classes than features.
            for name in PROJECTIONS:
                make = lambda n=name: self.discriminating(n, COUNTS[1])
                rows.append(self.kept("features", f"{name}, {COUNTS[1]}", make))
        return rows

    def discriminating(self, name, count):
        """Returns accuracies on features chosen by labels."""
        train, test = (side.windows for side in self.data[1:])
        labels = self.data.train.labels[self.useful[0]][self.rows]
        see = supervised(name, count, train[self.rows], labels)
        seen = see(train[self.rows])
        share = metrics.informativeness(jax.random.key(0), seen, labels)
        names = (*self.useful, self.sensitive)
        return {
            "extractor": name,
            "count": count,
            "told": {each: self.read(see(train), see(test), each) for each in names},
            "informativeness": float(share.mean()),
        }

    def extracted(self, extractor, count):
        """Returns accuracies on windows rebuilt from ``count`` features."""
        found, informative = [], []
        hidden = (count,) if count >= 15 else (15, count)
        for seed in range(self.seeds if extractor == "autoencoder" else 1):
            run = self.train(seed, features=extractor, hidden_sizes=hidden)
            found.append(self.told(run.anonymize))
            seen = features(run, self.data.train.windows[self.rows])
            labels = self.data.train.labels[self.useful[0]][self.rows]
            share = metrics.informativeness(jax.random.key(0), seen, labels)
            informative.append(float(share.mean()))
        return {
            "extractor": extractor,
            "count": count,
            "told": over_seeds(np.mean, found),
            "std": over_seeds(np.std, found),
            "informativeness": float(np.mean(informative)),
        }

    def budgets(self):
        """Yields rows of accuracy over ε for every mechanism."""
        untouched = lambda: {"told": self.told(lambda key, windows: windows)}
        rows = [self.kept("raw", "raw windows", untouched)]
        few, more, raw = {}, {"hidden_sizes": (15,)}, {"features": "window"}
        plans = [(name, few, EPSILONS) for name in RELEASES]
        everything, span = WIDER
        plans += [(everything, more, WIDER_EPSILONS), (span, more, SPAN_EPSILONS)]
        plans += [(name, raw, RAW_EPSILONS) for name in RAW]
        for name, trained, epsilons in plans[: 1 if self.smoke else None]:
            for epsilon in epsilons[: 1 if self.smoke else None]:
                make = lambda n=name, t=trained, e=epsilon: self.released(n, t, e)
                rows.append(self.kept("budget", f"{name}, {epsilon:g}", make))
        return rows

    def released(self, name, trained, epsilon):
        """Returns accuracies and noise of releases at one ε.

        Noise is the mean L1 distance between released windows with and without noise,
        relative to the public range.
        """
        if str(trained) not in self.trained:
            self.trained[str(trained)] = self.train(**trained)
        run = self.trained[str(trained)]
        send = noisy(run, name, epsilon)
        windows, config = self.data.test.windows, run.method.config
        exact = run.anonymize(jax.random.key(0), windows)
        width = np.float32(config.high) - np.float32(config.low)
        noise = np.abs(send(jax.random.key(1), windows) - exact) / width
        return {
            "release": name,
            "epsilon": epsilon,
            "told": self.told(send),
            "noise": float(noise.sum(axis=(1, 2)).mean()),
        }


def noisy(run, name, epsilon):
    """Returns the release of this name: ``(key, windows) -> windows``."""
    config = dataclasses.asdict(run.method.config) | {"mode": "everything"}
    config |= (RELEASES | WIDER | RAW)[name] | {"epsilon": epsilon}
    method = methods.deeprotect(run.spec, **config)
    return dataclasses.replace(run, method=method).anonymize


def features(run, windows):
    """Returns features of windows without noise."""
    spec, config = run.spec, run.method.config
    standard = (windows - np.float32(spec.mean)) / np.float32(spec.std)
    names = sorted(name for name in run.state.params if name.startswith("layer"))
    layers = [run.state.params[name] for name in names]
    return np.asarray(
        deeprotect.encode(layers, in_range(spec, config, standard), "linear")
    )


def over_seeds(fold, found):
    """Folds dicts of numbers name by name."""
    return {name: float(fold([one[name] for one in found])) for name in found[0]}


def supervised(name, count, windows, labels):
    """Returns ``windows -> features``, linear features learned with labels.

    DEEProtect's own features do not use labels.

    Args:
      name: one of ``PROJECTIONS``.
      count: number of features, smaller than the number of classes.
      windows: ``float[N, time, channels]`` training windows.
      labels: ``int[N]``, classes of the useful inference.
    """
    flat = lambda windows: windows.reshape(len(windows), -1)
    learned = PROJECTIONS[name](count).fit(flat(windows), labels)
    return lambda windows: learned.transform(flat(windows))


PROJECTIONS = {
    "linear discriminants": lambda count: LinearDiscriminantAnalysis(
        n_components=count
    ),
    "neighbourhood components": lambda count: NeighborhoodComponentsAnalysis(
        count, random_state=0
    ),
}
