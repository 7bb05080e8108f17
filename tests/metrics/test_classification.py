"""Classification scores: by hand, and against scikit-learn."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from jaxanon import metrics

# Rows are true classes: 3 of 4 zeros are right; 1 of 2 ones; class 2 is absent.
LABELS = np.array([0, 0, 0, 0, 1, 1])
GUESSES = np.array([0, 0, 0, 1, 1, 2])
CONFUSION = np.array([[3, 1, 0], [0, 1, 1], [0, 0, 0]])


def test_by_hand():
    confusion = metrics.confusion_matrix(LABELS, GUESSES, 3)
    np.testing.assert_array_equal(confusion, CONFUSION)
    assert metrics.accuracy(confusion) == 4 / 6
    np.testing.assert_allclose(metrics.recall(confusion), [3 / 4, 1 / 2, np.nan])
    np.testing.assert_allclose(metrics.precision(confusion), [1, 1 / 2, 0])
    assert metrics.balanced_accuracy(confusion) == (3 / 4 + 1 / 2) / 2
    # F1: 2·3/(4+3), 2·1/(2+2), and 0 for the predicted but absent class.
    np.testing.assert_allclose(metrics.f1(confusion), [6 / 7, 1 / 2, 0])
    np.testing.assert_allclose(metrics.macro_f1(confusion), (6 / 7 + 1 / 2) / 3)
    assert metrics.chance(confusion) == 1 / 2
    assert metrics.majority(confusion) == 4 / 6


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings("ignore:A single label was found")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_agrees_with_scikit_learn(pairs):
    labels, guesses = np.array(pairs).T
    confusion = metrics.confusion_matrix(labels, guesses, 5)
    np.testing.assert_array_equal(
        confusion, oracle.confusion_matrix(labels, guesses, labels=range(5))
    )
    for ours, theirs in [
        (metrics.accuracy(confusion), oracle.accuracy_score(labels, guesses)),
        (
            metrics.balanced_accuracy(confusion),
            oracle.balanced_accuracy_score(labels, guesses),
        ),
        (
            metrics.macro_f1(confusion),
            oracle.f1_score(labels, guesses, average="macro", zero_division=0),
        ),
    ]:
        assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_labels_of_few_bits_are_counted_where_they_belong(dtype):
    # The number of the pair (15, 14) of 20 classes is 314, more than 8 bits hold.
    found = metrics.confusion_matrix(dtype([15, 3]), dtype([14, 3]), 20)
    assert found[15, 14] == found[3, 3] == 1 and found.sum() == 2


def test_a_constant_guess_is_at_the_reference_levels():
    labels = np.array([0] * 57 + [1] * 43)
    confusion = metrics.confusion_matrix(labels, np.zeros(100, int), 2)
    assert metrics.accuracy(confusion) == metrics.majority(confusion) == 0.57
    assert metrics.balanced_accuracy(confusion) == metrics.chance(confusion) == 0.5


def test_scores_are_strict_json_with_a_row_per_class():
    got = metrics.scores(LABELS, GUESSES, ["a", "b", "never"])
    json.dumps(got, allow_nan=False)
    assert got["windows"] == 6 and got["confusion"] == CONFUSION.tolist()
    assert got["per_class"][1] == {
        "name": "b", "windows": 2, "recall": 0.5, "precision": 0.5, "f1": 0.5,
        "auc": None, "equal_error_rate": None,
    }  # fmt: skip
    assert got["per_class"][2]["recall"] is None
    assert got["macro_f1"] == metrics.macro_f1(CONFUSION)


@pytest.mark.parametrize(
    ("labels", "guesses", "message"),
    [
        ([0, 3], [0, 0], r"labels must be in \[0, 3\), got 0 to 3"),
        ([0, 1], [0, -1], r"predictions must be in \[0, 3\), got -1 to 0"),
        ([0, 1], [0], r"predictions must be one per label, got 1 for 2 labels"),
        (np.zeros(0, int), np.zeros(0, int), r"labels must not be empty"),
        ([0.0, 1.0], [0, 1], r"labels must be int\[N\], got float64\[2\]"),
        ([[0]], [0], r"labels must be int\[N\], got int64\[1, 1\]"),
    ],
)
def test_says_what_was_wrong(labels, guesses, message):
    with pytest.raises(ValueError, match=message):
        metrics.confusion_matrix(labels, guesses, 3)
