"""Composition of releases, against sums of fractions."""

import fractions
import math

import hypothesis
import hypothesis.strategies as st
import pytest

from jaxanon import privacy

EPSILONS = st.floats(1e-3, 50.0)
RELEASES = st.dictionaries(EPSILONS, st.integers(0, 10_000), max_size=6)


@hypothesis.given(RELEASES)
def test_a_stream_costs_the_sum_and_a_window_the_largest(releases):
    exact = sum(fractions.Fraction(e) * n for e, n in releases.items())
    assert privacy.sequential(releases) == pytest.approx(float(exact), rel=1e-12)
    met = [epsilon for epsilon, count in releases.items() if count]
    assert privacy.parallel(releases) == max(met, default=0.0)
    assert privacy.parallel(releases) <= privacy.sequential(releases) * (1 + 1e-12)


def test_an_hour_of_windows_every_quarter_of_a_second():
    assert privacy.epsilon_per_hour(0.1, 0.25) == pytest.approx(0.1 * 4 * 3600)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_no_epsilon(epsilon):
    for fails in (privacy.sequential, privacy.parallel):
        with pytest.raises(ValueError, match="epsilon must be finite and > 0, got"):
            fails({epsilon: 1})
    with pytest.raises(ValueError, match="epsilon must be finite and > 0, got"):
        privacy.epsilon_per_hour(epsilon, 1.0)
    with pytest.raises(ValueError, match="stride_s must be finite and > 0, got"):
        privacy.epsilon_per_hour(1.0, epsilon)


@pytest.mark.parametrize("epsilon", ["1", True])
def test_no_number(epsilon):
    for fails in (privacy.sequential, privacy.parallel):
        with pytest.raises(TypeError, match="epsilon must be a number, got"):
            fails({epsilon: 1})
    with pytest.raises(TypeError, match="stride_s must be a number, got"):
        privacy.epsilon_per_hour(1.0, epsilon)


def test_no_count():
    with pytest.raises(ValueError, match="releases must have counts >= 0, got -1"):
        privacy.sequential({1.0: -1})
    for wrong in (1.5, True, "2"):
        with pytest.raises(TypeError, match="releases must have whole counts, got"):
            privacy.parallel({1.0: wrong})
