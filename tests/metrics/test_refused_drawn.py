"""Metrics reject drawn invalid arguments by name."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import metrics

some = settings(max_examples=20, deadline=None)
BROKEN = st.sampled_from([math.nan, math.inf, -math.inf])
OUTSIDE = st.sampled_from([-0.1, 1.0, 1.5, math.nan, math.inf])
SIDES = np.repeat([True, False], 5)
LOADS = np.arange(1.0, 11.0)
RUNS = LOADS.reshape(2, 5)
GOOD = np.random.default_rng(0).normal(size=(12, 4, 2))
LABELS = np.arange(12) % 2


def refused(call, message):
    """Asserts that a call raises an error that names the invalid argument."""
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@some
@given(st.integers(0, 9), BROKEN, st.sampled_from([(3,), (1, 10), (0,), ()]))
def test_loads_that_cannot_be_compared(row, broken, shape):
    harmed, other = LOADS.copy(), np.ones(shape)
    harmed[row] = broken
    for measure in (metrics.mase, metrics.forecast_errors):
        for place in range(3):
            given = [LOADS, LOADS + 1, LOADS + 2]
            given[place] = harmed
            refused(lambda m=measure, g=given: m(*g), "loads must be finite, got NaN")
            given[place] = other
            refused(lambda m=measure, g=given: m(*g), "must have one shape and not be")
    empty = np.ones((0, 2))
    refused(lambda: metrics.load_accuracy(empty, empty), "one shape and not be empty")
    refused(lambda: metrics.load_accuracy(harmed, LOADS), "loads must be finite")
    refused(lambda: metrics.load_accuracy(LOADS, other), "must have one shape")
    for floor in (-abs(broken), 0, -row):
        refused(lambda f=floor: metrics.load_accuracy(LOADS, LOADS, f), "floor must be")


@some
@given(OUTSIDE, st.integers(0, 9), st.sampled_from([(2,), (3, 4), (1, 4), (2, 0), ()]))
def test_evidence_and_guesses_that_prove_nothing(outside, row, shape):
    told = np.where(np.arange(10) == row, math.nan, LOADS)
    interval, lower = metrics.auc_interval, metrics.epsilon_lower_bound
    refused(lambda: interval(SIDES, told), "evidence must be numbers, got NaN")
    refused(lambda: interval(SIDES, LOADS[:row]), "evidence must be float")
    refused(lambda: interval(LOADS > 9, LOADS), "at least two windows.*1 and 9")
    refused(lambda: interval(LOADS > row / 9, LOADS), "True for at least two windows")
    guesses = lambda *given, **kw: metrics.epsilon_from_guesses(*given, **kw)
    refused(lambda: interval(SIDES, LOADS, outside), "confidence must be in")
    for least in (outside, 0.49):
        confident = {"confidence": least}
        refused(
            lambda c=least: metrics.proportion_bounds(1, 2, c), "confidence must be in"
        )
        refused(lambda c=confident: lower(RUNS, RUNS, 0, **c), "confidence must be in")
        refused(lambda c=confident: guesses(1, 2, 3, 0, **c), "confidence must be in")
    refused(lambda: lower(RUNS, RUNS, outside), "delta must be in")
    refused(lambda: guesses(1, 2, 3, outside), "delta must be in")
    for name in ("chosen_on", "counted_on"):
        given = {"chosen_on": RUNS, "counted_on": RUNS, "delta": 0.0}
        own = given | {name: np.zeros(shape)}
        refused(lambda o=own: lower(**o), name + r" must be float\[2, runs\]")
        own = given | {name: told.reshape(2, 5)}
        refused(lambda o=own: lower(**o), f"{name} must be numbers, got NaN")
    for wrong in ((-1 - row, 2, 5), (3 + row, 2, 15), (1, 6 + row, 5), (0, 0, -row)):
        refused(lambda w=wrong: guesses(*w, 0.0), "0 <= right <= guesses <= canaries")


@some
@given(st.integers(0, 9), st.sampled_from([(12,), (12, 2, 1), ()]))
def test_features_that_are_too_few_or_tell_apart_nothing(row, shape):
    key, rows = jax.random.key(0), GOOD[:, 0]
    told = lambda features, labels: metrics.informativeness(key, features, labels)
    refused(lambda: told(np.ones(shape), LABELS), r"features must be float\[N, feat")
    refused(lambda: told(rows, LABELS[:row]), r"features must be float.*labels int\[N")
    refused(lambda: told(rows[:row], LABELS[:row]), f"at least 10 rows, got {row}")
    refused(lambda: told(rows, 0 * LABELS + row), f"two classes, got only {row}")


PAIRS = {
    "mmd": (metrics.mmd, 2),
    "autocorrelation_error": (metrics.autocorrelation_error, 1),
    "cross_channel_error": (metrics.cross_channel_error, 1),
    "nearest_distances": (metrics.nearest_distances, 1),
    "memorisation": (lambda x, y: metrics.memorization(y, x, GOOD), 1),
    "held_out": (lambda x, y: metrics.memorization(y, GOOD, x), 1),
    "frechet_distance": (
        lambda x, y: metrics.frechet_distance(np.mean(x, 1), np.mean(y, 1)),
        2,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@some
@given(
    st.booleans(), st.integers(0, 11), BROKEN, st.sampled_from(["row", "rank", "width"])
)
def test_windows_that_are_like_nothing(name, swap, row, broken, what):
    measure, least = PAIRS[name]
    turned = lambda x: measure(*((x, GOOD) if swap else (GOOD, x)))
    harmed = GOOD.copy()
    harmed[row, row % 4, row % 2] = broken
    refused(
        lambda: turned(harmed), f"must be finite, got 1 rows .*, the first at {row}"
    )
    refused(
        lambda: turned(GOOD[: least - 1]), "got shapes .*must be|must be .*got shapes"
    )
    wrong = {"row": GOOD[0], "rank": GOOD[None], "width": GOOD[..., :1]}[what]
    if name != "frechet_distance" or what != "row":
        refused(lambda: turned(wrong), "must be float.*got shapes")


@some
@given(OUTSIDE, st.integers(2, 5), st.sampled_from([0, -1, 9]))
def test_settings_that_measures_have_no_use_for(outside, time, lag):
    short = GOOD[:, :time] if time < 4 else GOOD
    error = lambda lag: metrics.autocorrelation_error(short, short, max_lag=lag)
    for wrong in (lag, short.shape[1], outside - outside):
        refused(lambda w=wrong: error(w), "max_lag must be")
    one = GOOD[:, :1]
    refused(
        lambda: metrics.autocorrelation_error(one, one), r"max_lag must be in \[1, 1"
    )
    lone = GOOD[..., :1]
    refused(lambda: metrics.cross_channel_error(lone, lone), "at least two channels")
    fraction = {"fraction": outside}
    refused(
        lambda: metrics.memorization(GOOD, GOOD, GOOD, **fraction), "fraction must be"
    )
    width = min(outside, 0.0) if outside < 2 else outside
    refused(lambda: metrics.mmd(GOOD, GOOD, bandwidth=width), "bandwidth must be > 0")
    still = np.full((time, 2, 1), 1.5)
    refused(lambda: metrics.mmd(still, GOOD[:, :2, :1]), "bandwidth .* all alike")


@some
@given(
    st.sampled_from([(12, 4), (11, 4, 2), (12, 3, 2), (12, 4, 1), (12, 4, 2, 1), ()])
)
def test_windows_that_are_not_the_same_anonymized(shape):
    other, words = np.ones(shape), "raw and safe must be the same windows"
    for raw, safe in ((GOOD, other), (other, GOOD), (GOOD[:0], GOOD[:0])):
        refused(lambda r=raw, s=safe: metrics.warping_distances(r, s), words)
        refused(
            lambda r=raw, s=safe: metrics.compare_statistics(r, s, ["x", "y"]), words
        )
        refused(lambda r=raw, s=safe: metrics.step_errors(r, s, 50.0), words)
    for names in ([], ["x"], ["x", "y", "z"]):
        refused(
            lambda n=names: metrics.compare_statistics(GOOD, GOOD, n),
            "channels must name the 2 channels",
        )


@some
@given(st.sampled_from([0, 9, -1, 1.5, True, "5000"]))
def test_subsets_too_small_to_estimate_from(size):
    key = jax.random.key(0)
    flat = GOOD.reshape(12, -1)
    for call in (
        lambda: metrics.informativeness(key, flat, LABELS, max_windows=size),
        lambda: metrics.mutual_information_table(key, GOOD, LABELS, max_windows=size),
    ):
        refused(call, "max_windows")


@some
@given(st.sampled_from([0, 4, -1, 1.5, True, "2"]))
def test_lags_that_there_are_not(lag):
    refused(lambda: metrics.autocorrelation_error(GOOD, GOOD, max_lag=lag), "max_lag")


@pytest.mark.parametrize("names", [("acc.x",), ("acc.x", "acc.y", "acc.z")])
def test_names_of_other_channels_than_there_are(names):
    call = lambda: metrics.acceleration(GOOD, names, ("g",) * len(names))
    refused(call, rf"windows must be float\[N, time, {len(names)}\]")
