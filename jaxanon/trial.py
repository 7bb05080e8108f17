"""One anonymizer on trial: the pieces that an evaluation is put together from."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxanon import attacks, metrics
from jaxanon.datasets import Data, Windows
from jaxanon.datasets.own_split import share_samples
from jaxanon.trial_checks import check_safe

# What the seed's key is folded with, one number per purpose.
TEST, JUDGES, INFORMATION, REIDENTIFY = 0, 1, 2, 3
ROOT = 0x6576616C  # "eval"; large, for split and small numbers give training's keys.


class Trial(NamedTuple):
    """What every piece needs to know."""

    key: jax.Array
    data: Data
    anonymize: Callable  # (key, windows) -> float[N, time, channels], standardised
    safe: np.ndarray  # float[M, time, channels], anonymized test windows, standardised
    attackers: tuple[str, ...]
    share: float
    tell: Callable  # (what) before each piece of work


def root(seed: int):
    """The key of an evaluation, unlike all that training with the same seed draws."""
    return jax.random.fold_in(jax.random.key(seed), ROOT)


def standardise(spec, windows):
    """Physical units to zero mean and unit deviation of the training rows."""
    return (windows - np.float32(spec.mean)) / np.float32(spec.std)


def strangers(data: Data) -> bool:
    """Whether any test subject does not occur in training."""
    return not np.isin(data.test.labels["subject"], data.train.labels["subject"]).all()


def overlap(part: Windows) -> Callable:
    """``(earlier, later) -> bool``: whether two windows of it share samples."""
    return lambda earlier, later: share_samples(
        part.windows[earlier], part.windows[later]
    )


def linkable(data: Data) -> bool:
    """Whether there are two test subjects to tell apart by the protocol."""
    subjects = np.asarray(data.test.labels["subject"])
    if strangers(data):
        activities = data.test.labels[data.spec.public]
        halves = attacks.halves(subjects, activities, overlap=overlap(data.test))
        subjects = subjects[halves[0]]
    return len(np.unique(subjects)) > 1


def judged(data: Data) -> tuple[str, ...]:
    """Attributes that a classifier of raw training windows can be asked about.

    The subject is one of them where all test subjects occur in training.
    """
    spec = data.spec
    names = [name for name in (spec.public, *spec.private) if name != "subject"]
    known = linkable(data) and not strangers(data)
    return (*names, "subject") if known else tuple(names)


def train_judges(key, data: Data, tell) -> attacks.Judges:
    """Classifiers of raw windows for all that is ``judged``."""
    spec, train, test = data
    return attacks.train_judges(
        jax.random.fold_in(key, JUDGES),
        standardise(spec, train.windows),
        train.labels,
        {name: spec.num_classes(name) for name in judged(data)},
        standardise(spec, test.windows),
        progress=tell,
    )


def make_safe(run, spec):
    """``run.anonymize`` with its output checked and standardised."""

    def anonymize(key, windows):
        safe = np.asarray(run.anonymize(key, windows))
        check_safe(safe, windows)
        return standardise(spec, safe)

    return anonymize


def _score(trial: Trial, attribute, guesses, rows=slice(None)):
    truth = trial.data.test.labels[attribute][rows]
    return metrics.scores(truth, guesses, trial.data.spec.classes[attribute])


def judge(trial: Trial, judges: attacks.Judges) -> dict:
    """``raw`` and ``anonymized`` scores by attribute, of classifiers of raw windows."""
    return {
        attribute: {
            "raw": _score(trial, attribute, judges.raw[attribute]),
            "anonymized": _score(
                trial, attribute, judges.predict[attribute](trial.safe)
            ),
        }
        for attribute in judged(trial.data)
    }


def reidentify(trial: Trial, attribute: str) -> dict:
    """Scores by attacker, each retrained on the anonymizer's output."""
    spec, train, _ = trial.data
    key = jax.random.fold_in(
        trial.key, REIDENTIFY + sorted(spec.classes).index(attribute)
    )
    by_name = {}
    for name in trial.attackers:
        trial.tell(f"{name} learns {attribute} from anonymized windows")
        guesses = attacks.reidentify(
            jax.random.fold_in(key, sorted(attacks.ATTACKERS).index(name)),
            name,
            trial.anonymize,
            train.windows,
            train.labels[attribute],
            spec.num_classes(attribute),
            trial.safe,
            share=trial.share,
            attribute=attribute,
        )
        by_name[name] = _score(trial, attribute, guesses)
    return by_name


def link_strangers(trial: Trial, windows, attackers) -> dict:
    """Scores by attacker, each trained on the first half of the test windows."""
    spec, _, test = trial.data
    key = jax.random.fold_in(
        trial.key, REIDENTIFY + sorted(spec.classes).index("subject")
    )
    by_name = {}
    for name in attackers:
        trial.tell(f"{name} learns subject from early test windows")
        linked = attacks.link_strangers(
            jax.random.fold_in(key, sorted(attacks.ATTACKERS).index(name)),
            name,
            windows,
            test.labels["subject"],
            test.labels[spec.public],
            spec.num_classes("subject"),
            overlap=overlap(test),
        )
        by_name[name] = _score(trial, "subject", linked.guesses, linked.rows)
    return by_name


def worst(by_name: dict) -> str:
    """The attacker of the highest balanced accuracy; the first of equals."""
    return max(by_name, key=lambda name: by_name[name]["balanced_accuracy"])


def information(trial: Trial) -> dict:
    """Mutual information in nats, ``raw`` and ``anonymized``, by attribute."""
    trial.tell("estimating mutual information")
    spec, _, test = trial.data
    raw = standardise(spec, test.windows)
    key = jax.random.fold_in(trial.key, INFORMATION)
    told = {}
    names = dict.fromkeys((spec.public, *spec.private, "subject"))
    for index, attribute in enumerate(names):
        # The same subset before and after, so that only the windows differ.
        told[attribute] = {
            name: metrics.mutual_information(
                jax.random.fold_in(key, index), windows, test.labels[attribute]
            )
            for name, windows in (("raw", raw), ("anonymized", trial.safe))
        }
    return told
