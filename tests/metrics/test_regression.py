"""Regression errors, by hand and against scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from jaxanon import metrics

NUMBERS = st.integers(-1000, 1000).map(float)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=20)


def test_by_hand():
    # Mean 4; SST = 9 + 1 + 16 = 26, errors 1, -1, 2, SSE = 6.
    truth, told = [1.0, 3.0, 8.0], [2.0, 2.0, 10.0]
    assert metrics.r2(truth, told) == pytest.approx(1 - 6 / 26)
    assert metrics.mae(truth, told) == pytest.approx(4 / 3)
    assert metrics.rmse(truth, told) == pytest.approx(2**0.5)
    assert metrics.errors(truth, truth) == {"r2": 1.0, "mae": 0.0, "rmse": 0.0}


@given(PAIRS)
def test_as_scikit_learn(pairs):
    truth, told = np.array(pairs).T
    found = metrics.errors(truth, told)
    assert found["r2"] == pytest.approx(sklearn.metrics.r2_score(truth, told))
    assert found["mae"] == pytest.approx(
        sklearn.metrics.mean_absolute_error(truth, told)
    )
    squared = sklearn.metrics.mean_squared_error(truth, told)
    assert found["rmse"] == pytest.approx(squared**0.5)


@given(PAIRS, st.sampled_from([0.001, -2.0, 1000.0]))
def test_the_unit_is_the_errors_and_not_r2s(pairs, scale):
    truth, told = np.array(pairs).T
    one, other = (
        metrics.errors(truth, told),
        metrics.errors(scale * truth, scale * told),
    )
    assert other["r2"] == pytest.approx(one["r2"])
    for name in ("mae", "rmse"):
        assert other[name] == pytest.approx(abs(scale) * one[name])


@pytest.mark.parametrize("values", [[3.1] * 7, [5.0]])
def test_a_constant_truth_is_defined(values):
    """The mean of seven times 3.1 is not exactly 3.1."""
    truth = np.array(values)
    assert metrics.r2(truth, truth) == 1.0
    assert metrics.r2(truth, truth + 1) == metrics.r2(truth, truth + 9) == 0.0


def test_sums_are_not_taken_in_single_precision():
    truth = np.float32(1e4) + np.arange(4, dtype=np.float32)
    assert metrics.r2(truth, truth + np.float32(1)) == pytest.approx(1 - 4 / 5)


@pytest.mark.parametrize(
    "truth, told, message",
    [
        ([1.0, 2.0], [1.0], "got 1 for 2"),
        ([], [], "truth must not be empty"),
        ([[1.0]], [1.0], r"truth must be float\[N\], got float64\[1, 1\]"),
        ([1.0], ["a"], "predictions must hold real numbers"),
        ([1.0], [np.nan], "predictions must be finite"),
        ([np.inf], [1.0], "truth must be finite"),
    ],
)
def test_says_what_was_wrong(truth, told, message):
    with pytest.raises((TypeError, ValueError), match=message):
        metrics.errors(np.array(truth), np.array(told))
