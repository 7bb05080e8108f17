"""The adversaries against anonymizers whose right answer is known."""

import jax
import numpy as np
import pytest

from jaxanon import attacks
from jaxanon.attacks import linkage

ATTACKER = "forest"


def sides(rows, seed):
    """Windows at level -1 or +1: left or right."""
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


def reidentified(anonymize, **options):
    windows, labels = sides(400, 0)
    test, truth = sides(400, 1)
    safe = anonymize(jax.random.key(5), test)
    guesses = attacks.reidentify(
        jax.random.key(0), ATTACKER, anonymize, windows, labels, 2, safe, **options
    )
    return np.mean(guesses == truth)


# Noise: 400 coins have a standard deviation of 0.025.
@pytest.mark.parametrize(
    ("anonymize", "low", "high"),
    [(identity, 0.97, 1), (flip, 0.97, 1), (noise, 0.4, 0.6)],
)
def test_reidentification_sees_through_whatever_keeps_the_information(
    anonymize, low, high
):
    assert low <= reidentified(anonymize) <= high


def test_a_flip_fools_the_judge_that_reidentification_is_not():
    windows, labels = sides(400, 0)
    test, truth = sides(400, 1)
    told = []
    judges = attacks.train_judges(
        jax.random.key(0), windows, {"side": labels}, {"side": 2}, test,
        progress=told.append,
    )  # fmt: skip
    assert told == ["training a judge of side on raw windows"]
    assert np.mean(judges.raw["side"] == truth) > 0.97
    assert np.mean(judges.predict["side"](-test) == truth) < 0.03


def test_the_attacker_learns_from_his_share_of_output_alone():
    seen = []

    def spy(key, windows):
        seen.append(windows.shape)
        return windows

    windows, labels = sides(400, 0)
    attacks.reidentify(
        jax.random.key(0), ATTACKER, spy, windows, labels, 2, windows, share=0.1
    )
    assert seen == [(40, 8, 1)]


def test_too_small_a_share_names_the_attribute():
    with pytest.raises(ValueError, match="of side class 0 is 0"):
        reidentified(identity, share=0.001, attribute="side")


def people(told):
    """Three strangers, two activities each; the level is the person, or is not."""
    rng = np.random.default_rng(0)
    subjects, activities = np.repeat([3, 4, 7], 80), np.tile(np.repeat([0, 1], 40), 3)
    level = subjects[:, None, None] if told else 0
    return np.float32(level + rng.normal(size=(240, 8, 1))), subjects, activities


@pytest.mark.parametrize(("told", "low", "high"), [(True, 0.9, 1), (False, 0.1, 0.57)])
def test_strangers_are_linked_only_if_windows_tell(told, low, high):
    windows, subjects, activities = people(told)
    got = linkage.link_strangers(
        jax.random.key(0), ATTACKER, windows, subjects, activities, 8
    )
    # 6 groups of 40, the last 16 of each; chance is 1/3 with a deviation of 0.05.
    assert len(got.rows) == 96
    assert low <= np.mean(got.guesses == subjects[got.rows]) <= high


def test_linking_needs_two_people():
    windows, _, activities = people(True)
    with pytest.raises(ValueError, match=r"at least 2 test subjects .* got 1"):
        linkage.link_strangers(
            jax.random.key(0), ATTACKER, windows, np.zeros(240, int), activities, 8
        )


@pytest.mark.parametrize("attack", ["reidentify", "link"])
def test_an_unknown_attacker_is_refused_before_any_work(attack):
    windows, labels = sides(8, 0)
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="attackers must be among"):
        if attack == "reidentify":
            attacks.reidentify(key, "x", identity, windows, labels, 2, windows)
        else:
            attacks.link_strangers(key, "x", windows, labels, labels, 2)
