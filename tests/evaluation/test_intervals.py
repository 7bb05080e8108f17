"""Intervals over persons, and scores that data cannot support."""

import math

import numpy as np
import pytest

from jaxanon import metrics
from jaxanon.evaluation import intervals, protocol

T2 = 4.302652729911275  # Quantile 0.975 of Student's t with 2 degrees of freedom.


def test_an_interval_by_hand():
    """Three persons have two windows each; one window of class 1 is wrong."""
    labels, persons = [0, 1] * 3, [0, 0, 1, 1, 2, 2]
    evidence = np.eye(2)[[0, 1, 0, 1, 0, 0]]
    # Recalls are 1 and 2/3. Without person 0 or 1 the second is 1/2, without person 2
    # it is 1: balanced accuracies 3/4, 3/4, 1, with mean 5/6 and squared deviations
    # 1/144, 1/144, 1/36, whose sum is 1/24. Times (3 - 1) / 3 it is 1/36.
    low, high = intervals.over_persons(labels, evidence, persons)["balanced_accuracy"]
    assert low == pytest.approx(5 / 6 - T2 / 6) and high == 1.0


def test_deleting_a_person_is_scoring_the_others():
    """Compares with the metrics of the remaining windows, and AUC with ties."""
    rng = np.random.default_rng(0)
    labels, persons = rng.integers(0, 3, 200), rng.integers(0, 7, 200)
    evidence = np.round(rng.normal(size=(200, 3)) + np.eye(3)[labels], 1)
    evidence += 1e-9 * np.arange(3)[::-1]  # No ties within a row.
    found = intervals.over_persons(labels, evidence, persons)
    for measure in ("balanced_accuracy", "auc"):
        score = lambda rows, name=measure: metrics.scores(
            labels[rows], evidence[rows].argmax(1), list("abc"), evidence=evidence[rows]
        )[name]
        without = np.array([score(persons != person) for person in range(7)])
        error = math.sqrt(6 * np.mean((without - without.mean()) ** 2))
        middle = score(slice(None))
        reach = 2.446911851144969 * error  # t of 6 degrees of freedom.
        assert found[measure] == pytest.approx([middle - reach, middle + reach])


def test_intervals_cover():
    """About 95 % of the 95 % intervals over 8 persons contain the true accuracy."""
    rng, held = np.random.default_rng(1), 0
    persons = np.repeat(np.arange(8), 40)
    labels = np.tile([0, 1], 160)
    for _ in range(300):
        rate = np.clip(rng.normal(0.7, 0.1, 8), 0, 1)
        right = rng.uniform(size=320) < rate[persons]
        evidence = np.eye(2)[np.where(right, labels, 1 - labels)]
        low, high = intervals.over_persons(labels, evidence, persons)[
            "balanced_accuracy"
        ]
        held += low <= 0.7 <= high
    assert 0.9 < held / 300 < 0.99


@pytest.mark.parametrize(
    ("labels", "persons", "trained", "reason"),
    [
        ([0] * 6, range(6), None, "the test windows have one class, 'left'"),
        ([0, 1] * 3, [0, 0, 1, 1, 2, 2], [0], "class 'right' does not occur in train"),
        ([0, 1] * 3, [0, 0, 0, 1, 1, 1], None, "2 test persons are too few"),
        ([0, 1] * 3, [0] * 6, None, "1 test person is too few"),
        ([0, 0, 0, 1], [0, 1, 2, 3], None, "class 'right' has 1 test person"),
        ([0, 1] * 3, [0, 0, 1, 1, 2, 2], [0, 1], None),
        # One person per weight gives no information about weights.
        ([0, 1, 2], [4, 5, 6], None, "class 'left' has 1 test person"),
    ],
)
def test_reasons(labels, persons, trained, reason):
    names = ("left", "right", "both")
    found = intervals.unsupported(labels, list(persons), names, trained)
    assert found == reason if reason is None else reason in found


def test_identities_need_three_persons_and_no_second_of_any():
    reason = lambda *labels: intervals.unsupported(
        labels, labels, ("ann", "bea", "cid"), identity=True
    )
    assert reason(0, 1, 2) is None
    assert reason(0, 1, 1) == "2 test persons are too few (at least 3)"


def test_scores_say_what_data_cannot_support(cases):
    data, evidence = cases.data(), np.random.default_rng(0).normal(size=(96, 2))
    whole = protocol.score(data, "side", evidence)
    assert whole["not_measured"] is None
    low, high = whole["interval"]["balanced_accuracy"]
    assert low < whole["balanced_accuracy"] < high
    rows = np.flatnonzero(data.test.labels["subject"] < 2)
    two = protocol.score(data, "side", evidence[rows], rows)
    assert two["interval"] is None and "2 test persons" in two["not_measured"]
    # Utility for two persons is measured, without an interval.
    kept = protocol.score(data, "activity", evidence[rows], rows)
    assert kept["interval"] is None and kept["not_measured"] is None
    rows = np.flatnonzero(data.test.labels["side"] == 0)
    one = protocol.score(data, "side", evidence[rows], rows)
    assert "one class, 'left'" in one["not_measured"]
    labels = data.train.labels | {"activity": np.zeros(96, np.int32)}
    fewer = data._replace(train=data.train._replace(labels=labels))
    unknown = protocol.score(fewer, "activity", evidence)
    assert "'fast' does not occur in training" in unknown["not_measured"]
