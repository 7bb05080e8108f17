"""ε and δ of Gaussian noise: closed forms, two accountants, and errors."""

import itertools
import math
import time

import dp_accounting
import pytest
from gaussian import exact, sampled
from scipy import stats

from jaxanon.privacy import SampledGaussian, epsilon_spent, steps_within, warn_of_delta
from jaxanon.privacy.sampled_gaussian import (
    DEFAULT_INTERVAL,
    INTERVALS,
    interval,
    overflow_probability,
)

MULTIPLIERS = pytest.mark.parametrize(
    ("multiplier", "classic"), [(1.0, 5.30), (1.5617, 3.28), (0.4664, 12.59)]
)


@MULTIPLIERS
def test_one_release_lies_between_the_exact_epsilon_and_the_moments_bound(
    multiplier, classic
):
    """The bound: min over α of α / 2z² + ln(1/δ) / (α - 1), which has a closed form."""
    bound = 1 / (2 * multiplier**2) + math.sqrt(2 * math.log(1e5)) / multiplier
    assert round(bound, 2) == classic
    each = [SampledGaussian(noise_multiplier=multiplier)]
    least = exact(multiplier, 1e-5)
    pld, rdp = (epsilon_spent(each, 1e-5, accountant=a) for a in ("pld", "rdp"))
    assert least <= pld < 1.001 * least + 1e-3
    assert 1.02 * least < rdp < bound


def test_releases_of_one_data_set_add_up_as_one_with_summed_squares():
    """Two Gaussian mechanisms are one: 1 / z² = 1 / 3² + 4 / 4², for one and four."""
    first = SampledGaussian(noise_multiplier=3.0)
    others = SampledGaussian(noise_multiplier=4.0, steps=4)
    joint = 1 / math.sqrt(1 / 9 + 4 / 16)
    told = epsilon_spent([first, others], 1e-6)
    assert told == pytest.approx(exact(joint, 1e-6), rel=2e-3)
    assert epsilon_spent([first], 1e-6) < told
    assert epsilon_spent([], 1e-6) == 0.0


def test_a_sample_tells_of_few():
    """For small ε, sampling a fraction q of the data costs about q times as much."""
    whole = SampledGaussian(noise_multiplier=4.0)
    tenth = SampledGaussian(noise_multiplier=4.0, sampling_probability=0.1)
    ratio = epsilon_spent([tenth], 1e-3) / epsilon_spent([whole], 1e-2)
    # (ε, δ) of the whole becomes (ln(1 + q (e^ε - 1)), q δ), which is an upper bound.
    epsilon = exact(4.0, 1e-2)
    assert ratio <= 1.01 * math.log(1 + 0.1 * math.expm1(epsilon)) / epsilon
    # Sampling one in ten loses at least a tenth of the whole loss.
    assert ratio > 0.1


@pytest.mark.parametrize(
    ("multiplier", "probability", "steps"),
    [(1.0, 1.0, 1), (0.45, 0.0625, 10), (1.0, 0.03, 11), (4.0, 0.3, 40), (0.2, 1.0, 1)],
)
def test_losses_of_few_steps_are_told_apart_as_well_as_need_be(
    multiplier, probability, steps
):
    each = sampled(multiplier, probability, steps)
    event = dp_accounting.PoissonSampledDpEvent(
        probability, dp_accounting.GaussianDpEvent(multiplier)
    )
    fine = dp_accounting.pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, DEFAULT_INTERVAL
    )
    exactly = fine.compose(event, steps).get_epsilon(1e-5)
    more = epsilon_spent([each], 1e-5) - exactly
    assert -1e-9 <= more <= 1e-5 * max(1, exactly)
    assert interval([each]) > DEFAULT_INTERVAL


@pytest.mark.parametrize(
    ("releases", "wanted"),
    [
        # Steps times the square: 1e-5 at most.
        ([(1.0, 0.3, 10)], 1e-3),
        ([(1.0, 0.3, 11)], 5e-4),
        ([(1.0, 0.3, 6), (1.0, 0.3, 6)], 5e-4),
        ([(1.0, 0.1, 40)], 5e-4),
        ([(1.0, 0.1, 41)], 1e-4),
        # Half the squared loss, if that is more than 1.
        ([(1.0, 1.0, 11)], 1e-3),
        ([(0.1, 1.0, 1)], 1e-2),
        ([(0.01, 1.0, 1)], 0.1),
        ([(0.001, 1.0, 1)], 1.0),
        # A fiftieth of a step's std, for the mechanism with the smallest loss.
        ([(1.0, 0.039, 1)], 1e-3),
        ([(1.0, 0.037, 1)], 5e-4),
        ([(1.0, 0.018, 1)], 1e-4),
        ([(1.0, 1e-3, 1)], 1e-5),
        ([(1e4, 1.0, 1)], 1e-6),
        # If the std of all has at most 20,000 of them.
        ([(1.0, 1e-3, 23_000)], 1e-5),
        ([(1.0, 1e-3, 24_000)], 1e-4),
        ([(1.0, 1.0, 1), (1e4, 1.0, 1)], 1e-4),
        # If a single step has at most 400,000 of them. Otherwise usual ones, or larger
        # ones, because with little noise the losses are far apart although q / z is
        # small.
        ([(0.5, 1e-4, 1)], 1e-4),
        ([(0.5, 1e-3, 1)], 1e-4),
        ([(0.3, 1e-5, 10)], 1e-4),
        ([(0.1, 1e-6, 1)], 1e-2),
        ([(0.0125, 1.0, 1), (1e4, 1.0, 1)], 1e-2),
    ],
)
def test_how_finely_losses_are_told_apart(releases, wanted):
    assert interval([sampled(*release) for release in releases]) == wanted


