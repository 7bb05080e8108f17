"""Building blocks of an evaluation."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import attacks, metrics
from jaxanon.datasets.custom_split import share_samples
from jaxanon.datasets.spec import Data, Windows, standardise
from jaxanon.evaluation import intervals
from jaxanon.evaluation.checks import check_safe

# Numbers that the evaluation's key is folded with, one per purpose.
TEST, RAW_CLASSIFIERS, INFORMATION, REIDENTIFY = 0, 1, 2, 3

ROOT = 0x6576616C  # "eval"; training folds in small numbers only.


class Evaluation(NamedTuple):
    """Inputs of one anonymizer's evaluation."""

    seed: int
    key: jax.Array
    run: Any
    data: Data
    anonymize: Callable  # (key, windows) -> float[N, time, channels], standardised
    safe: np.ndarray  # float[M, time, channels], anonymized test windows, standardised
    attackers: tuple[str, ...]
    share: float
    step: Callable  # (what), called before each step


def root(seed: int):
    """Returns an evaluation's key, distinct from all training keys of that seed."""
    return jax.random.fold_in(jax.random.key(seed), ROOT)


def prepare_evaluation(
    run, seed: int, data: Data, attackers, share: float, step
) -> Evaluation:
    """Anonymizes the test windows with ``run``."""
    key = root(seed)
    step("anonymizing the test windows")
    anonymize = make_safe(run, data.spec)
    safe = anonymize(jax.random.fold_in(key, TEST), data.test.windows)
    return Evaluation(
        seed, key, run, data, anonymize, safe, tuple(attackers), share, step
    )


def has_unseen_subjects(data: Data) -> bool:
    """Returns whether any test subject does not occur in training."""
    return not np.isin(data.test.labels["subject"], data.train.labels["subject"]).all()


def overlap(part: Windows) -> Callable:
    """Returns ``(earlier, later) -> bool``: whether two windows share samples."""
    return lambda earlier, later: share_samples(
        part.windows[earlier], part.windows[later]
    )


def linkable(data: Data) -> bool:
    """Returns whether the linkage protocol has at least two test subjects."""
    subjects = np.asarray(data.test.labels["subject"])
    if has_unseen_subjects(data):
        activities = data.test.labels[data.spec.public]
        halves = attacks.halves(subjects, activities, overlap=overlap(data.test))
        subjects = subjects[halves[0]]
    return len(np.unique(subjects)) > 1


def evaluated_attributes(data: Data) -> tuple[str, ...]:
    """Returns the attributes of raw-data classifiers.

    The subject is one of them if all test subjects occur in training.
    """
    spec = data.spec
    names = [name for name in (spec.public, *spec.private) if name != "subject"]
    known = linkable(data) and not has_unseen_subjects(data)
    return (*names, "subject") if known else tuple(names)


def attacked(data: Data) -> tuple[str, ...]:
    """Returns the attributes of retrained attackers: all but the public one."""
    return tuple(
        name for name in evaluated_attributes(data) if name != data.spec.public
    )


def train_raw_classifiers(
    key, data: Data, step, attacker: str = "mlp"
) -> attacks.RawClassifiers:
    """Trains raw-data classifiers for the attributes of ``evaluated_attributes``."""
    spec, train, test = data
    return attacks.train_raw_classifiers(
        jax.random.fold_in(key, RAW_CLASSIFIERS),
        standardise(spec, train.windows),
        train.labels,
        {name: spec.num_classes(name) for name in evaluated_attributes(data)},
        standardise(spec, test.windows),
        attacker=attacker,
        progress=step,
    )


def make_safe(run, spec):
    """Returns ``run.anonymize`` with checked and standardised output."""

    def anonymize(key, windows):
        safe = np.asarray(run.anonymize(key, windows))
        check_safe(safe, windows)
        return standardise(spec, safe)

    return anonymize


