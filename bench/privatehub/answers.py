"""Answers of PrivateHub's benchmark, one function per question."""

import time

import numpy as np

from harness import releases
from harness.data import Untouched
from harness.results import plain
from jaxanon import methods
from privatehub import jobs as work
from privatehub import quality, runs

PUBLIC = runs.PUBLIC


class Asked:
    """A job at a place with its data; its run is trained at the first access."""

    def __init__(self, place, job, seed, smoke, trained):
        self.place, self.job, self.seed, self.smoke = place, job, seed, smoke
        self.hidden = place.choices[job.choice]
        self.names = place.data.spec.classes[PUBLIC]
        self.labels = place.data.test.labels[PUBLIC]
        self.folder = trained

    def run(self):
        """Returns ``(run, training)``, shared by all questions.

        All choices share the pre-training of PrivateHub and TimeGAN.
        """
        before = None
        if work.METHODS[self.job.method] in work.FINE_TUNED:
            before, _ = self.trained("pre-training", ())
        return self.trained(self.job.choice, self.hidden, before)

    def trained(self, choice, hidden, before=None):
        """Returns ``(run, training)`` for classes to hide, continuing ``before``."""
        digest = work.digest(self.job.method, self.place, hidden, self.smoke)
        parts = self.place.name, choice, self.job.method, str(self.seed), digest
        at = self.folder / "-".join(map(plain, parts))
        given = self.place, hidden, self.job.method, self.seed, self.smoke
        return runs.trained(at, *given, before)

    def said(self, windows):
        """Returns the raw-data classifier's logits for windows."""
        return runs.evidence(self.place, self.seed, self.smoke, windows)

    def concealed(self, windows):
        """Returns accuracies for the classes to show and to hide."""
        said = self.said(windows)
        return runs.concealment(said, self.labels, self.names, self.hidden)


def concealing(own: Asked) -> dict:
    """RQ1: rewritten test windows, for raw-data classifiers and retrained attackers."""
    run, told = own.run()
    if way := work.WAYS.get(own.job.name):
        run, told = releases.by(run, way), told | {"way": way}
    made = runs.rewritten(run, own.place, own.seed)
    found = told | own.concealed(made)
    names = ("forest",) if own.smoke else runs.ATTACKERS
    given = run, own.place, own.hidden, made, own.seed
    found["retrained"] = runs.retrained(*given, names)
    found["streams"] = _streams(own, made, own.place.data.test)
    return found


def switched(own: Asked) -> dict:
    """Generates windows of the test windows' classes and of other shown classes."""
    run, told = own.run()
    secret = [own.names.index(name) for name in own.hidden]
    shown = [k for k in range(len(own.names)) if k not in secret]
    side = runs.few(own.place.data.test)
    real = side.labels[PUBLIC]
    ask = lambda classes: runs.asked(run, own.place, classes, own.seed)
    guess = lambda windows: own.said(windows).argmax(1)
    made, other = ask(real), runs.another(real, shown, own.seed)
    same, other_made = guess(made), ask(other)
    turned, open_ = guess(other_made), ~np.isin(real, secret)
    raw = own.said(side.windows).argmax(axis=1)
    share = lambda x: float(np.mean(x)) if len(x) else None
    return told | {
        "streams": _streams(own, made, side),
        "asked_shown": share((same == real)[open_]),
        "asked_hidden": share((same == real)[~open_]),
        "other_told": share(turned == other),
        "real_told": share(turned == real),
        "raw_shown": share((raw == real)[open_]),
    }


def forecasting(own: Asked) -> dict:
    """RQ3: measures how rewriting changes forecasts of the sensors' quantities."""
    run, told = own.run()
    place, known = own.place, runs.few(own.place.data.train)
    way = work.way_of("forecasts", own.job.name)
    if way is not None:
        run, told = releases.by(run, way), told | {"way": way}
    made = runs.rewritten(run, place, own.seed)
    if way is not None:
        told |= own.concealed(made)
    taught = runs.rewritten(run, place, own.seed, known)
    return told | quality.forecasts(place, known, made, taught, own.seed, own.smoke)


