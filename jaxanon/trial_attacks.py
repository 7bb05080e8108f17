"""Further attacks by the chosen attackers."""

import numpy as np

from jaxanon import attacks, metrics, trial
from jaxanon.attacks import attackers as known_attackers
from jaxanon.attacks import streams
from jaxanon.trial_case import Case, empty, keys, row


def intrusive(case: Case) -> list[list[dict]]:
    """Every attacker trained on all raw training windows, as the judges are."""
    rows, _ = empty(case)
    first = case.trials[0]
    for name in first.attackers:
        judges = case.judges
        if name != "mlp":  # The judges are that attacker.
            quiet = lambda what: None
            judges = trial.train_judges(first.key, first.data, quiet, name)
        for own, one in zip(rows, case.trials, strict=True):
            for attribute, found in trial.judge(one, judges).items():
                for part in ("raw", "anonymized"):
                    own.append(row(attribute, name, f"{part} windows", found[part]))
    return rows


def released(case: Case) -> list[list[dict]]:
    """Training accuracy, as the published programs report re-identification."""
    rows, places = empty(case)
    first = case.trials[0]
    names = trial.attacked(first.data)
    truths = [first.data.test.labels[attribute] for _, attribute in places]
    for name in first.attackers:
        own_keys = keys(case, "released", names, known_attackers.number(name))
        aims = trial.targets(case.trials, names)
        told = attacks.reidentify_as_released(
            own_keys, name, aims, truths, share=first.share
        )
        for (own, attribute), one in zip(places, told, strict=True):
            found = trial.score(first.data, attribute, one.evidence, one.rows)
            own.append(row(attribute, name, "training accuracy, own share", found))
    return rows


def per_class(case: Case) -> list[list[dict]]:
    """One attacker for each class of the public attribute."""
    rows, places = empty(case)
    first = case.trials[0]
    data, names, public = first.data, trial.attacked(first.data), first.data.spec.public
    seen, tested = (np.asarray(part.labels[public]) for part in data[1:])
    for name in first.attackers:
        own_keys = keys(case, "per-class", names, known_attackers.number(name))
        aims = trial.targets(case.trials, names)
        told = attacks.reidentify_by_class(
            own_keys, name, aims, seen, tested, share=first.share
        )
        for (own, attribute), evidence in zip(places, told, strict=True):
            found = trial.score(data, attribute, evidence)
            own.append(row(attribute, name, f"one attacker per {public}", found))
            for label in np.unique(tested):
                here = np.flatnonzero(tested == label)
                found = trial.score(data, attribute, evidence[here], here)
                variant = f"{public} {data.spec.classes[public][label]}"
                own.append(row(attribute, name, variant, found))
    return rows


ADD_UPS = {
    "majority vote": attacks.majority_vote,
    "mean log-odds": attacks.mean_log_odds,
}


def stream(case: Case) -> list[list[dict]]:
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
        for length in streams.LENGTHS:
            runs = attacks.runs(persons.reshape(-1), length)
            for how, add_up in ADD_UPS.items():
                found = None
                if len(runs):
                    said = add_up(evidence[runs])
                    found = trial.score(data, attribute, said, runs[:, 0])
                own.append(row(attribute, name, f"{length} windows, {how}", found))
    return rows


def pairs(case: Case) -> list[list[dict]]:
    """Whether two anonymized streams are of one person, for every two of them."""
    rows, _ = empty(case)
    data = case.trials[0].data
    subjects, public = np.asarray(data.test.labels["subject"]), data.spec.public
    apart = trial.overlap(data.test)
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
            aims, share = trial.targets(case.trials, ["subject"]), case.trials[0].share
            told = attacks.reidentify(own_keys, name, aims, share=share)
        for own, evidence in zip(looks, told, strict=True):
            own[name] = np.maximum(evidence[:, known], streams.LEAST)
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