def score(
    data: Data, attribute: str, evidence, rows=slice(None), *, trained=True
) -> dict:
    """Scores evidence on test windows, with confidence intervals over persons.

    Args:
      data: data set of the test windows.
      attribute: attribute to score.
      evidence: ``float[n, classes]``.
      rows: indices of the n test windows.
      trained: whether the classifier was trained on ``data.train``.

    Returns:
      ``metrics.scores`` with ``interval``, that of ``intervals.over_persons`` or None,
      and ``not_measured``, the reason why the data cannot support the score or None.
      Few persons rule out only the interval of the public attribute.
    """
    truth = np.asarray(data.test.labels[attribute])[rows]
    persons = np.asarray(data.test.labels["subject"])[rows]
    classes = data.spec.classes[attribute]
    seen = np.unique(data.train.labels[attribute]) if trained else None
    identity = attribute == "subject"
    reason = intervals.unsupported(truth, persons, classes, seen, identity=identity)
    interval = None
    if reason is None:
        interval = intervals.over_persons(truth, evidence, persons)
    elif attribute == data.spec.public:
        reason = intervals.without_classes(truth, classes, seen)
    found = metrics.scores(truth, evidence.argmax(1), classes, evidence=evidence)
    return found | {"interval": interval, "not_measured": reason}


def score_classifiers(
    evaluation: Evaluation, raw_classifiers: attacks.RawClassifiers
) -> dict:
    """Returns raw and anonymized scores of raw-data classifiers, by attribute."""
    return {
        attribute: {
            "raw": score(evaluation.data, attribute, raw_classifiers.raw[attribute]),
            "anonymized": score(
                evaluation.data,
                attribute,
                raw_classifiers.infer[attribute](evaluation.safe),
            ),
        }
        for attribute in evaluated_attributes(evaluation.data)
    }


def folded(evaluations: Sequence[Evaluation], numbers: Sequence[int], *more: int):
    """Returns keys for every evaluation and number, ``[evaluations * numbers]``.

    Args:
      evaluations: evaluations, each with its key.
      numbers: numbers to fold in, one per key.
      *more: numbers to fold into every key.
    """
    data = jnp.stack([jax.random.key_data(one.key) for one in evaluations])
    impl = jax.random.key_impl(evaluations[0].key)
    keys = jax.random.wrap_key_data(data, impl=impl)
    fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
    keys = jax.vmap(fold, in_axes=(0, None))(keys, jnp.asarray(numbers)).reshape(-1)
    for number in more:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, number)
    return keys


def purposes(data: Data, attributes: Sequence[str]) -> list[int]:
    """Returns the numbers folded into the keys of attackers of ``attributes``."""
    order = sorted(data.spec.classes)
    return [REIDENTIFY + order.index(attribute) for attribute in attributes]


def targets(evaluations: Sequence[Evaluation], attributes: Sequence[str]) -> list:
    """Returns an ``attacks.Target`` for every evaluation and attribute."""
    return [
        attacks.Target(
            one.anonymize,
            one.data.train.windows,
            one.data.train.labels[attribute],
            one.data.spec.num_classes(attribute),
            one.safe,
            attribute,
        )
        for one in evaluations
        for attribute in attributes
    ]


# An attack's position derives its keys, so append new ones.
NAMES = ("intrusive", "released", "per_class", "stream", "pairs", "self-training",
         "inversion", "fingerprint", "membership")  # fmt: skip

FIRST = 1000  # Larger than the numbers of other keys.


class EvaluationContext(NamedTuple):
    """Inputs of further attacks."""

    evaluations: Sequence[Evaluation]
    evidence: list[dict]  # of ``attackers.reidentify``
    raw_classifiers: attacks.RawClassifiers


def row(attribute, attacker, variant, scores=None, *, reason=None, **figures) -> dict:
    """Returns one row of an attack: ``scores`` of ``score``, or other ``figures``.

    ``reason`` says why there are no scores.
    """
    return {
        "attribute": attribute,
        "attacker": attacker,
        "variant": variant,
        "scores": scores,
        "figures": figures,
        "reason": reason,
    }


def keys(context: EvaluationContext, attack: str, attributes, *more: int):
    """Returns keys of an attack, one per evaluation and attribute."""
    numbers = purposes(context.evaluations[0].data, attributes)
    return folded(context.evaluations, numbers, FIRST + NAMES.index(attack), *more)


def empty(
    context: EvaluationContext,
) -> tuple[list[list[dict]], list[tuple[list[dict], str]]]:
    """Returns an empty list of rows per evaluation, and each with every attribute."""
    rows: list[list[dict]] = [[] for _ in context.evaluations]
    names = attacked(context.evaluations[0].data)
    return rows, [(own, name) for own in rows for name in names]
