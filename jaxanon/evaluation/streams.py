"""Attacks on streams: evidence over consecutive windows, and pairs of streams."""

import numpy as np

from jaxanon import attacks, metrics
from jaxanon.attacks import attackers as known_attackers
from jaxanon.attacks import linkage as attacks_linkage
from jaxanon.evaluation import intervals, protocol
from jaxanon.evaluation.protocol import EvaluationContext, empty, keys, row, score

RAW_CLASSIFIER = "raw-data classifier"

MIN_STREAMS = 5  # Streams of each class, unless the classes are the subjects.

POOLINGS = {
    "majority vote": attacks.majority_vote,
    "mean log-odds": attacks.mean_log_odds,
}


def stream(context: EvaluationContext) -> list[list[dict]]:
    """Accumulates evidence over consecutive windows of one subject.

    A stream has one class of the attribute. The baseline is the raw-data classifier on
    raw streams.
    """
    rows, _ = empty(context)
    data = context.evaluations[0].data
    for by_run, by_attribute in zip(rows, context.evidence, strict=True):
        for attribute, by_name in by_attribute.items():
            labels = [data.test.labels[name] for name in ("subject", attribute)]
            pairs = np.unique(np.stack(labels, 1), axis=0, return_inverse=True)[1]
            pairs = pairs.reshape(-1)
            for name, evidence in by_name.items():
                by_run += _streams(data, attribute, pairs, name, "", evidence)
            if by_name:
                raw = context.raw_classifiers.raw[attribute]
                prefix = "raw stream, "
                by_run += _streams(data, attribute, pairs, RAW_CLASSIFIER, prefix, raw)
    return rows


def _streams(data, attribute, pairs, name, prefix, evidence):
    """Rows of one attacker, for every length of stream and every pooling."""
    rows = []
    for length in attacks_linkage.LENGTHS:
        runs = attacks.runs(pairs, length)
        for how, pool in POOLINGS.items():
            scores, reason = None, None
            if len(runs):
                scores = score(data, attribute, pool(evidence[runs]), runs[:, 0])
                few = _few_streams(data, attribute, runs, length)
                scores["not_measured"] = scores["not_measured"] or few
            else:
                reason = f"no test subject has {length} windows of one class"
            variant = f"{prefix}{length} windows, {how}"
            rows.append(row(attribute, name, variant, scores, reason=reason))
    return rows


def _few_streams(data, attribute, runs, length):
    """Returns the reason if a class has too few streams, else None."""
    labels = np.asarray(data.test.labels[attribute])
    if attribute == "subject" or length == 1:
        return None
    counts = np.bincount(labels[runs[:, 0]], minlength=labels.max() + 1)
    counts = counts[np.unique(labels)]
    if counts.min() >= MIN_STREAMS:
        return None
    label = np.unique(labels)[counts.argmin()]
    return (
        f"class {data.spec.classes[attribute][label]!r} has {counts.min()} streams of "
        f"{length} windows (at least {MIN_STREAMS})"
    )


def pairs(context: EvaluationContext) -> list[list[dict]]:
    """Links pairs of anonymized streams of one person."""
    rows, _ = empty(context)
    data = context.evaluations[0].data
    subjects, public = np.asarray(data.test.labels["subject"]), data.spec.public
    parts = attacks.halves(
        subjects, data.test.labels[public], overlap=protocol.overlap(data.test)
    )
    people = np.unique(subjects[parts[0]])
    for by_run, features in zip(rows, _stream_features(context), strict=True):
        for name, rows_of in features.items():
            profiles = (
                attacks.profile_streams(rows_of, part, subjects) for part in parts
            )
            scores = _matched(data, people, attacks.compare_streams(*profiles))
            by_run.append(row("subject", name, "two streams of each", scores))
    return rows


def _stream_features(context):
    """Features of every anonymized test window, by evaluation and attacker."""
    first = context.evaluations[0]
    known = np.unique(first.data.train.labels["subject"])
    features: list[dict[str, np.ndarray]] = [
        {"untrained": attacks.features(one.safe)} for one in context.evaluations
    ]
    if len(known) < 2:  # A classifier of one training subject has no output to compare.
        return features
    for name in first.attackers:
        outputs = [one.get("subject", {}).get(name) for one in context.evidence]
        if any(evidence is None for evidence in outputs):
            attack_keys = keys(
                context, "pairs", ["subject"], known_attackers.number(name)
            )
            aims = protocol.targets(context.evaluations, ["subject"])
            outputs = attacks.reidentify(attack_keys, name, aims, share=first.share)
        for by_run, evidence in zip(features, outputs, strict=True):
            by_run[name] = np.maximum(evidence[:, known], attacks_linkage.LEAST)
    return features


def _matched(data, people, likeness):
    """Scores of matching each first stream with the most similar second stream."""
    names = [data.spec.classes["subject"][person] for person in people]
    subjects = np.arange(len(people))
    scores = metrics.scores(subjects, likeness.argmax(1), names, evidence=likeness)
    # AUC and EER are of one binary question: same person or not, over all pairs.
    same = np.eye(len(people), dtype=int).ravel()
    column = np.stack([-likeness.ravel(), likeness.ravel()], 1)
    scores["auc"] = float(metrics.auc(same, column)[1])
    scores["equal_error_rate"] = float(metrics.equal_error_rate(same, column)[1])
    few = len(people) < intervals.MIN_PERSONS
    reason = intervals.unsupported(subjects, subjects, names, identity=True)
    interval = intervals.over_persons(subjects, likeness, subjects)
    return scores | {"interval": None if few else interval, "not_measured": reason}
