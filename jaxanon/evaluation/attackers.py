"""The attacks of an evaluation, by name, and the attackers that run them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxanon import attacks, metrics
from jaxanon.attacks import ATTACKERS
from jaxanon.attacks import attackers as known_attackers
from jaxanon.attacks import linkage as attacks_linkage
from jaxanon.datasets.spec import standardise
from jaxanon.evaluation import leakage, protocol
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


def intrusive(case: EvaluationContext) -> list[list[dict]]:
    """Every attacker trained on all raw training windows, as the judges are."""
    rows, _ = empty(case)
    first = case.trials[0]
    for name in first.attackers:
        judges = case.judges
        if name != "mlp":  # The judges are that attacker.
            quiet = lambda what: None
            judges = protocol.train_raw_classifiers(first.key, first.data, quiet, name)
        for own, one in zip(rows, case.trials, strict=True):
            for attribute, found in protocol.judge(one, judges).items():
                for part in ("raw", "anonymized"):
                    own.append(row(attribute, name, f"{part} windows", found[part]))
    return rows


def released(case: EvaluationContext) -> list[list[dict]]:
    """Training accuracy, as the published programs report re-identification."""
    rows, places = empty(case)
    first = case.trials[0]
    names = protocol.attacked(first.data)
    truths = [first.data.test.labels[attribute] for _, attribute in places]
    for name in first.attackers:
        own_keys = keys(case, "released", names, known_attackers.number(name))
        aims = protocol.targets(case.trials, names)
        told = attacks.reidentify_as_released(
            own_keys, name, aims, truths, share=first.share
        )
        for (own, attribute), one in zip(places, told, strict=True):
            found = protocol.score(first.data, attribute, one.evidence, one.rows)
            own.append(row(attribute, name, "training accuracy, own share", found))
    return rows


def per_class(case: EvaluationContext) -> list[list[dict]]:
    """One attacker for each class of the public attribute."""
    rows, places = empty(case)
    first = case.trials[0]
    data, names, public = (
        first.data,
        protocol.attacked(first.data),
        first.data.spec.public,
    )
    seen, tested = (np.asarray(part.labels[public]) for part in data[1:])
    for name in first.attackers:
        own_keys = keys(case, "per_class", names, known_attackers.number(name))
        aims = protocol.targets(case.trials, names)
        told = attacks.reidentify_by_class(
            own_keys, name, aims, seen, tested, share=first.share
        )
        for (own, attribute), evidence in zip(places, told, strict=True):
            found = protocol.score(data, attribute, evidence)
            own.append(row(attribute, name, f"one attacker per {public}", found))
            for label in np.unique(tested):
                here = np.flatnonzero(tested == label)
                found = protocol.score(data, attribute, evidence[here], here)
                variant = f"{public} {data.spec.classes[public][label]}"
                own.append(row(attribute, name, variant, found))
    return rows


ADD_UPS = {
    "majority vote": attacks.majority_vote,
    "mean log-odds": attacks.mean_log_odds,
}


def stream(case: EvaluationContext) -> list[list[dict]]:
    """The retrained attackers, over consecutive windows of one subject.

    A run is of one class of the attribute; where nobody has enough windows for one,
    there are no scores.
    """
    rows, _ = empty(case)
    data = case.trials[0].data
    told = [
        (own, attribute, name, evidence)
        for own, by_attribute in zip(rows, case.evidence, strict=True)
        for attribute, by_name in by_attribute.items()
        for name, evidence in by_name.items()
    ]
    for own, attribute, name, evidence in told:
        labels = [data.test.labels[label] for label in ("subject", attribute)]
        persons = np.unique(np.stack(labels, 1), axis=0, return_inverse=True)[1]
        for length in attacks_linkage.LENGTHS:
            runs = attacks.runs(persons.reshape(-1), length)
            for how, add_up in ADD_UPS.items():
                found = None
                if len(runs):
                    said = add_up(evidence[runs])
                    found = protocol.score(data, attribute, said, runs[:, 0])
                own.append(row(attribute, name, f"{length} windows, {how}", found))
    return rows


def pairs(case: EvaluationContext) -> list[list[dict]]:
    """Whether two anonymized streams are of one person, for every two of them."""
    rows, _ = empty(case)
    data = case.trials[0].data
    subjects, public = np.asarray(data.test.labels["subject"]), data.spec.public
    apart = protocol.overlap(data.test)
    parts = attacks.halves(subjects, data.test.labels[public], overlap=apart)
    people = np.unique(subjects[parts[0]])
    for own, looks in zip(rows, _looks(case), strict=True):
        for name, look in looks.items():
            profiles = (attacks.profile_streams(look, part, subjects) for part in parts)
            found = _matched(data, people, attacks.compare_streams(*profiles))
            own.append(row("subject", name, "two streams of each", found))
    return rows


def _looks(case):
    """Per trial and attacker, what is said of every anonymized test window."""
    data = case.trials[0].data
    known = np.unique(data.train.labels["subject"])
    looks: list[dict[str, np.ndarray]] = [
        {"untrained": attacks.features(one.safe)} for one in case.trials
    ]
    if len(known) < 2:  # Nobody whom test subjects could be more or less like.
        return looks
    for name in case.trials[0].attackers:
        told = [own.get("subject", {}).get(name) for own in case.evidence]
        if any(evidence is None for evidence in told):  # They never trained.
            own_keys = keys(case, "pairs", ["subject"], known_attackers.number(name))
            aims, share = (
                protocol.targets(case.trials, ["subject"]),
                case.trials[0].share,
            )
            told = attacks.reidentify(own_keys, name, aims, share=share)
        for own, evidence in zip(looks, told, strict=True):
            own[name] = np.maximum(evidence[:, known], attacks_linkage.LEAST)
    return looks


def _matched(data, people, likeness):
    """Scores of taking for each first stream the second that is most like it."""
    names = [data.spec.classes["subject"][person] for person in people]
    own = np.arange(len(people))
    found = metrics.scores(own, likeness.argmax(1), names, evidence=likeness)
    # One person or two, over all pairs at once.
    same = np.eye(len(people), dtype=int).ravel()
    column = np.stack([-likeness.ravel(), likeness.ravel()], 1)
    found["auc"] = float(metrics.auc(same, column)[1])
    found["equal_error_rate"] = float(metrics.equal_error_rate(same, column)[1])
    return found


ATTACKS: dict[str, Callable] = {
    "intrusive": intrusive,
    "released": released,
    "per_class": per_class,
    "stream": stream,
    "pairs": pairs,
    "self-training": leakage.self_training,
    "inversion": leakage.inversion,
    "fingerprint": leakage.fingerprint,
    "membership": leakage.membership,
}

assert tuple(ATTACKS) == NAMES

DEFAULT = ("mlp", "forest")


class Chosen(NamedTuple):
    """Who attacks, and in which further ways."""

    attackers: tuple[str, ...]
    attacks: tuple[str, ...]


def choose(names: Sequence[str] | None) -> Chosen:
    """Tells attackers from attacks; without an attacker there are the default two.

    Raises:
      ValueError: if nothing is named, or something that there is not.

    Example:
      >>> choose(["forest", "stream"])
      Chosen(attackers=('forest',), attacks=('stream',))
      >>> choose(None) == choose(["released"])._replace(attacks=())
      True
      >>> choose(["released"]).attackers
      ('mlp', 'forest')
    """
    if names is None:
        return Chosen(DEFAULT, ())
    if isinstance(names, str) or not names:
        raise ValueError(
            f"attacks must be a tuple with at least one of {sorted(ATTACKERS)} or "
            f"{list(ATTACKS)}, got {names!r}."
        )
    for name in names:
        if name not in ATTACKERS and name not in ATTACKS:
            raise ValueError(
                f"attacks must be among attackers, {sorted(ATTACKERS)}, and what is "
                f"tried besides, {list(ATTACKS)}; got {name!r}."
            )
    known = dict.fromkeys(names)
    attackers = tuple(name for name in known if name in ATTACKERS)
    return Chosen(
        attackers or DEFAULT, tuple(name for name in known if name in ATTACKS)
    )


def reidentify(trials: Sequence[Evaluation], attributes: Sequence[str]) -> list[dict]:
    """Evidence of attackers retrained on the output, per trial, attribute, attacker."""
    found: list[dict] = [{name: {} for name in attributes} for _ in trials]
    if not attributes:
        return found
    places = [(own, name) for own in found for name in attributes]
    for name in trials[0].attackers:
        trials[0].tell(f"{name} learns {', '.join(attributes)} from anonymized windows")
        numbers = purposes(trials[0].data, attributes)
        keys = folded(trials, numbers, known_attackers.number(name))
        aims = targets(trials, attributes)
        told = attacks.reidentify(keys, name, aims, share=trials[0].share)
        for (own, attribute), evidence in zip(places, told, strict=True):
            own[attribute][name] = evidence
    return found


def link_unseen_subjects(
    trials: Sequence[Evaluation], safe_tests, attackers
) -> list[dict]:
    """Scores by attacker, each trained on the first half of the test windows."""
    data, found = trials[0].data, [{} for _ in trials]
    for name in attackers:
        trials[0].tell(f"{name} learns subject from early test windows")
        linked = attacks.link_unseen_subjects(
            folded(trials, purposes(data, ["subject"]), known_attackers.number(name)),
            name,
            safe_tests,
            data.test.labels["subject"],
            data.test.labels[data.spec.public],
            data.spec.num_classes("subject"),
            overlap=overlap(data.test),
        )
        for own, one in zip(found, linked, strict=True):
            own[name] = score(data, "subject", one.evidence, one.rows)
    return found


def worst(by_name: dict) -> str:
    """The attacker of the highest balanced accuracy; the first of equals."""
    return max(by_name, key=lambda name: by_name[name]["balanced_accuracy"])


def linkage(
    trials: Sequence[Evaluation], evidence, strangers: bool
) -> list[dict | None]:
    """Who sent a window: as re-identification, or by halves if senders are new.

    Args:
      trials: on the same data.
      evidence: of ``reidentify``, the subject's among it unless they are ``strangers``.
      strangers: whether test subjects are new, and can be told apart.

    Returns:
      For each trial ``strangers``, ``attackers`` and the ``worst`` of them, of new ones
      also ``raw``; None where nobody could be told apart.
    """
    data = trials[0].data
    if not strangers:
        found = [
            {
                name: score(data, "subject", told)
                for name, told in own.get("subject", {}).items()
            }
            for own in evidence
        ]
        return [_linked(False, by_name) for by_name in found]
    raw = standardise(data.spec, data.test.windows)
    names = trials[0].attackers
    found = link_unseen_subjects(trials, [one.safe for one in trials], names)
    first = link_unseen_subjects(trials, [raw] * len(trials), names[:1])
    return [
        _linked(True, by_name, raw=own[names[0]])
        for by_name, own in zip(found, first, strict=True)
    ]


def _linked(strangers, by_name, **raw):
    if not by_name:
        return None
    told = {"attackers": by_name, "worst": worst(by_name)}
    return {"strangers": strangers, **raw, **told}
