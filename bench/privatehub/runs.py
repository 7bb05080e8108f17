"""Training of generators at a place and evaluation of their windows."""

import dataclasses
import time

import jax
import numpy as np
from scipy.special import logsumexp

import jaxanon as ja
from harness import releases
from harness.data import Untouched
from jaxanon import methods, metrics
from jaxanon.attacks import attackers
from jaxanon.datasets.spec import Data, take
from jaxanon.models.fit import FittedClassifier, fit_classifier, predict_logits
from privatehub import jobs as work

KEYS = {
    "classifier": 1,
    "rewrite": 2,
    "train side": 3,
    "ask": 4,
    "attack": 5,
    "measure": 6,
}
MOST = 1500  # Maximum number of windows to generate, attack with or compare.
ATTACKERS = ("mlp", "forest")  # Trained on anonymized windows.
PUBLIC = "activity"


def key_of(seed, what):
    """Returns a key for one purpose of a seed."""
    return jax.random.fold_in(jax.random.key(seed), KEYS[what])


def trained(folder, place, hidden, method, seed, smoke, before=None):
    """Trains a run or loads it; returns it and a description of its training.

    It continues a run ``before`` that hides nothing, with new optimizer states, as if
    both were one run.
    """
    start, earlier = time.monotonic(), 0.0
    name = work.METHODS[method]
    if not name:
        return Untouched(), {"hidden": list(hidden), "training_s": 0.0}
    given, epochs = work.settings(name, place, hidden, smoke)
    built = methods.build(name, place.data.spec, **given)
    if before is not None:
        built = beginning_with(built, before.state.params, before.state.round)
        earlier = sum(row["seconds"] for row in before.history)
    run = fit(built, place.data, epochs, seed, folder)
    found = told(run, hidden, start)
    return run, found | {"training_s": earlier + found["training_s"]}


def beginning_with(method, params, round_=0):
    """Returns a method that starts from given parameters at a given round."""

    def init(key, **hyper):
        state = method.init(key, **hyper)
        return state._replace(params=params, round=state.round + round_)

    return method._replace(init=init)


def fit(method, data, epochs, seed, folder=None):
    """Trains a run; saves it in ``folder`` if one is given."""
    more = {} if folder is None else {"output_dir": folder, "resume": True}
    return ja.train(method, data, epochs=epochs, seed=seed, progress=False, **more)


def told(run, hidden, start) -> dict:
    """Returns the training budget; times are per round because a run may resume."""
    rounds = sum(row["seconds"] for row in run.history)
    return {
        "hidden": list(hidden),
        "settings": {k: v for k, v in run.config["settings"].items() if k != "hide"},
        "epochs": run.config["epochs"],
        "rounds": int(run.state.round),
        "training_s": rounds,
        "waited_s": time.monotonic() - start,
    }


def standard(place, windows):
    """Standardizes windows for the raw-data classifiers."""
    spec = place.data.spec
    return ((windows - np.float32(spec.mean)) / np.float32(spec.std)).astype(np.float32)


_JUDGES: dict[tuple, FittedClassifier] = {}


def train_classifier(place, seed, smoke) -> FittedClassifier:
    """Trains a dense classifier on raw windows, unlike any generator; cached."""
    train = place.data.train
    at = place.name, len(train.windows), seed, smoke
    if at not in _JUDGES:
        _JUDGES[at] = fit_classifier(
            key_of(seed, "classifier"),
            standard(place, train.windows),
            train.labels[PUBLIC],
            place.data.spec.num_classes(PUBLIC),
            **({"steps": 20, "hidden": (16,)} if smoke else {"steps": 1000}),
        )
    return _JUDGES[at]


def evidence(place, seed, smoke, windows):
    """Returns ``float32[N, classes]`` logits for windows in physical units."""
    return predict_logits(
        train_classifier(place, seed, smoke), standard(place, windows)
    )


