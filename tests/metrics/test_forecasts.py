"""Forecasts: the chapter's accuracy away from zero, and baseline-scaled errors."""

import numpy as np
import pytest

from jaxanon import metrics


def test_above_the_floor_accuracy_is_the_chapter_s():
    rng = np.random.default_rng(0)
    truth = rng.uniform(1, 200, (5, 60))
    predictions = truth * rng.uniform(0.1, 1.9, truth.shape)
    expected = np.mean(1 - np.abs(predictions - truth) / truth)
    assert metrics.load_accuracy(truth, predictions) == pytest.approx(expected)


def test_accuracy_where_nothing_is_taken():
    # Predictions of 0, 0.4 and 40 W for a truth of 0: 1, 0.6 and 0.
    found = metrics.load_accuracy([0.0, 0.0, 0.0], [0.0, 0.4, 40.0])
    assert found == pytest.approx((1 + 0.6 + 0) / 3)
    assert metrics.load_accuracy([0.0], [0.4], floor=0.8) == pytest.approx(0.5)


def test_persistence_scales_itself_to_one():
    truth, held = np.array([3.0, 9.0, 0.0]), np.full(3, 3.0)
    assert metrics.mase(truth, held, held) == 1
    # Errors 0, 3, 3 against 0, 6, 3.
    assert metrics.mase(truth, [3.0, 6.0, 3.0], held) == pytest.approx(6 / 9)


def test_a_baseline_that_never_errs():
    assert metrics.mase([2.0, 2.0], [2.0, 2.0], [2.0, 2.0]) == 1
    assert metrics.mase([2.0, 2.0], [2.0, 2.5], [2.0, 2.0]) == np.inf


def test_all_errors_together():
    found = metrics.forecast_errors([10.0, 20.0], [13.0, 16.0], [10.0, 10.0])
    assert found == {
        "accuracy": pytest.approx((0.7 + 0.8) / 2),
        "mae": 3.5,
        "rmse": pytest.approx(12.5**0.5),
        "mase": pytest.approx(0.7),
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.load_accuracy([1.0], [1.0], floor=0), "floor must be > 0"),
        (lambda: metrics.load_accuracy([1.0], [1.0, 2.0]), r"got \(1,\) and \(2,\)"),
        (lambda: metrics.mase([], [], []), "must have one shape and not be empty"),
        (lambda: metrics.mase([1.0], [np.nan], [1.0]), "loads must be finite"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
