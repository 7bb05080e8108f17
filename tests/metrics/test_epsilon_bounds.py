"""Lower bounds of ε: mechanisms with known ε, and their coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from jaxanon import metrics
from jaxanon.privacy import SampledGaussian, epsilon_spent


def test_bounds_on_a_share_are_those_of_scipy():
    for hits, trials in ((0, 7), (3, 50), (7, 7), (400, 1000)):
        told = [
            float(bound) for bound in metrics.proportion_bounds(hits, trials, 0.975)
        ]
        want = stats.binomtest(hits, trials).proportion_ci(0.95, method="exact")
        assert told == pytest.approx([want.low, want.high])
    low, high = metrics.proportion_bounds(np.array([[1], [2]]), np.array([4, 9]), 0.9)
    assert low.shape == high.shape == (2, 2) and (low < high).all()


def test_bounds_hold_where_shares_differ_from_trial_to_trial():
    rng = np.random.default_rng(0)
    shares = np.array([0.01, 0.2, 0.9])
    hits = rng.binomial(10, shares, size=(20_000, 3)).sum(1)
    low, high = metrics.proportion_bounds(hits, 30, 0.95)
    wrong = (low > shares.mean()).mean(), (high < shares.mean()).mean()
    assert max(wrong) <= 0.05


def runs(rng, count, sample):
    """Returns the evidence of two halves from ``sample(rng, member, shape)``."""
    draw = lambda: np.stack([sample(rng, member, count) for member in (0, 1)])
    return draw(), draw()


def randomised(epsilon):
    """Randomised response: the right bit with probability e^ε / (1 + e^ε)."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda rng, member, shape: np.where(
        rng.random(shape) < right, member, 1 - member
    ).astype(float)


def test_a_bit_that_is_randomised_costs_what_it_is_known_to():
    rng = np.random.default_rng(0)
    for epsilon in (0.3, 1.0, 3.0):
        halves = runs(rng, 20_000, randomised(epsilon))
        found = metrics.epsilon_lower_bound(*halves, 0.0)
        assert 0.85 * epsilon < found <= epsilon


def test_what_is_lost_with_probability_delta_is_not_counted():
    def lost(rng, member, shape):
        return np.where(rng.random(shape) < 0.05, 5.0 * member, 0.0)

    halves = runs(np.random.default_rng(0), 5_000, lost)
    assert metrics.epsilon_lower_bound(*halves, 0.05) < 0.01
    assert metrics.epsilon_lower_bound(*halves, 0.01) > 3


def test_either_inequality_counts():
    """Half of the runs without the example look unlike any run with it."""

    def sample(rng, member, shape):
        return np.where(rng.random(shape) < 0.5, 1.0, member)

    for swap in (False, True):
        halves = runs(np.random.default_rng(0), 2_000, sample)
        turned = [-half[::-1] if swap else half for half in halves]
        # 0.5 less its error, over 3.7 / 2000, which no run can rule out.
        found = metrics.epsilon_lower_bound(*turned, 0.0)
        assert found == pytest.approx(math.log(0.48 * 2000 / 3.7), abs=0.1)


@pytest.mark.parametrize("multiplier", [1.0, 4.0])
def test_gaussian_noise_costs_at_least_nearly_what_is_accounted(multiplier):
    def sample(rng, member, shape):
        return member + multiplier * rng.normal(size=shape)

    spent = epsilon_spent([SampledGaussian(noise_multiplier=multiplier)], 1e-3)
    halves = runs(np.random.default_rng(0), 100_000, sample)
    assert 0.7 * spent < metrics.epsilon_lower_bound(*halves, 1e-3) <= spent
    too_little = 0.7 * multiplier
    halves = runs(
        np.random.default_rng(0),
        100_000,
        lambda rng, member, shape: member + too_little * rng.normal(size=shape),
    )
    assert metrics.epsilon_lower_bound(*halves, 1e-3) > spent


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_wrong_as_rarely_as_it_says(epsilon):
    rng, sample = np.random.default_rng(0), randomised(epsilon)
    bound = lambda: metrics.epsilon_lower_bound(
        *runs(rng, 300, sample), 0.0, confidence=0.8
    )
    assert np.mean([bound() > epsilon for _ in range(200)]) <= 0.2


