"""Sums of randomised responses: the exact theorem, closed forms, and errors."""

import math

import gaussian
import hypothesis
import hypothesis.strategies as st
import pytest
from scipy import optimize, special

from jaxanon.privacy import response_epsilon_for, responses_spent
from jaxanon.privacy.composition import divergence


def exact(epsilon, count, delta):
    """Solves Theorem 3.3 of Kairouz, Oh and Viswanath for the sum's ε.

    If i of k answers are the unlikely ones, the loss is (k - 2i) ε with probability
    C(k, i) e^{(k - i) ε} / (1 + e^ε)^k.
    """

    def excess(total):
        found = 0.0
        for i in range(count + 1):
            loss = (count - 2 * i) * epsilon
            if loss > total:
                log = (count - i) * epsilon - count * math.log1p(math.exp(epsilon))
                log += special.gammaln(count + 1)
                log -= special.gammaln(i + 1) + special.gammaln(count - i + 1)
                found += math.exp(log) * -math.expm1(total - loss)
        return found - delta

    return optimize.brentq(excess, 0, count * epsilon) if excess(0) > 0 else 0.0


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.02, 900), (1.0, 60)])
def test_lies_above_the_exact_sum_and_not_far(epsilon, count):
    least = exact(epsilon, count, 1e-5)
    told = responses_spent(epsilon, count, 1e-5)
    assert least <= told <= min(1.25 * least, count * epsilon)
    assert least < 0.9 * count * epsilon


def test_many_small_answers_cost_what_gaussian_noise_would():
    """The divergence is α ε² / 2, so at most ε² k / 2 + √(2 k ln(1/δ)) ε."""
    told = responses_spent(1e-3, 100_000, 1e-6)
    mean = 1e-6 * 100_000 / 2
    assert told < mean + math.sqrt(4 * mean * math.log(1e6))
    assert told > 0.7 * math.sqrt(4 * mean * math.log(1e6))


@pytest.mark.parametrize(
    ("epsilon", "count"), [(5e-8, 10**10), (5e-8, 10**12), (1e-8, 10**16)]
)
def test_answers_that_tell_next_to_nothing_are_counted(epsilon, count):
    """In the limit they equal Gaussian noise of multiplier 1 / ε√k."""
    least = gaussian.exact(1 / (epsilon * math.sqrt(count)), 1e-5)
    assert least <= responses_spent(epsilon, count, 1e-5) <= max(1.35 * least, 0.02)


def test_a_small_budget_of_many_answers_is_kept():
    each = response_epsilon_for(0.001, 10**8, 1e-9)
    assert gaussian.exact(1 / (each * 10**4), 1e-9) <= 0.001


@hypothesis.given(st.floats(1e-3, 8.0), st.sampled_from([1.011, 1.5, 2.0, 16.0]))
def test_divergences_are_those_of_two_coins(epsilon, order):
    p = 1 / (1 + math.exp(-epsilon))
    total = sum(a**order * b ** (1 - order) for a, b in ((p, 1 - p), (1 - p, p)))
    assert divergence(epsilon, order) == pytest.approx(
        math.log(total) / (order - 1), rel=1e-6
    )


def test_few_large_answers_add_up():
    assert responses_spent(2.0, 3, 1e-5) == 6.0
    assert responses_spent(700.0, 10, 1e-5) == 7000.0
    assert responses_spent(2.0, 0, 1e-5) == 0.0
    # Two values apart by e^ε: the mean loss is ε tanh(ε / 2), all that remains of many.
    per = responses_spent(1.0, 10**7, 1e-5) / 10**7
    assert math.tanh(0.5) < per < 1.02 * math.tanh(0.5)


@pytest.mark.parametrize("count", [1, 1000, 10**7])
def test_a_budget_is_used_up_and_kept(count):
    each = response_epsilon_for(3.0, count, 1e-5)
    spent = responses_spent(each, count, 1e-5)
    assert 2.99 <= spent <= 3.0
    assert responses_spent(1.002 * each, count, 1e-5) > 3.0


def test_says_what_was_wrong():
    with pytest.raises(ValueError, match="epsilon must be finite and > 0, got 0"):
        responses_spent(0.0, 3, 1e-5)
    with pytest.raises(ValueError, match="count must be >= 0, got -1"):
        responses_spent(1.0, -1, 1e-5)
    with pytest.raises(TypeError, match=r"count must be a Python int, got 1\.5"):
        responses_spent(1.0, 1.5, 1e-5)
    with pytest.raises(ValueError, match="delta must be below 1, got 1"):
        responses_spent(1.0, 3, 1.0)
    with pytest.raises(ValueError, match="count must be >= 1, got 0"):
        response_epsilon_for(1.0, 0, 1e-5)
