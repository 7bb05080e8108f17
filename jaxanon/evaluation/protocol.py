"""Anonymizers on trial: the pieces that an evaluation is put together from."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import attacks, metrics
from jaxanon.datasets.custom_split import share_samples
from jaxanon.datasets.spec import Data, Windows, standardise
from jaxanon.evaluation.checks import check_safe

# What the seed's key is folded with, one number per purpose.
TEST, JUDGES, INFORMATION, REIDENTIFY = 0, 1, 2, 3

ROOT = 0x6576616C  # "eval"; large, for split and small numbers give training's keys.


class Evaluation(NamedTuple):
    """One anonymizer, and what every piece needs to know."""

    seed: int
    key: jax.Array  # of the seed
    run: Any
    data: Data
    anonymize: Callable  # (key, windows) -> float[N, time, channels], standardised
    safe: np.ndarray  # float[M, time, channels], anonymized test windows, standardised
    attackers: tuple[str, ...]
    share: float
    tell: Callable  # (what) before each piece of work


def root(seed: int):
    """The key of an evaluation, unlike all that training with the same seed draws."""
    return jax.random.fold_in(jax.random.key(seed), ROOT)


def prepare_evaluation(
    run, seed: int, data: Data, attackers, share: float, tell
) -> Evaluation:
    """Anonymizes the test windows by ``run``, and puts it on trial."""
    key = root(seed)
    tell("anonymizing the test windows")
    anonymize = make_safe(run, data.spec)
    safe = anonymize(jax.random.fold_in(key, TEST), data.test.windows)
    return Evaluation(
        seed, key, run, data, anonymize, safe, tuple(attackers), share, tell
    )


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


def attacked(data: Data) -> tuple[str, ...]:
    """Attributes that an attacker retrains for: private ones, and a known subject."""
    return tuple(name for name in judged(data) if name != data.spec.public)


def train_raw_classifiers(
    key, data: Data, tell, attacker: str = "mlp"
) -> attacks.RawClassifiers:
    """Classifiers of raw windows for all that is ``judged``."""
    spec, train, test = data
    return attacks.train_raw_classifiers(
        jax.random.fold_in(key, JUDGES),
        standardise(spec, train.windows),
        train.labels,
        {name: spec.num_classes(name) for name in judged(data)},
        standardise(spec, test.windows),
        attacker=attacker,
        progress=tell,
    )


def make_safe(run, spec):
    """``run.anonymize`` with its output checked and standardised."""

    def anonymize(key, windows):
        safe = np.asarray(run.anonymize(key, windows))
        check_safe(safe, windows)
        return standardise(spec, safe)

    return anonymize


def score(data: Data, attribute: str, evidence, rows=slice(None)) -> dict:
    """``metrics.scores`` of the evidence on some of the test windows."""
    truth = np.asarray(data.test.labels[attribute])[rows]
    classes = data.spec.classes[attribute]
    return metrics.scores(truth, evidence.argmax(1), classes, evidence=evidence)


def judge(trial: Evaluation, judges: attacks.RawClassifiers) -> dict:
    """``raw`` and ``anonymized`` scores by attribute, of classifiers of raw windows."""
    return {
        attribute: {
            "raw": score(trial.data, attribute, judges.raw[attribute]),
            "anonymized": score(
                trial.data, attribute, judges.infer[attribute](trial.safe)
            ),
        }
        for attribute in judged(trial.data)
    }


def folded(trials: Sequence[Evaluation], numbers: Sequence[int], *more: int):
    """Keys of every trial for every number, ``[trials * numbers]``.

    Args:
      trials: each with a key of its own.
      numbers: to fold in, one key for each.
      *more: to fold into all of them.
    """
    data = jnp.stack([jax.random.key_data(trial.key) for trial in trials])
    keys = jax.random.wrap_key_data(data, impl=jax.random.key_impl(trials[0].key))
    fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
    keys = jax.vmap(fold, in_axes=(0, None))(keys, jnp.asarray(numbers)).reshape(-1)
    for number in more:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, number)
    return keys


def purposes(data: Data, attributes: Sequence[str]) -> list[int]:
    """What keys of attackers of these attributes are folded with."""
    order = sorted(data.spec.classes)
    return [REIDENTIFY + order.index(attribute) for attribute in attributes]


def targets(trials: Sequence[Evaluation], attributes: Sequence[str]) -> list:
    """Every attribute of every trial, as ``attacks.Target``."""
    return [
        attacks.Target(
            trial.anonymize,
            trial.data.train.windows,
            trial.data.train.labels[attribute],
            trial.data.spec.num_classes(attribute),
            trial.safe,
            attribute,
        )
        for trial in trials
        for attribute in attributes
    ]


# An attack's place draws its keys, so a new one comes last.
NAMES = ("intrusive", "released", "per_class", "stream", "pairs", "self-training",
         "inversion", "fingerprint", "membership")  # fmt: skip

FIRST = 1000  # Above what other keys are folded with.


class EvaluationContext(NamedTuple):
    """What the evaluation already knows when further attacks begin."""

    trials: Sequence[Evaluation]
    evidence: list[dict]  # of ``attackers.reidentify``
    judges: attacks.RawClassifiers


def row(attribute, attacker, variant, scores=None, **figures) -> dict:
    """One line of a report: ``scores`` of ``metrics.scores``, or other ``figures``."""
    return {
        "attribute": attribute,
        "attacker": attacker,
        "variant": variant,
        "scores": scores,
        "figures": figures,
    }


def keys(case: EvaluationContext, attack: str, attributes, *more: int):
    """Keys of an attack, one per trial and attribute."""
    numbers = purposes(case.trials[0].data, attributes)
    return folded(case.trials, numbers, FIRST + NAMES.index(attack), *more)


def empty(
    case: EvaluationContext,
) -> tuple[list[list[dict]], list[tuple[list[dict], str]]]:
    """No rows for each trial, and with each attribute those that it will add to."""
    rows: list[list[dict]] = [[] for _ in case.trials]
    names = attacked(case.trials[0].data)
    return rows, [(own, name) for own in rows for name in names]
