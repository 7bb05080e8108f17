"""ROC areas and equal error rates: by hand, and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from jaxanon import metrics


def test_auc_by_hand():
    # Class 0 against the rest: 3 beats both, 1 beats 0 and ties with 1: 3.5 of 4. Class
    # 1: 5 and 2 beat both zeros. Class 2 is absent.
    labels = np.array([0, 0, 1, 1])
    evidence = np.array([[3.0, 0, 0], [1, 0, 0], [1, 5, 0], [0, 2, 0]])
    np.testing.assert_array_equal(metrics.auc(labels, evidence), [3.5 / 4, 1, np.nan])


def test_ties_are_worth_half():
    labels = np.arange(10) % 2
    np.testing.assert_array_equal(metrics.auc(labels, np.zeros((10, 2))), [0.5, 0.5])
    # The curve of uninformative evidence is the diagonal, which meets 1 - x at 1/2.
    rates = metrics.equal_error_rate(labels, np.zeros((10, 2)))
    np.testing.assert_array_equal(rates, [0.5, 0.5])


def test_equal_error_rate_by_hand():
    # 1/4 of the class lies below the threshold 0, and 1/4 of the others above it.
    own, others = [1, 2, 3, -1], [-2, -3, -4, 1.5]
    column = np.array(own + others)
    evidence = np.stack([column, -column], 1)
    rates = metrics.equal_error_rate(np.repeat([0, 1], 4), evidence)
    np.testing.assert_allclose(rates, [0.25, 0.25])
    turned = metrics.equal_error_rate(np.repeat([0, 1], 4), -evidence)
    np.testing.assert_allclose(turned, [0.75, 0.75])


def test_perfect_and_inverted():
    labels = np.repeat([0, 1], 5)
    evidence = np.eye(2)[labels]
    np.testing.assert_array_equal(metrics.auc(labels, evidence), [1, 1])
    np.testing.assert_array_equal(metrics.auc(labels, -evidence), [0, 0])
    np.testing.assert_array_equal(metrics.equal_error_rate(labels, evidence), [0, 0])
    np.testing.assert_array_equal(metrics.equal_error_rate(labels, -evidence), [1, 1])


CASES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), min_size=2
)


@settings(max_examples=60)
@given(CASES)
def test_agrees_with_scikit_learn(rows):
    labels, *columns = np.array(rows).T
    evidence = np.stack([*columns, columns[0] - columns[1]], 1).astype(float)
    areas = metrics.auc(labels, evidence)
    rates = metrics.equal_error_rate(labels, evidence)
    for label in range(3):
        own = labels == label
        if own.all() or not own.any():
            assert np.isnan(areas[label]) and np.isnan(rates[label])
            continue
        column = evidence[:, label]
        assert areas[label] == pytest.approx(oracle.roc_auc_score(own, column))
        x, y, _ = oracle.roc_curve(own, column, drop_intermediate=False)
        # x + y increases along the curve, so a search finds where it is 1.
        assert rates[label] == pytest.approx(np.interp(0, x + y - 1, x), abs=1e-9)


def test_any_rising_function_of_the_evidence_will_do():
    rng = np.random.default_rng(0)
    labels, evidence = rng.integers(3, size=50), rng.normal(size=(50, 3))
    for measure in (metrics.auc, metrics.equal_error_rate):
        np.testing.assert_allclose(
            measure(labels, evidence), measure(labels, np.exp(3 * evidence) - 7)
        )


def test_scores_average_over_the_classes_that_have_one():
    labels, guesses = [0, 0, 1, 1], [0, 0, 1, 0]
    evidence = np.array([[3.0, 0, 0], [1, 0, 0], [1, 5, 0], [0, 2, 0]])
    got = metrics.scores(labels, guesses, ["a", "b", "never"], evidence=evidence)
    assert got["auc"] == (3.5 / 4 + 1) / 2
    assert [row["auc"] for row in got["per_class"]] == [3.5 / 4, 1, None]
    assert got["per_class"][1]["equal_error_rate"] == 0
    assert metrics.scores(labels, guesses, ["a", "b"])["auc"] is None
    alone = metrics.scores([0], [0], ["a", "b"], evidence=[[1, 0]])
    assert alone["auc"] is None and alone["equal_error_rate"] is None


@pytest.mark.parametrize("measure", [metrics.auc, metrics.equal_error_rate])
def test_says_what_was_wrong(measure):
    with pytest.raises(ValueError, match=r"evidence must be float\[3, 2\].*\(2, 2\)"):
        measure(np.zeros(3, int), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="evidence must be numbers, got NaN"):
        measure(np.zeros(2, int), np.full((2, 2), np.nan))


def test_the_curve_is_scikit_learn_s():
    rng = np.random.default_rng(0)
    own = rng.random(200) < 0.4
    evidence = np.round(rng.normal(size=200) + own, 1)
    false, true = metrics.roc(own, evidence)
    want = oracle.roc_curve(own, evidence, drop_intermediate=False)
    np.testing.assert_allclose([false, true], want[:2])
    # The largest fraction of the class above a threshold that few others reach.
    for rate in (0.0, 0.01, 0.3, 1.0):
        reach = [t for t in [*evidence, np.inf] if (evidence[~own] >= t).mean() <= rate]
        most = max((evidence[own] >= t).mean() for t in reach)
        assert metrics.true_positive_rate(own, evidence, rate) == pytest.approx(most)


@pytest.mark.parametrize("rate", [-0.1, 1.5, np.nan])
def test_no_other_rate_is_asked_for(rate):
    with pytest.raises(ValueError, match=r"false_positive_rate must be in \[0, 1\]"):
        metrics.true_positive_rate([True, False], [1.0, 0.0], rate)


def test_a_curve_needs_both_sides():
    with pytest.raises(
        ValueError, match="True for some windows and False for others, got 2"
    ):
        metrics.roc([True, True], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"evidence must be float\[2, 1\]"):
        metrics.roc([True, False], [0.0, 1.0, 2.0])
