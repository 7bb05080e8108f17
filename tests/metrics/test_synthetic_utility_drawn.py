"""Scores of trained models whose values are known beforehand for any drawn data."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import metrics

pytestmark = pytest.mark.slow

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**32 - 1)
# One program for all examples: a single layer, one or two steps.
QUICK = {"net": None, "hidden": (2,), "epochs": 1, "batch": 8}
CLASSES = 3
SIZES = 6, 4  # Windows per class: fewer than those with gaps between halves.


def drawn(seed, count):
    return np.random.default_rng(seed).normal(size=(count, 3, 2))


@few
@given(seeds, st.permutations(range(CLASSES)), st.sampled_from([(0, 1), (0, 0)]), seeds)
def test_of_windows_all_alike_a_classifier_tells_one_class(seed, order, sizes, other):
    """Finds one of the two present classes, never the absent third."""
    labels = np.repeat(order[:2], [SIZES[size] for size in sizes])
    labels = np.random.default_rng(seed).permutation(labels)
    still = np.ones((len(labels), 3, 2)) * drawn(other, 1)
    told = still, labels
    score = lambda: metrics.transfer_scores(
        jax.random.key(seed), told, told, CLASSES, **QUICK
    )
    found = score()
    assert set(found) == {"synthetic_to_real", "real_to_synthetic", "real_to_real"}
    assert set(found.values()) <= {0.0, 0.5}
    assert score() == found  # The key determines all random choices.


@few
@given(seeds, seeds, seeds)
def test_scores_are_shares_of_what_is_judged(seed, one, two):
    labels = np.repeat([0, 1], SIZES[0])
    sides = [(drawn(s, len(labels)), labels.astype(np.int8)) for s in (one, two)]
    found = metrics.transfer_scores(jax.random.key(seed), *sides, CLASSES, **QUICK)
    for score in found.values():  # Three windows of each of two classes.
        assert 0 <= score <= 1 and 6 * score == pytest.approx(round(6 * score))


@few
@given(seeds, seeds, st.sampled_from([0, 3]))
def test_a_discriminator_of_copies_of_one_window_guesses(seed, other, more):
    real = np.ones((12, 3, 2)) * drawn(other, 1)
    made = np.concatenate([real, real[:more]])
    score = lambda *kinds: metrics.discriminative_score(
        jax.random.key(seed), *kinds, **QUICK
    )
    # Equally many of each are scored, so a constant answer is half right.
    assert score(real, made) == score(made, real) == 0
    found = score(drawn(seed, 12), drawn(other, 12))
    # A block of six neighbours out of twelve per class is scored.
    assert 0 <= found <= 0.5 and 12 * found == pytest.approx(round(12 * found))


@few
@given(seeds, seeds, st.sampled_from([1, 5]), st.sampled_from([np.float32, np.int8]))
def test_who_learned_of_what_stands_still_predicts_that_it_does(
    seed, other, count, dtype
):
    """The initial prediction is constant, and its later error is bounded.

    Adam's two steps are 5e-3 and half of that, for a bias and two units below 1.
    """
    real = (9 * drawn(seed, 4)).astype(dtype)
    still = np.repeat(drawn(other, count)[:, :1], 3, axis=1)
    found = metrics.predictive_score(
        jax.random.key(seed), real, still, hidden=2, steps=2, batch=4
    )
    want = np.abs(np.diff(real.astype(np.float64), axis=1)).mean()
    assert found == pytest.approx(want, abs=3 * 7.5e-3 + 1e-4)


WRONG = {
    "rank": lambda x: x[0],
    "width": lambda x: x[..., :1],
    "time": lambda x: x[:, :2],
    "nothing": lambda x: x[:0],
    "nan": lambda x: np.where(np.arange(len(x))[:, None, None] == 3, np.nan, x),
}


@few
@given(st.sampled_from(sorted(WRONG)), st.booleans(), seeds)
def test_windows_and_keys_that_cannot_be_learned_of(what, swap, seed):
    good = drawn(seed, 12)
    bad = WRONG[what](good)
    sides = (bad, good) if swap else (good, bad)
    labels = np.arange(12) % 2
    told = [(side, labels[: len(side)]) for side in sides]
    key = jax.random.key(0)
    for call in (
        lambda: metrics.transfer_scores(key, *told, 2, **QUICK),
        lambda: metrics.discriminative_score(key, *sides, **QUICK),
        lambda: metrics.predictive_score(key, *sides, steps=1, hidden=2),
    ):
        with pytest.raises(ValueError, match="windows must be float|must be finite"):
            call()
    for call in (
        lambda key: metrics.transfer_scores(key, *[(good, labels)] * 2, 2, **QUICK),
        lambda key: metrics.discriminative_score(key, good, good, **QUICK),
        lambda key: metrics.predictive_score(key, good, good, steps=1, hidden=2),
    ):
        for wrong in (seed, None, np.zeros(2, np.uint32)):
            with pytest.raises(TypeError, match="key must be a typed PRNG key"):
                call(wrong)


@few
@given(seeds, st.integers(0, 11), st.sampled_from([-1, 3, 99]), st.booleans())
def test_labels_that_cannot_be_learned_of(seed, row, label, swap):
    good, labels = drawn(seed, 12), np.arange(12) % 2
    out, lone = labels.copy(), labels.copy()
    out[row], lone[row] = label, 2
    for wrong, message in [
        (out, rf"must be in \[0, {CLASSES}\), got {label}"),
        (lone, "must have at least two windows of class 2"),
        (labels[:row], r"labels of \w+ windows must be int\[12\]"),
        (labels[None], r"labels of \w+ windows must be int\[12\]"),
        (labels * 1.0, r"labels of \w+ windows must be int\[12\], got float64"),
    ]:
        sides = [(good, labels), (good, wrong)]
        with pytest.raises(ValueError, match=message):
            metrics.transfer_scores(
                jax.random.key(0), *(sides[::-1] if swap else sides), CLASSES, **QUICK
            )
    few_windows = good[: row % 9 + 1]
    for sides in ((few_windows, good), (good, few_windows)):
        with pytest.raises(ValueError, match="N at least 10, with equal"):
            metrics.discriminative_score(jax.random.key(0), *sides, **QUICK)
    short = good[:, :1]
    with pytest.raises(ValueError, match="at least two samples to predict one, got 1"):
        metrics.predictive_score(jax.random.key(0), short, short)
