"""Mean and standard deviation of reports."""

import math

import pytest

from jaxanon.evaluation.summary import aggregate


def test_numbers_by_hand():
    got = aggregate([{"a": {"b": 1.0}, "c": [2, 3]}, {"a": {"b": 4.0}, "c": [2, 5]}])
    # Deviations of ±1.5 and ±1 from the mean, squared, summed, over n - 1 = 1.
    assert got["a"]["b"] == {"mean": 2.5, "std": pytest.approx(4.5**0.5)}
    assert got["c"][0] == {"mean": 2, "std": 0}
    assert got["c"][1] == {"mean": 4, "std": pytest.approx(2**0.5)}


def test_words_and_gaps():
    got = aggregate([{"w": "mlp", "r": None, "same": "x"}, {"w": "forest", "r": 0.5,
                     "same": "x"}])  # fmt: skip
    assert got == {"w": ["mlp", "forest"], "r": {"mean": 0.5, "std": None}, "same": "x"}
    assert aggregate([{"r": None}, {"r": None}]) == {"r": None}
    assert aggregate([{"r": True}, {"r": True}]) == {"r": True}


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([], "reports must hold at least one"),
        (
            [{"a": 1}, {"b": 1}],
            "reports must not differ in report, got {'a'} and {'b'}",
        ),
        ([{"a": [1]}, {"a": [1, 2]}], "differ in report.a, got 1 and 2"),
        ([{"a": {"b": 1}}, {"a": None}], "report.a, got dict and NoneType"),
    ],
)
def test_what_differs_is_refused(reports, message):
    with pytest.raises(ValueError, match=message):
        aggregate(reports)


def test_figures_that_are_not_finite_have_no_spread():
    found = aggregate([{"loss": value} for value in (float("inf"), -float("inf"))])
    assert math.isnan(found["loss"]["mean"]) and math.isnan(found["loss"]["std"])