def few(side, most=MOST):
    """Returns about ``most`` evenly spaced windows in order."""
    return take(side, np.arange(0, len(side.windows), -(-len(side.windows) // most)))


def rewritten(run, place, seed, side=None):
    """Rewrites test windows, or those of ``side``, with a run."""
    windows = (place.data.test if side is None else side).windows
    what = "rewrite" if side is None else "train side"
    return run.anonymize(key_of(seed, what), windows)


def concealment(said, labels, names, hidden) -> dict:
    """Returns accuracies for the shown classes and for each class to hide.

    Args:
      said: ``float[N, classes]`` logits for anonymized windows.
      labels: ``int[N]`` labels of the raw windows.
      names: names of the classes.
      hidden: classes to hide.

    Returns:
      ``shown``: accuracy on windows of shown classes, with its chance and majority
      levels; ``private``: for each class to hide against all others, accuracy with its
      majority level, ``recall`` (our reading of the chapter's accuracy), balanced
      accuracy and AUC; ``worst``: the largest balanced accuracy, or one minus it if
      that is larger.
    """
    secret = [names.index(name) for name in hidden]
    open_ = ~np.isin(labels, secret)
    guess = said.argmax(axis=1)
    counts = np.bincount(labels[open_], minlength=len(names))
    found = {
        "shown": float(np.mean(guess[open_] == labels[open_])),
        "shown_chance": 1 / len(names),
        "shown_majority": float(counts.max() / counts.sum()),
        "windows": len(labels),
        "private": {
            name: against(said, labels == k, guess == k, [k])
            for name, k in zip(hidden, secret, strict=True)
        },
    }
    each = [one["balanced"] for one in found["private"].values()]
    # An attacker that is wrong more often than chance can invert its prediction.
    return found | {"worst": max(max(one, 1 - one) for one in each)}


def against(said, truth, guess, columns) -> dict:
    """Returns measures of one class, or several, against all others."""
    matrix = metrics.confusion_matrix(truth.astype(int), guess.astype(int), 2)
    rest = [k for k in range(said.shape[1]) if k not in columns]
    for_, other = (logsumexp(said[:, own], axis=1) for own in (columns, rest))
    both = np.stack([other - for_, for_ - other], axis=1)
    return {
        "accuracy": metrics.accuracy(matrix),
        "majority": metrics.majority(matrix),
        "recall": float(np.mean(guess[truth])),
        "balanced": metrics.balanced_accuracy(matrix),
        "auc": float(metrics.auc(truth.astype(int), both)[1]),
        "count": int(truth.sum()),
    }


def retrained(run, place, hidden, made, seed, names=ATTACKERS) -> dict:
    """Returns balanced accuracies of attackers trained on anonymized windows."""
    classes = place.data.spec.classes[PUBLIC]
    secret = [classes.index(name) for name in hidden]
    known = few(place.data.train)
    own = standard(place, rewritten(run, place, seed, known))
    truth = lambda side: np.isin(side.labels[PUBLIC], secret).astype(np.int32)
    found = {}
    for name in names:
        key = jax.random.fold_in(key_of(seed, "attack"), attackers.number(name))
        read = attackers.get(name).fit(key, own, truth(known), 2)
        guess = read(standard(place, made)).argmax(axis=1)
        matrix = metrics.confusion_matrix(truth(place.data.test), guess, 2)
        found[name] = metrics.balanced_accuracy(matrix)
    return found


def asked(run, place, classes, seed):
    """Generates windows of the given public classes."""
    labels = np.asarray(classes, np.int32)
    return run.sample(key_of(seed, "ask"), {PUBLIC: labels})


def another(labels, shown, seed):
    """Draws for each label another shown class, uniformly."""
    generator = np.random.default_rng(seed)
    found = np.empty_like(labels)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        found[rows] = generator.choice([k for k in shown if k != label], len(rows))
    return found


def with_steps(run, steps, **way):
    """Returns the run with ``steps`` sampling steps that start from pure noise.

    With less noise, sampling would use only a few of the steps.
    """
    return releases.by(run, {"num_inference_steps": steps, "strength": 1.0} | way)


def without_labels(place, pair):
    """Merges the labels of two classes into a last class "unlabelled"."""
    spec = place.data.spec
    kept = [name for name in spec.classes[PUBLIC] if name not in pair]
    to = np.array(
        [kept.index(n) if n in kept else len(kept) for n in spec.classes[PUBLIC]],
        np.int32,
    )
    classes = spec.classes | {PUBLIC: (*kept, "unlabelled")}
    renamed = lambda side: side._replace(
        labels=side.labels | {PUBLIC: to[side.labels[PUBLIC]]}
    )
    spec = dataclasses.replace(spec, classes=classes)
    return Data(spec, renamed(place.data.train), renamed(place.data.test))
