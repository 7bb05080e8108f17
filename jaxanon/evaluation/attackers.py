"""Attacks of an evaluation by name, and retrained attackers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxanon import attacks
from jaxanon.attacks import ATTACKERS
from jaxanon.attacks import attackers as known_attackers
from jaxanon.datasets.spec import standardise
from jaxanon.evaluation import leakage, protocol, streams
from jaxanon.evaluation.protocol import (
    NAMES,
    Evaluation,
    EvaluationContext,
    empty,
    folded,
    keys,
    overlap,
    purposes,
    row,
    score,
    targets,
)


def intrusive(context: EvaluationContext) -> list[list[dict]]:
    """Trains every attacker on all raw training windows."""
    rows, _ = empty(context)
    first = context.evaluations[0]
    for name in first.attackers:
        raw_classifiers = context.raw_classifiers
        if name != "mlp":  # The raw-data classifiers are MLPs.
            silent = lambda what: None
            raw_classifiers = protocol.train_raw_classifiers(
                first.key, first.data, silent, name
            )
        for by_run, one in zip(rows, context.evaluations, strict=True):
            for attribute, scores in protocol.score_classifiers(
                one, raw_classifiers
            ).items():
                for part in ("raw", "anonymized"):
                    by_run.append(row(attribute, name, f"{part} windows", scores[part]))
    return rows


def released(context: EvaluationContext) -> list[list[dict]]:
    """Measures training accuracy, as published programs report re-identification."""
    rows, slots = empty(context)
    first = context.evaluations[0]
    names = protocol.attacked(first.data)
    truths = [first.data.test.labels[attribute] for _, attribute in slots]
    for name in first.attackers:
        attack_keys = keys(context, "released", names, known_attackers.number(name))
        aims = protocol.targets(context.evaluations, names)
        outputs = attacks.reidentify_as_released(
            attack_keys, name, aims, truths, share=first.share
        )
        for (by_run, attribute), one in zip(slots, outputs, strict=True):
            scores = score(first.data, attribute, one.evidence, one.rows, trained=False)
            by_run.append(row(attribute, name, "training accuracy, own share", scores))
    return rows


def per_class(context: EvaluationContext) -> list[list[dict]]:
    """Trains one attacker for each class of the public attribute."""
    rows, slots = empty(context)
    first = context.evaluations[0]
    data, names = first.data, protocol.attacked(first.data)
    public = data.spec.public
    seen, tested = (np.asarray(part.labels[public]) for part in data[1:])
    for name in first.attackers:
        attack_keys = keys(context, "per_class", names, known_attackers.number(name))
        aims = protocol.targets(context.evaluations, names)
        outputs = attacks.reidentify_by_class(
            attack_keys, name, aims, seen, tested, share=first.share
        )
        for (by_run, attribute), evidence in zip(slots, outputs, strict=True):
            scores = score(data, attribute, evidence)
            by_run.append(row(attribute, name, f"one attacker per {public}", scores))
            for label in np.unique(tested):
                here = np.flatnonzero(tested == label)
                scores = score(data, attribute, evidence[here], here)
                variant = f"{public} {data.spec.classes[public][label]}"
                by_run.append(row(attribute, name, variant, scores))
    return rows


ATTACKS: dict[str, Callable] = {
    "intrusive": intrusive,
    "released": released,
    "per_class": per_class,
    "stream": streams.stream,
    "pairs": streams.pairs,
    "self-training": leakage.self_training,
    "inversion": leakage.inversion,
    "fingerprint": leakage.fingerprint,
    "membership": leakage.membership,
}

assert tuple(ATTACKS) == NAMES

DEFAULT = ("mlp", "forest")

DEFAULT_ATTACKS = ("stream",)


class Chosen(NamedTuple):
    """Attackers, and further attacks."""

    attackers: tuple[str, ...]
    attacks: tuple[str, ...]


def choose(names: Sequence[str] | None) -> Chosen:
    """Splits names into attackers and attacks.

    The attackers are ``mlp`` and ``forest`` if none is named; without any name the
    stream attack runs, too.

    Raises:
      ValueError: if ``names`` is empty or holds an unknown name.

    Example:
      >>> choose(["forest", "pairs"])
      Chosen(attackers=('forest',), attacks=('pairs',))
      >>> choose(None)
      Chosen(attackers=('mlp', 'forest'), attacks=('stream',))
      >>> choose(["released"]).attackers
      ('mlp', 'forest')
    """
    if names is None:
        return Chosen(DEFAULT, DEFAULT_ATTACKS)
    if isinstance(names, str) or not names:
        raise ValueError(
            f"attacks must be a tuple with at least one of {sorted(ATTACKERS)} or "
            f"{list(ATTACKS)}, got {names!r}; pass None for the default."
        )
    for name in names:
        if name not in ATTACKERS and name not in ATTACKS:
            raise ValueError(
                f"attacks must be among the attackers {sorted(ATTACKERS)} and the "
                f"attacks {list(ATTACKS)}, got {name!r}; correct the name."
            )
    known = dict.fromkeys(names)
    attackers = tuple(name for name in known if name in ATTACKERS)
    return Chosen(
        attackers or DEFAULT, tuple(name for name in known if name in ATTACKS)
    )


def reidentify(
    evaluations: Sequence[Evaluation], attributes: Sequence[str]
) -> list[dict]:
    """Returns evidence of retrained attackers by evaluation, attribute and attacker."""
    evidence: list[dict] = [{name: {} for name in attributes} for _ in evaluations]
    if not attributes:
        return evidence
    first = evaluations[0]
    slots = [(by_attribute, name) for by_attribute in evidence for name in attributes]
    for name in first.attackers:
        first.step(f"{name} learns {', '.join(attributes)} from anonymized windows")
        numbers = purposes(first.data, attributes)
        attack_keys = folded(evaluations, numbers, known_attackers.number(name))
        aims = targets(evaluations, attributes)
        outputs = attacks.reidentify(attack_keys, name, aims, share=first.share)
        for (by_attribute, attribute), output in zip(slots, outputs, strict=True):
            by_attribute[attribute][name] = output
    return evidence


def link_unseen_subjects(
    evaluations: Sequence[Evaluation], safe_tests, attackers
) -> list[dict]:
    """Returns scores by attacker, trained on the first half of the test windows."""
    first = evaluations[0]
    data, found = first.data, [{} for _ in evaluations]
    for name in attackers:
        first.step(f"{name} learns subject from early test windows")
        numbers = purposes(data, ["subject"])
        outputs = attacks.link_unseen_subjects(
            folded(evaluations, numbers, known_attackers.number(name)),
            name,
            safe_tests,
            data.test.labels["subject"],
            data.test.labels[data.spec.public],
            data.spec.num_classes("subject"),
            overlap=overlap(data.test),
        )
        for by_name, one in zip(found, outputs, strict=True):
            by_name[name] = score(
                data, "subject", one.evidence, one.rows, trained=False
            )
    return found


def strongest(by_name: dict) -> str:
    """Returns the attacker with the highest balanced accuracy; the first of equals."""
    return max(by_name, key=lambda name: by_name[name]["balanced_accuracy"])


def linkage(
    evaluations: Sequence[Evaluation], evidence, unseen: bool
) -> list[dict | None]:
    """Scores how well attackers name the subject of a window.

    The protocol is re-identification, or linkage by halves for unseen subjects.

    Args:
      evaluations: evaluations on the same data.
      evidence: result of ``reidentify``; unless ``unseen``, it includes the subject.
      unseen: whether test subjects do not occur in training and can be linked.

    Returns:
      For each evaluation ``unseen_subjects``, ``attackers``, the ``strongest`` of them
      and, for unseen subjects, ``raw``; None with fewer than two linkable subjects.
    """
    data = evaluations[0].data
    if not unseen:
        return [
            _linked(
                False,
                {
                    name: score(data, "subject", output)
                    for name, output in by_attribute.get("subject", {}).items()
                },
            )
            for by_attribute in evidence
        ]
    raw = standardise(data.spec, data.test.windows)
    names = evaluations[0].attackers
    safe_tests = [one.safe for one in evaluations]
    found = link_unseen_subjects(evaluations, safe_tests, names)
    baseline = link_unseen_subjects(evaluations, [raw] * len(evaluations), names[:1])
    return [
        _linked(True, by_name, raw=by_raw[names[0]])
        for by_name, by_raw in zip(found, baseline, strict=True)
    ]


def _linked(unseen, by_name, **raw):
    if not by_name:
        return None
    scores = {"attackers": by_name, "strongest": strongest(by_name)}
    return {"unseen_subjects": unseen, **raw, **scores}