def missing(own: Asked) -> dict:
    """RQ4: removes the labels of two classes' training windows.

    Windows are fully regenerated, since a partly kept window reveals its class.
    """
    whole, _ = own.run()
    place, pair, start = own.place, own.job.x, time.monotonic()
    data = runs.without_labels(place, pair)
    given, epochs = work.settings("privatehub", place, own.hidden, own.smoke)
    built = methods.build("privatehub", data.spec, **given)
    blind = runs.fit(built, data, epochs, own.seed)
    rows = np.isin(own.labels, [own.names.index(name) for name in pair])

    def right(run):
        guess = own.said(runs.rewritten(run, place, own.seed)).argmax(axis=1)
        return float(np.mean((guess == own.labels)[rows]))

    whole, anew = (releases.by(each, work.WAYS[work.ANEW]) for each in (whole, blind))
    return runs.told(blind, own.hidden, start) | {
        "way": work.WAYS[work.ANEW],
        "without": right(anew),
        "with": right(whole),
        "raw": right(Untouched()),
        **own.concealed(runs.rewritten(anew, place, own.seed)),
    }


def new_home(own: Asked) -> dict:
    """Trains a place with few steps, with or without others' windows before that."""
    place, seed, start = own.place, own.seed, time.monotonic()
    spec, before = place.data.spec, None
    if own.job.name == work.BEFORE:
        count = len(place.others.train.windows)
        given, epochs = work.settings("privatehub", place, (), own.smoke, windows=count)
        first = methods.build("privatehub", spec, **given)
        before = runs.fit(first, place.others, epochs, seed)
    more = {"share": work.LATER}
    given, epochs = work.settings("privatehub", place, own.hidden, own.smoke, **more)
    built = methods.build("privatehub", spec, **given)
    if before is not None:
        built = runs.beginning_with(built, before.state.params)
    run = runs.fit(built, place.data, epochs, seed)
    made = runs.rewritten(run, place, seed)
    found = runs.told(run, own.hidden, start) | own.concealed(made)
    return found | {
        "others_windows": 0 if before is None else count,
        "others_rounds": 0 if before is None else int(before.state.round),
    }


def synthesis(own: Asked) -> dict:
    """Measures the realism of generated windows; for raw data, of training windows."""
    run, told = own.run()
    place, known = own.place, runs.few(own.place.data.train)
    if own.job.method == work.RAW:
        made = known.windows
    else:
        made = runs.asked(run, place, known.labels[PUBLIC], own.seed)
    net = runs.train_classifier(place, own.seed, own.smoke)
    side = known._replace(windows=made)
    return told | quality.likeness(place, known, side, net, own.seed, own.smoke)


def sampling(own: Asked) -> dict:
    """Measures accuracy and windows per second for fewer steps."""
    run, told = own.run()
    way = work.way_of("steps", own.job.name) or {}
    run = runs.with_steps(run, own.job.x, **way)
    found = (
        told
        | ({"way": way} if way else {})
        | own.concealed(runs.rewritten(run, own.place, own.seed))
    )
    labels = runs.few(own.place.data.test).labels[PUBLIC]
    guess = own.said(runs.asked(run, own.place, labels, own.seed)).argmax(axis=1)
    secret = [own.names.index(name) for name in own.hidden]
    open_ = ~np.isin(labels, secret)
    # As many windows as one call takes, to avoid padding; the first call compiles.
    many = np.resize(labels, 64 if own.smoke else 1024)
    runs.asked(run, own.place, many, own.seed)
    start = time.perf_counter()
    runs.asked(run, own.place, many, own.seed)
    rate = len(many) / (time.perf_counter() - start)
    right = float(np.mean((guess == labels)[open_]))
    return found | {"asked_shown": right, "windows_per_s": rate}


def _streams(own, made, side):
    """Returns a test window of some classes with its generated counterpart.

    Keeps the three channels with the largest variance within the drawn windows.

    Args:
      own: ``Asked``.
      made: generated windows in the order of ``side``.
      side: test ``Windows``.
    """
    labels = side.labels[PUBLIC]
    classes = np.unique(labels)[:4]
    rows = [int(np.flatnonzero(labels == label)[0]) for label in classes]
    spread = np.std(side.windows[rows], axis=1).mean(axis=0)
    spread = spread / np.array(own.place.data.spec.std)
    most = np.sort(np.argsort(-spread, kind="stable")[:3])
    found = []
    for label, row in zip(classes, rows, strict=True):
        raw, safe = (
            np.round(windows[row][:, most].astype(float), 4).tolist()
            for windows in (side.windows, made)
        )
        name = own.names[label]
        found.append(
            {"class": name, "hidden": name in own.hidden, "raw": raw, "made": safe}
        )
    channels = [own.place.data.spec.channels[at] for at in most]
    return {"channels": channels, "windows": found}


ANSWERS = {
    "methods": concealing,
    "switched": switched,
    "forecasts": forecasting,
    "missing": missing,
    "new_home": new_home,
    "quality": synthesis,
    "steps": sampling,
}
