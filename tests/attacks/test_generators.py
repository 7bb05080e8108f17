"""Membership in a generator's training data: scores by hand, matching, intervals."""

import jax
import numpy as np
import pytest
from scipy.stats import beta, norm

from jaxanon import attacks, metrics


def test_what_is_told_by_hand():
    # 8 of 3 x 4 pairs are in order, and the tie counts half.
    members, others = [5.0, 3.0, 1.0], [4.0, 3.0, 0.0, -1.0]
    found = attacks.score_membership(members, others)
    assert found.auc == pytest.approx(8.5 / 12)
    # Without false positives, one of three is found, the 5.
    assert found.true_positives == {1e-3: 1 / 3, 1e-2: 1 / 3, 1e-1: 1 / 3}
    turned = attacks.score_membership(np.negative(members), np.negative(others))
    assert turned.auc == pytest.approx(1 - found.auc)


def test_the_interval_by_hand():
    # 3 lies above both others, 1 above one; 2 lies below one of the two members.
    own, evidence = np.array([1, 1, 0, 0]), np.array([3.0, 1.0, 2.0, 0.0])
    half = norm.ppf(0.95) * np.sqrt(0.125 / 2 + 0.125 / 2)
    low, high = metrics.auc_interval(own, evidence, 0.9)
    assert (low, high) == (pytest.approx(0.75 - half), 1.0)
    low, high = metrics.auc_interval(1 - own, evidence, 0.9)
    assert (low, high) == (0.0, pytest.approx(0.25 + half))
    apart = metrics.auc_interval(own, own, 0.9)
    assert apart == (pytest.approx(0.05**0.5), 1.0)
    assert metrics.auc_interval(own, -own, 0.9) == (0.0, pytest.approx(1 - 0.05**0.5))
    # Two tied pairs: half of them won, by Clopper-Pearson.
    low, high = metrics.auc_interval(own, 0 * own, 0.9)
    assert low + high == pytest.approx(1) and low == pytest.approx(beta.ppf(0.05, 1, 2))


def test_the_interval_has_the_truth_as_often_as_it_says():
    rng, true = np.random.default_rng(0), norm.cdf(1 / np.sqrt(2))
    held = {0.5: 0, 0.95: 0}
    for _ in range(1000):
        evidence = rng.normal(size=100) + (np.arange(100) < 40)
        for confidence in held:
            low, high = metrics.auc_interval(np.arange(100) < 40, evidence, confidence)
            held[confidence] += low <= true <= high
    # For 1000, the standard deviations are 7 and 16; DeLong's are slightly narrow.
    assert 920 <= held[0.95] <= 970 and 440 <= held[0.5] <= 560


def test_kinds_are_matched_one_by_one():
    rng = np.random.default_rng(0)
    members, others = rng.integers(0, 4, (300, 2)), rng.integers(1, 5, (90, 2))
    own, other = attacks.match(jax.random.key(0), members, others, 1000)
    np.testing.assert_array_equal(members[own], others[other])
    assert len(set(own)) == len(own) and len(set(other)) == len(other)
    count = lambda rows: {
        kind: (rows == kind).all(1).sum() for kind in map(tuple, members)
    }
    assert len(own) == sum(
        min(n, count(others)[kind]) for kind, n in count(members).items()
    )
    few, _ = attacks.match(jax.random.key(1), members, others, 10)
    again, _ = attacks.match(jax.random.key(2), members, others, 10)
    assert len(few) == 10 and set(few) != set(again)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"others must be float\[N\].*got shape \(2,"):
        attacks.score_membership([0.0, 1.0], [[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"members must .* at least two windows.*\(1,"):
        attacks.score_membership([0.0], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got 95"):
        attacks.score_membership([0.0, 1.0], [0.0, 1.0], confidence=95)
    with pytest.raises(ValueError, match="evidence must be numbers, got NaN"):
        attacks.score_membership([0.0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="no window outside the training data has"):
        attacks.match(jax.random.key(0), np.zeros((3, 2)), np.ones((3, 2)), 5)
    with pytest.raises(ValueError, match="most must be >= 1, got 0"):
        attacks.match(jax.random.key(0), np.zeros((3, 2)), np.zeros((3, 2)), 0)
