"""Evidence over many windows of one person, and comparison of streams."""

import numpy as np
import pytest

from jaxanon import attacks, metrics
from jaxanon.attacks import linkage


def test_runs_are_of_one_person_each_and_do_not_overlap():
    persons = np.array([5, 5, 3, 5, 5, 3, 3, 5])
    found = attacks.runs(persons, 2)
    assert found.tolist() == [
        [2, 5],
        [0, 1],
        [3, 4],
    ]  # The last of each is dropped.
    assert attacks.runs(persons, 1).ravel().tolist() == [2, 5, 6, 0, 1, 3, 4, 7]
    assert attacks.runs(persons, 6).shape == (0, 6)
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        attacks.runs(persons, 0)


def weak(persons, windows, share, seed=0):
    """Returns log-probabilities of 0.6; a ``share`` of windows is right."""
    rng = np.random.default_rng(seed)
    truth = np.arange(persons) % 2
    wrong = rng.random((persons, windows)) >= share
    said = truth[:, None] ^ wrong
    return np.log(np.where(np.arange(2) == said[..., None], 0.6, 0.4)), truth


@pytest.mark.parametrize("add_up", [attacks.majority_vote, attacks.mean_log_odds])
def test_weak_evidence_adds_up(add_up):
    # A window is right with 60 %, the majority of 5 with 68 %, of 101 with 98 %.
    want = {1: 0.6, 5: 0.683, 101: 0.979}
    for length, share in want.items():
        evidence, truth = weak(2000, length, 0.6)
        found = np.mean(add_up(evidence).argmax(1) == truth)
        assert found == pytest.approx(share, abs=0.04)


def test_a_vote_counts_windows_and_log_odds_weigh_them():
    # Three windows lean one way; one is certain of the other.
    evidence = np.log([[[0.6, 0.4]] * 3 + [[0.01, 0.99]]])
    assert attacks.majority_vote(evidence).argmax(1) == [0]
    assert attacks.mean_log_odds(evidence).argmax(1) == [1]
    want = (3 * np.log(0.6 / 0.4) + np.log(0.01 / 0.99)) / 4
    np.testing.assert_allclose(attacks.mean_log_odds(evidence), [[want, -want]])


def test_a_tied_vote_is_settled_by_the_evidence():
    evidence = np.log([[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]])
    votes = attacks.majority_vote(evidence)
    assert votes.argmax(1).tolist() == [0, 1]
    assert np.all((votes > 0.5) & (votes < 1))


def test_no_window_settles_a_matter():
    # Certainty, which a forest may report for one window, counts as ln 999.
    evidence = np.array([[[0.0, -np.inf]] + [[np.log(0.2), np.log(0.8)]] * 9])
    found = attacks.mean_log_odds(evidence)
    assert np.isfinite(found).all() and found.argmax(1) == [1]
    only = attacks.mean_log_odds(evidence[:, :1])
    np.testing.assert_allclose(only, [[np.log(999), -np.log(999)]], rtol=1e-6)
    assert linkage.LENGTHS == (1, 5, 30, 100)


def profiles(told, seed=0):
    """Returns two streams for each of six people, with 40 windows of weak evidence."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(6), 80)
    habit = rng.normal(size=(6, 5)) if told else np.zeros((6, 5))
    common = 10 * np.arange(5)  # A common profile is uninformative.
    evidence = common + habit[subjects] + 2 * rng.normal(size=(480, 5))
    halves = np.arange(480) % 80 < 40
    rows = np.flatnonzero(halves), np.flatnonzero(~halves)
    return [attacks.profile_streams(evidence, own, subjects) for own in rows]


def test_streams_of_one_person_are_alike_if_windows_tell():
    same = np.eye(6, dtype=int).ravel()
    likeness = attacks.compare_streams(*profiles(True))
    assert likeness.argmax(1).tolist() == list(range(6))
    pairs = np.stack([-likeness.ravel(), likeness.ravel()], 1)
    assert metrics.auc(same, pairs)[1] > 0.97
    lost = [attacks.compare_streams(*profiles(False, seed)) for seed in range(20)]
    pairs = np.concatenate([np.stack([-x.ravel(), x.ravel()], 1) for x in lost])
    # 120 pairs of one person and 600 of two: a std of 0.03 about one half.
    assert metrics.auc(np.tile(same, 20), pairs)[1] == pytest.approx(0.5, abs=0.09)


def test_what_all_have_in_common_is_left_out():
    first, second = profiles(True)
    likeness = attacks.compare_streams(first, second)
    np.testing.assert_allclose(
        attacks.compare_streams(first * 3 + 7, second * 3 + 7), likeness
    )
    assert not attacks.compare_streams(np.ones((2, 3)), np.ones((2, 3))).any()


def test_comparing_needs_two_streams():
    with pytest.raises(ValueError, match=r"at least 2 streams.*\(1, 3\) and \(2, 3\)"):
        attacks.compare_streams(np.ones((1, 3)), np.ones((2, 3)))