def test_wrong_more_often_where_half_of_the_runs_chooses_and_counts():
    """The evidence is uninformative, so any ε above 0 is wrong."""
    rng, wrong = np.random.default_rng(0), np.zeros(2)
    for _ in range(100):
        chosen, counted = runs(rng, 300, lambda rng, member, n: rng.normal(size=n))
        for place, half in enumerate((counted, chosen)):
            found = metrics.epsilon_lower_bound(chosen, half, 0.0, confidence=0.8)
            wrong[place] += found > 0
    assert wrong[0] <= 20 < 30 <= wrong[1]


def test_says_what_was_wrong():
    good = np.zeros((2, 5))
    bound = metrics.epsilon_lower_bound
    with pytest.raises(ValueError, match=r"counted_on must be float\[2, runs\]"):
        bound(good, np.zeros(5), 0.0)
    with pytest.raises(ValueError, match=r"chosen_on must be float\[2, runs\].*\(2, 0"):
        bound(np.zeros((2, 0)), good, 0.0)
    with pytest.raises(ValueError, match="counted_on must be numbers, got NaN"):
        bound(good, np.full((2, 5), np.nan), 0.0)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\), got 1.0"):
        bound(good, good, 1.0)
    with pytest.raises(ValueError, match=r"confidence must be in \[1/2, 1\), got 1"):
        bound(good, good, 0.0, confidence=1.0)
    with pytest.raises(ValueError, match=r"confidence must be in \[1/2, 1\), got 0.2"):
        metrics.proportion_bounds(1, 2, 0.2)


def test_right_guesses_without_delta_are_a_binomial_s():
    """In closed form, n right of n is refuted if q^n is below 1 in 20."""
    for n in (1, 20, 500):
        q = 0.05 ** (1 / n)
        want = max(0.0, math.log(q / (1 - q)))
        assert metrics.epsilon_from_guesses(n, n, 2 * n, 0.0) == pytest.approx(want)
    found = metrics.epsilon_from_guesses(160, 200, 1000, 0.0, confidence=0.9)
    q = 1 / (1 + math.exp(-found))
    assert stats.binom.sf(159, 200, q) == pytest.approx(0.1)


def test_delta_makes_right_guesses_cheaper_by_hand():
    """Two of two right: q^2, and 4 canaries times 2 δ, allocated for the largest gain.

    One more guess suffices if one was right, and two if none was. So ``max(2 q (1 - q),
    (1 - q^2) / 2) = 2 q (1 - q)`` for q from 1/3 on.
    """
    delta = 0.01
    found = metrics.epsilon_from_guesses(2, 2, 4, delta, confidence=0.6)
    q = 1 / (1 + math.exp(-found))
    assert q**2 + 2 * 4 * delta * 2 * q * (1 - q) == pytest.approx(0.4, abs=1e-5)
    assert found < metrics.epsilon_from_guesses(2, 2, 4, 0.0, confidence=0.6)


@pytest.mark.parametrize("right, guesses", [(0, 0), (0, 10), (5, 10), (8, 200)])
def test_guesses_no_better_than_coins_prove_nothing(right, guesses):
    for delta in (0.0, 1e-5, 0.5):
        assert metrics.epsilon_from_guesses(right, guesses, 500, delta) == 0.0


def test_guesses_are_refuted_as_rarely_as_they_say():
    """Exact responses of ε = 1, plus δ: a canary is revealed that often."""
    rng = np.random.default_rng(0)
    m, r, delta = 300, 300, 2e-3
    right = rng.random((2000, m)) < math.e / (1 + math.e)
    for given in (0.0, delta):
        own = right | (rng.random(right.shape) < given)
        bounds = [
            metrics.epsilon_from_guesses(int(n), r, m, given)
            for n in np.unique(own.sum(1))
        ]
        counts = np.unique(own.sum(1), return_counts=True)[1]
        wrong = counts[np.array(bounds) > 1.0].sum() / len(own)
        assert wrong <= 0.05
        if not given:  # The bound is nearly tight.
            assert wrong > 0.02


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ((3, 2, 5, 0.0), "got 3, 2 and 5"),
        ((-1, 2, 5, 0.0), "got -1, 2 and 5"),
        ((1, 6, 5, 0.0), "got 1, 6 and 5"),
        ((0, 0, 0, 0.0), "canaries >= 1"),
        ((1, 2, 5, 1.0), r"delta must be in \[0, 1\), got 1.0"),
    ],
)
def test_what_is_refused_of_guesses(given, match):
    with pytest.raises(ValueError, match=match):
        metrics.epsilon_from_guesses(*given)