def test_every_interval_holds_whole_ones_of_the_next():
    for large, small in itertools.pairwise(INTERVALS):
        assert large / small == pytest.approx(round(large / small))


@pytest.mark.parametrize(
    ("budget", "accountant", "noise_multiplier", "probability"),
    [
        (2.0, "rdp", 1.0, 0.05),
        (0.7, "rdp", 3.0, 1e-3),
        (4.0, "pld", 300.0, 1.0),
        (0.001, "pld", 1e5, 1.0),  # Steps of which the first ones cost nothing.
    ],
)
def test_steps_that_a_budget_pays_for(
    budget, accountant, noise_multiplier, probability
):
    given = {"noise_multiplier": noise_multiplier, "sampling_probability": probability}
    steps = steps_within(budget, 1e-5, accountant=accountant, **given)

    def spent(steps):
        one = [SampledGaussian(steps=steps, **given)]
        return epsilon_spent(one, 1e-5, accountant=accountant)

    assert steps > 1 and spent(steps) <= budget < spent(steps + 1)
    assert steps_within(4.0, 1e-5, noise_multiplier=1.0) == 0


def test_samples_of_bounded_size():
    """A bound that is hardly ever reached costs nothing; one in the middle does."""
    sizes = {"noise_multiplier": 1.0, "sampling_probability": 0.1, "steps": 2}
    free = epsilon_spent([SampledGaussian(**sizes)], 1e-5)
    told = [
        epsilon_spent(
            [SampledGaussian(**sizes, max_batch_size=k, max_examples=200)], 1e-5
        )
        for k in (80, 20)
    ]
    assert free <= told[0] <= 1.005 * free and told[1] > 1.05 * free
    bounded = SampledGaussian(**sizes, max_batch_size=20, max_examples=200)
    with pytest.raises(ValueError, match="must be 'pld' for a capacity"):
        epsilon_spent([bounded], 1e-5, accountant="rdp")


def test_a_hundredth_of_delta_pays_for_rare_overflow():
    sizes = {"noise_multiplier": 1.0, "sampling_probability": 0.1, "steps": 2}
    rare = SampledGaussian(**sizes, max_batch_size=80, max_examples=200)
    assert overflow_probability(rare) > 0
    left = epsilon_spent([SampledGaussian(**sizes)], 0.99e-5)
    assert epsilon_spent([rare], 1e-5) == pytest.approx(left, rel=1e-9)
    assert left > epsilon_spent([SampledGaussian(**sizes)], 1e-5) * (1 + 1e-5)


@pytest.mark.parametrize(("records", "capacity"), [(200, 40), (64, 12), (50, 49)])
def test_samples_are_larger_than_their_bound_as_rarely_as_is_counted_on(
    records, capacity
):
    release = SampledGaussian(
        noise_multiplier=1.0,
        sampling_probability=0.1,
        max_batch_size=capacity,
        max_examples=records,
    )
    exact = stats.binom.sf(capacity, records, 0.1)
    assert (1 - 1e-9) * exact <= overflow_probability(release) <= 40 * exact


def test_ten_thousand_steps_are_accounted_for_while_one_waits():
    start = time.process_time()
    each = SampledGaussian(
        noise_multiplier=1.0, sampling_probability=0.01, steps=10_000
    )
    found = epsilon_spent([each], 1e-5)
    assert time.process_time() - start < 60
    event = dp_accounting.PoissonSampledDpEvent(
        0.01, dp_accounting.GaussianDpEvent(1.0)
    )
    account = dp_accounting.rdp.RdpAccountant().compose(event, 10_000)
    assert 0.9 < found / account.get_epsilon(1e-5) < 1.0


def test_a_capacity_needs_its_records():
    with pytest.raises(ValueError, match="max_batch_size and max_examples must be"):
        SampledGaussian(noise_multiplier=1.0, max_batch_size=3)


def test_says_what_was_wrong_with_a_budget():
    each = SampledGaussian(noise_multiplier=1.0)
    with pytest.raises(ValueError, match="delta must be below 1, got 1.0"):
        epsilon_spent([each], 1.0)
    with pytest.raises(ValueError, match="delta must be finite and > 0"):
        epsilon_spent([each], 0.0)
    with pytest.raises(ValueError, match="accountant must be one of"):
        epsilon_spent([each], 1e-5, accountant="moments")


def test_a_delta_that_gives_a_record_away():
    with pytest.warns(UserWarning, match="delta should be well below 1 / 100"):
        warn_of_delta(0.01, 100)
    warn_of_delta(0.001, 100)  # Without a warning, or this test fails.
