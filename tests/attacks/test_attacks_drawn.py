"""Attackers' decisions on drawn evidence, against loops in float64."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn import metrics as oracle

from jaxanon import attacks

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = st.sampled_from([np.float16, np.float32, np.float64, np.int32])
few = functools.partial(settings, deadline=None)


def numbers(seed, shape, dtype=np.float64, scale=3.0):
    found = np.random.default_rng(seed).normal(scale=scale, size=shape)
    return np.round(found).astype(dtype) if dtype == np.int32 else found.astype(dtype)


def wide(x):
    return np.asarray(x, np.float64)


@pytest.mark.slow
@few(max_examples=12)
@given(SEEDS, DTYPES, st.sampled_from([(1,), (4,), (3, 2)]), st.booleans())
def test_correlation_is_pearson_s(seed, dtype, shape, constant):
    one, other = numbers(seed, (2, *shape), dtype)
    other = other[::-1] * 0 + 1 if constant else other
    found = float(jax.jit(attacks.correlation)(one, other))
    assert found == pytest.approx(float(attacks.correlation(one, other)), abs=1e-6)
    spread = [wide(x).std() for x in (one, other)]
    if min(spread) == 0:
        assert found == 0
        return
    expected = stats.pearsonr(wide(one).ravel(), wide(other).ravel())[0]
    assert found == pytest.approx(expected, abs=4e-3 if dtype == np.float16 else 1e-5)
    turned = attacks.correlation(-2 * one, other)
    assert float(turned) == pytest.approx(-found, abs=4e-3)


@few(max_examples=12)
@given(SEEDS, st.sampled_from([1, 3]), st.sampled_from([1, 4]), st.integers(0, 3))
def test_a_dense_layer_gives_away_what_went_in(seed, size, width, dead):
    x, slope = numbers(seed, size, np.float32), numbers(seed + 1, width, np.float32)
    slope[:dead] = 0
    layer = {"kernel": np.outer(x, slope), "bias": slope}
    behind = {"kernel": np.ones((size, width + 1)), "bias": np.ones(width)}
    tree = {"a": {"kernel": np.ones((2, 2))}, "b": behind, "c": {"d": layer}}
    found = jax.jit(attacks.dense_input, static_argnums=1)(tree, size)
    expected = x if np.any(slope) else np.zeros(size)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert attacks.dense_input(tree, size + 5) is None
    assert attacks.dense_input({"a": np.ones(3)}, size) is None


@few(max_examples=10)
@given(SEEDS, DTYPES, st.lists(st.booleans(), min_size=1, max_size=3))
def test_alignments_are_inner_products_over_norms(seed, dtype, zeros):
    shapes = {"w": (2, 3), "v": (4,)}
    draw = lambda seed: {name: numbers(seed, s, dtype) for name, s in shapes.items()}
    names = "cab"[: len(zeros)]
    moved = {name: draw(seed + place) for place, name in enumerate(names)}
    gradient = {
        name: jax.tree.map(lambda x, zero=zero: 0 * x if zero else x, draw(seed + 9))
        for name, zero in zip(names, zeros, strict=True)
    }
    found = attacks.alignments(moved, gradient)
    assert found.dtype == np.float32 and found.shape == (len(zeros),)
    flat = lambda tree: np.concatenate([wide(tree[name]).ravel() for name in "wv"])
    for name, one in zip(sorted(names), found, strict=True):
        own, other = flat(moved[name]), flat(gradient[name])
        norm = np.linalg.norm(other)
        expected = own @ other / norm if norm else 0
        assert float(one) == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert abs(one) <= np.linalg.norm(own) * (1 + 1e-5)


@pytest.mark.slow
@few(max_examples=15)
@given(SEEDS, DTYPES, st.sampled_from([1, 2, 5]), st.floats(-50, 50, width=16))
def test_log_odds_are_those_of_a_softmax(seed, dtype, classes, shift):
    logits = numbers(seed, (4, classes), dtype)
    labels = np.random.default_rng(seed).integers(classes, size=4)
    found = jax.jit(jax.vmap(attacks.log_odds))(logits, labels)
    for row, label, one in zip(logits, labels, found, strict=True):
        others = np.delete(wide(row), label)
        expected = wide(row)[label] - special.logsumexp(others, axis=None)
        tolerance = 2e-2 if dtype == np.float16 else 1e-4
        assert float(one) == pytest.approx(expected, abs=tolerance)
        moved = attacks.log_odds(np.float32(row) + np.float32(shift), label)
        assert float(moved) == pytest.approx(expected, abs=2e-2)


SIZES = st.sampled_from([1, 2, 5])


@few(max_examples=30)
@given(SEEDS, SIZES, SIZES, SIZES, st.sampled_from([np.float32, np.float64]))
def test_windows_of_a_run_vote(seed, runs, length, classes, dtype):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(classes, 0.3), size=(runs, length))
    with np.errstate(divide="ignore"):
        evidence = np.log(shares).astype(dtype)
    odds, votes = attacks.mean_log_odds(evidence), attacks.majority_vote(evidence)
    assert odds.dtype == votes.dtype == np.float64
    clipped = np.clip(np.exp(wide(evidence)), 1e-3, 1 - 1e-3)
    np.testing.assert_allclose(odds, special.logit(clipped).mean(1), atol=1e-9)
    assert (np.abs(odds) <= np.log(999) + 1e-9).all()
    for row, own, said in zip(evidence, odds, votes, strict=True):
        counts = np.bincount(row.argmax(1), minlength=classes)
        # The class with most votes; ties go to the larger evidence.
        best = max(range(classes), key=lambda c: (counts[c], own[c]))
        assert said.argmax() == best
        beyond = said * length - counts
        assert (beyond > 0).all() and (beyond < 1).all()
    order = rng.permutation(length)
    np.testing.assert_allclose(attacks.mean_log_odds(evidence[:, order]), odds)
    np.testing.assert_allclose(attacks.majority_vote(evidence[:, order]), votes)


@few(max_examples=25)
@given(SEEDS, st.sampled_from([(2, 3), (4, 1), (3, 0)]), st.integers(2, 4), DTYPES)
def test_streams_are_compared_by_the_cosine_of_what_is_their_own(
    seed, size, others, dtype
):
    first, second = numbers(seed, size, dtype), numbers(seed + 1, (others, size[1]))
    found = attacks.compare_streams(first, second)
    assert found.shape == (size[0], others)
    assert (np.abs(found) <= 1 + 1e-9).all()
    both = np.concatenate([wide(first), second])
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.nan_to_num(stats.zscore(both, axis=0))
    for row, column in np.ndindex(found.shape):
        one, other = each[row], each[size[0] + column]
        lengths = np.linalg.norm(one) * np.linalg.norm(other)
        expected = one @ other / lengths if lengths else 0
        assert found[row, column] == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(attacks.compare_streams(second, first), found.T)
    entry = np.arange(1.0, 1 + size[1])
    moved = attacks.compare_streams(wide(first) * entry - entry, second * entry - entry)
    np.testing.assert_allclose(moved, found, atol=1e-9)


@given(st.sampled_from([(1, 2), (2, 1)]), st.integers(0, 3))
def test_too_few_streams_or_other_entries_are_refused(sizes, width):
    one, other = (np.ones((size, width)) for size in sizes)
    for pair in ((one, other), (np.ones((2, width)), np.ones((2, width + 1)))):
        with pytest.raises(ValueError, match="first and second must be"):
            attacks.compare_streams(*pair)


@few(max_examples=25)
@given(SEEDS, st.integers(1, 9), DTYPES)
def test_a_profile_is_the_mean_of_a_person_s_windows(seed, number, dtype):
    rng = np.random.default_rng(seed)
    evidence, subjects = numbers(seed, (9, 2), dtype), rng.integers(-1, 3, size=9)
    rows = rng.choice(9, number, replace=False)
    evidence = np.where(np.isin(np.arange(9), rows)[:, None], evidence, wide(np.nan))
    found = attacks.profile_streams(evidence, rows, subjects)
    people = sorted(set(subjects[rows].tolist()))
    assert found.dtype == np.float64 and len(found) == len(people)
    for person, own in zip(people, found, strict=True):
        seen = [wide(evidence[row]) for row in rows if subjects[row] == person]
        np.testing.assert_allclose(own, sum(seen) / len(seen))
    again = attacks.profile_streams(evidence, rows[::-1], subjects)
    np.testing.assert_allclose(again, found)


@few(max_examples=25)
@given(SEEDS, st.sampled_from([2, 3, 9]), st.sampled_from([2, 6]), st.booleans())
def test_members_are_told_as_scikit_learn_has_it(seed, number, others, ties):
    rng = np.random.default_rng(seed)
    draw = lambda size: rng.integers(3, size=size) if ties else rng.normal(size=size)
    own, other = draw(number), draw(others)
    found = attacks.score_membership(own, other)
    truth, every = np.repeat([1, 0], [number, others]), np.concatenate([own, other])
    assert found.auc == pytest.approx(oracle.roc_auc_score(truth, every))
    low, high = found.interval
    assert 0 <= low <= found.auc <= high <= 1
    for rate, told in found.true_positives.items():
        shares = [
            ((own >= at).mean(), (other >= at).mean()) for at in (np.inf, *set(every))
        ]
        assert told == max(true for true, false in shares if false <= rate)
    # It increases.
    assert attacks.score_membership(np.exp(own), np.exp(other)) == found
    turned = attacks.score_membership(other, own)
    assert turned.auc == pytest.approx(1 - found.auc)


@given(
    st.sampled_from(["members", "others"]),
    st.sampled_from(
        [np.zeros(1), np.zeros(0), np.zeros((2, 2)), np.array([0, np.nan])]
    ),
)
def test_members_that_cannot_be_told_are_refused(side, wrong):
    sides = {"members": np.arange(3.0), "others": np.arange(4.0)} | {side: wrong}
    with pytest.raises(ValueError, match=f"{side} must be float|evidence must be"):
        attacks.score_membership(**sides)


@given(st.floats().filter(lambda x: not 0 < x < 1))
def test_another_confidence_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence must be in"):
        attacks.score_membership([0.0, 1.0], [0.0, 2.0], confidence=confidence)


@few(max_examples=20)
@given(SEEDS, SIZES, SIZES, st.sampled_from([(1, 1), (4, 2)]), DTYPES)
def test_nearness_is_less_the_least_distance(seed, number, made, shape, dtype):
    windows = numbers(seed, (number, *shape), dtype)
    synthetic = numbers(seed + 1, (made, *shape), dtype)
    found = attacks.nearness(windows, synthetic)
    apart = lambda one, other: np.sqrt(np.mean((wide(one) - wide(other)) ** 2))
    expected = [-min(apart(one, other) for other in synthetic) for one in windows]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(attacks.nearness(synthetic, synthetic), 0)


@given(st.sampled_from([(0, 4, 1), (2, 4), (2, 3, 1), (2, 4, 1)]))
def test_windows_of_another_shape_or_not_finite_have_no_nearness(shape):
    wrong = np.full(shape, np.nan)
    told = r"windows must be float\[N, time|must be finite"
    for pair in ((wrong, np.zeros((3, 4, 1))), (np.zeros((3, 4, 1)), wrong)):
        with pytest.raises(ValueError, match=told):
            attacks.nearness(*pair)
