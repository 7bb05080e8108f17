"""Division of windows between attackers and scoring."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon.attacks import attacker_data


def test_a_share_of_every_class_is_picked():
    labels = np.repeat([0, 1, 2], [100, 20, 10])
    rows = attacker_data.pick(jax.random.key(0), labels, 0.2)
    assert np.bincount(labels[rows]).tolist() == [20, 4, 2]
    assert len(set(rows)) == 26 and np.all(np.diff(rows) > 0)


def test_picks_follow_the_key():
    labels = np.zeros(100, int)
    rows = [attacker_data.pick(jax.random.key(seed), labels, 0.2) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert np.any(rows[0] != rows[2])


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_is_a_share(share):
    with pytest.raises(ValueError, match=r"share must be in \(0, 1\], got"):
        attacker_data.pick(jax.random.key(0), np.zeros(9, int), share)


def test_too_small_a_share_is_refused():
    labels = np.repeat([0, 1], [100, 7])
    message = r"share 0.2 of the 7 training windows of side class 1 is 1, .*raise share"
    with pytest.raises(ValueError, match=message):
        attacker_data.pick(jax.random.key(0), labels, 0.2, "side")


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=80))
def test_every_class_is_trained_on_and_validated_if_it_can(labels):
    labels = np.array(labels)
    valid = attacker_data.blocks(labels)
    for label in np.unique(labels):
        own = valid[labels == label]
        assert not own.all()
        assert own.any() == (len(own) > 1)
        if len(own) >= 10:
            assert 0.05 <= own.mean() <= 0.2


def test_validation_is_in_blocks_of_time():
    valid = attacker_data.blocks(np.zeros(1000, int))
    # 50 blocks of 20; the last of each ten: 5 stretches of 20, without scatter.
    assert valid.sum() == 100
    assert np.abs(np.diff(valid.astype(int))).sum() == 9


def test_halves_keep_a_gap_in_every_group():
    subject = np.repeat([0, 1], 20)
    activity = np.tile(np.repeat([0, 1], 10), 2)
    known, scored = attacker_data.halves(subject, activity)
    starts = np.array([0, 10, 20, 30])
    np.testing.assert_array_equal(known, (starts[:, None] + np.arange(5)).ravel())
    np.testing.assert_array_equal(scored, (starts[:, None] + np.arange(6, 10)).ravel())


def test_groups_too_small_to_halve_are_left_out():
    known, scored = attacker_data.halves(np.array([0, 0, 1, 1, 1]))
    assert known.tolist() == [2] and scored.tolist() == [4]
    for part in attacker_data.halves(np.array([0, 1])):
        assert part.size == 0


def test_no_scored_window_shares_samples_with_a_known_one():
    starts = np.concatenate([2 * np.arange(20), 100 + 2 * np.arange(4)])
    group = np.repeat([0, 1], [20, 4])
    overlap = lambda earlier, later: 0 <= starts[later] - starts[earlier] < 8
    known, scored = attacker_data.halves(group, overlap=overlap)
    # Windows of 8 with stride 2: number 9 ends where number 13 begins. In the group of
    # 4 all windows share samples, so none could be scored.
    assert known.tolist() == list(range(10)) and scored.tolist() == list(range(13, 20))
    assert attacker_data.halves(group)[1].tolist() == [*range(12, 20), 23]


def test_a_class_of_one_window_is_refused_at_any_share():
    labels = np.repeat([0, 3], [100, 1])
    message = "side class 3 has one training window.*leave out or merge that class"
    with pytest.raises(ValueError, match=message):
        attacker_data.pick(jax.random.key(0), labels, 1.0, "side")


def test_nothing_that_is_scored_shares_samples_with_what_is_known():
    """One recording per person, with alternating activities, cut with a stride of 3."""
    subject = np.repeat([0, 1], 200)
    activity = (np.arange(400) // 20) % 3
    starts = 3 * (np.arange(400) % 200)
    overlap = lambda one, other: starts[one] <= starts[other] < starts[one] + 16
    near = lambda one, other: subject[one] == subject[other] and abs(one - other) < 6
    for by in (overlap, None):
        known, scored = attacker_data.halves(subject, activity, overlap=by)
        shared = {(k, s) for k in known for s in scored if near(k, s)}
        assert bool(shared) == (by is None)
    assert len(scored) > 100 and set(activity[scored]) == {0, 1, 2}
