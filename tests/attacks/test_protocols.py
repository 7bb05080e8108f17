"""Attackers against anonymizers whose right answer is known."""

import jax
import numpy as np
import pytest

from jaxanon import attacks
from jaxanon.attacks import linkage

ATTACKER = "forest"


def sides(rows, seed):
    """Returns windows at level -1 or +1: left or right."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    level = 2.0 * labels[:, None, None] - 1
    return np.float32(level + 0.3 * rng.normal(size=(rows, 8, 1))), labels


def identity(key, windows):
    return windows


def flip(key, windows):
    return -windows


def noise(key, windows):
    return np.asarray(jax.random.normal(key, windows.shape))


def target(anonymize, attribute="side"):
    windows, labels = sides(400, 0)
    safe = anonymize(jax.random.key(5), sides(400, 1)[0])
    return attacks.Target(anonymize, windows, labels, 2, safe, attribute)


def keys(count=1):
    return jax.random.split(jax.random.key(0), count)


def right(evidence):
    return np.mean(evidence.argmax(1) == sides(400, 1)[1])


# Noise: 400 coins have a standard deviation of 0.025.
def test_reidentification_sees_through_whatever_keeps_the_information():
    targets = [target(anonymize) for anonymize in (identity, flip, noise)]
    known, flipped, lost = attacks.reidentify(keys(3), ATTACKER, targets)
    assert right(known) > 0.97 and right(flipped) > 0.97
    assert 0.4 <= right(lost) <= 0.6


def test_each_target_has_a_key_of_its_own():
    one = attacks.reidentify(keys(2), ATTACKER, [target(noise)] * 2)
    np.testing.assert_array_equal(
        one[1], attacks.reidentify(keys(2)[1:], ATTACKER, [target(noise)])[0]
    )
    assert np.any(one[0] != one[1])


def test_a_flip_fools_the_judge_that_reidentification_is_not():
    windows, labels = sides(400, 0)
    test, truth = sides(400, 1)
    told = []
    raw_classifiers = attacks.train_raw_classifiers(
        jax.random.key(0), windows, {"side": labels}, {"side": 2}, test,
        attacker="logistic", progress=told.append,
    )  # fmt: skip
    assert told == ["training classifiers of side on raw windows"]
    assert np.mean(raw_classifiers.raw["side"].argmax(1) == truth) > 0.97
    assert np.mean(raw_classifiers.infer["side"](-test).argmax(1) == truth) < 0.03


@pytest.mark.slow
def test_judges_of_several_attributes_are_those_of_each_alone():
    windows, side = sides(100, 0)
    labels = {"side": side, "half": np.repeat([0, 1], 50)}
    train = lambda names: attacks.train_raw_classifiers(
        jax.random.key(0), windows, labels, dict.fromkeys(names, 2), windows,
        attacker="logistic",
    )  # fmt: skip
    both, alone = train(["side", "half"]), train(["side"])
    np.testing.assert_array_equal(both.raw["side"], alone.raw["side"])
    assert np.mean(both.raw["half"].argmax(1) == labels["half"]) < 0.9


def test_judges_hold_nothing_back(monkeypatch):
    told, tree = [], attacks.ATTACKERS["tree"]

    def spy(*sets, hold_back=True):
        told.append((hold_back, *sets[1:3]))
        return tree.fit_sets(*sets, hold_back=hold_back)

    monkeypatch.setitem(attacks.ATTACKERS, "tree", tree._replace(fit_sets=spy))
    windows, side = sides(100, 0)
    labels, sizes = (
        {"side": side, "half": np.repeat([0, 1], 50)},
        {"side": 2, "half": 2},
    )
    attacks.train_raw_classifiers(
        jax.random.key(0), windows, labels, sizes, windows, attacker="tree"
    )
    ((hold_back, seen, truths),) = told
    assert hold_back is False and len(seen) == 2
    for own, truth, name in zip(seen, truths, sizes, strict=True):
        np.testing.assert_array_equal(own, windows)
        np.testing.assert_array_equal(truth, labels[name])


def test_the_attacker_learns_from_his_share_of_output_alone():
    seen = []

    def spy(key, windows):
        seen.append(windows.shape)
        return windows

    windows, labels = sides(400, 0)
    own = attacks.Target(spy, windows, labels, 2, windows)
    attacks.reidentify(keys(), "tree", [own], share=0.1)
    assert seen == [(40, 8, 1)]


def test_as_released_is_training_accuracy():
    truth = sides(400, 1)[1]
    lost = target(noise)
    (own,) = attacks.reidentify_as_released(keys(), "tree", [lost], [truth])
    assert np.bincount(truth[own.rows]).tolist() == [40, 40]
    # A tree memorizes its own noise windows, and fails on all others.
    assert np.mean(own.evidence.argmax(1) == truth[own.rows]) > 0.85
    assert right(attacks.reidentify(keys(), "tree", [lost])[0]) < 0.6


def test_as_released_nothing_is_held_back(monkeypatch):
    told, tree = [], attacks.ATTACKERS["tree"]

    def spy(*sets, hold_back=True):
        told.append((hold_back, *sets[1:3]))
        return tree.fit_sets(*sets, hold_back=hold_back)

    monkeypatch.setitem(attacks.ATTACKERS, "tree", tree._replace(fit_sets=spy))
    own, truth = target(identity), sides(400, 1)[1]
    (found,) = attacks.reidentify_as_released(keys(), "tree", [own], [truth])
    attacks.reidentify(keys(), "tree", [own])
    assert [one[0] for one in told] == [False, True]
    _, (windows,), (labels,) = told[0]
    np.testing.assert_array_equal(windows, own.safe_test[found.rows])
    np.testing.assert_array_equal(labels, truth[found.rows])


def signed(rows, seed):
    """Returns a level whose sign means left in one activity and right in the other."""
    rng = np.random.default_rng(seed)
    side, activity = np.arange(rows) % 2, np.arange(rows) // 2 % 2
    level = (2.0 * side - 1) * (2 * activity - 1)
    windows = level[:, None, None] + 0.3 * rng.normal(size=(rows, 8, 1))
    return np.float32(windows), side, activity


def test_by_class_there_is_an_attacker_for_each_activity():
    windows, side, activity = signed(400, 0)
    safe, truth, tested = signed(200, 1)
    own = attacks.Target(identity, windows, side, 2, safe, "side")
    # One linear model cannot handle the changing sign; one per activity can.
    (together,) = attacks.reidentify(keys(), "logistic", [own])
    assert np.mean(together.argmax(1) == truth) < 0.7
    by_class = lambda **options: attacks.reidentify_by_class(
        keys(), "logistic", [own], activity, tested, **options
    )
    (apart,) = by_class()
    assert np.mean(apart.argmax(1) == truth) > 0.97
    tested = np.where(np.arange(200) < 9, 7, tested)
    assert not by_class()[0][:9].any() and by_class()[0][9:].all()
    with pytest.raises(ValueError, match="side within public class 0, class 0 is 1"):
        by_class(share=0.01)


def test_too_small_a_share_names_the_attribute():
    with pytest.raises(ValueError, match="of side class 0 is 0"):
        attacks.reidentify(keys(), "tree", [target(identity)], share=0.001)


def people(told):
    """Returns three unseen subjects with two activities.

    The level may be the person.
    """
    rng = np.random.default_rng(0)
    subjects, activities = np.repeat([3, 4, 7], 80), np.tile(np.repeat([0, 1], 40), 3)
    level = subjects[:, None, None] if told else 0
    return np.float32(level + rng.normal(size=(240, 8, 1))), subjects, activities


@pytest.mark.parametrize(("told", "low", "high"), [(True, 0.9, 1), (False, 0.1, 0.57)])
def test_strangers_are_linked_only_if_windows_tell(told, low, high):
    windows, subjects, activities = people(told)
    (got,) = linkage.link_unseen_subjects(
        keys(), ATTACKER, [windows], subjects, activities, 8
    )
    # 6 groups of 40, the last 16 of each; chance level is 1/3 with a std of 0.05.
    assert len(got.rows) == 96
    assert low <= np.mean(got.evidence.argmax(1) == subjects[got.rows]) <= high


def test_linking_needs_two_people():
    windows, _, activities = people(True)
    with pytest.raises(ValueError, match=r"at least 2 test subjects .* got 1"):
        linkage.link_unseen_subjects(
            keys(), ATTACKER, [windows], np.zeros(240, int), activities, 8
        )


@pytest.mark.parametrize("attack", ["reidentify", "released", "by class", "link"])
def test_an_unknown_attacker_is_refused_before_any_work(attack):
    windows, labels = sides(8, 0)
    own = attacks.Target(None, windows, labels, 2, windows)
    with pytest.raises(ValueError, match="attackers must be among"):
        if attack == "reidentify":
            attacks.reidentify(keys(), "x", [own])
        elif attack == "released":
            attacks.reidentify_as_released(keys(), "x", [own], [labels])
        elif attack == "by class":
            attacks.reidentify_by_class(keys(), "x", [own], labels, labels)
        else:
            attacks.link_unseen_subjects(keys(), "x", [windows], labels, labels, 2)
