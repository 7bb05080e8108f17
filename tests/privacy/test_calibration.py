"""The smallest noise for a budget: sufficient, and barely so."""

import math

import hypothesis
import hypothesis.strategies as st
import pytest
from gaussian import exact

from jaxanon.privacy import SampledGaussian, epsilon_spent, noise_multiplier_for
from jaxanon.privacy.calibration import TOLERANCE, _calibrate


@hypothesis.settings(max_examples=6)
@hypothesis.given(
    st.floats(0.3, 8.0), st.sampled_from([0.02, 0.2, 1.0]), st.sampled_from([1, 50])
)
def test_the_multiplier_for_a_budget_keeps_it_and_hardly_less_does_not(
    epsilon, probability, steps
):
    given = {"sampling_probability": probability, "steps": steps}
    multiplier = noise_multiplier_for(epsilon, 1e-5, accountant="rdp", **given)

    def spent(z):
        each = SampledGaussian(noise_multiplier=z, **given)
        return epsilon_spent([each], 1e-5, accountant="rdp")

    assert spent(multiplier) <= epsilon < spent(0.995 * multiplier)


@pytest.mark.parametrize(
    ("epsilon", "given"),
    [
        (2.0, {"sampling_probability": 0.2, "steps": 2}),
        # Each step loses almost nothing.
        (0.05, {"sampling_probability": 0.01, "steps": 900}),
    ],
)
def test_the_tight_multiplier_is_found_by_way_of_a_quick_one(epsilon, given):
    multiplier = noise_multiplier_for(epsilon, 1e-5, **given)
    spent = lambda z: epsilon_spent(
        [SampledGaussian(noise_multiplier=z, **given)], 1e-5
    )
    assert spent(multiplier) <= epsilon < spent(0.998 * multiplier)


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"),
    [
        *((1e-3, 1e-5, 1), (1e-4, 1e-5, 1), (1.05e-3, 1e-7, 1), (1.5e-4, 1e-7, 1)),
        # Rényi orders yield no epsilon between 0 and about 0.0035.
        *((1e-5, 1e-7, 1), (3e-3, 1e-5, 40)),
    ],
)
def test_an_epsilon_that_is_hardly_any_needs_no_more_noise_than_that(
    epsilon, delta, steps
):
    found = noise_multiplier_for(epsilon, delta, steps=steps)
    each = found / math.sqrt(steps)
    assert exact(each, delta) <= epsilon < exact(0.998 * each, delta)


def test_rdp_asks_for_much_where_its_orders_end():
    tight = noise_multiplier_for(3e-3, 1e-5, steps=40)
    assert noise_multiplier_for(3e-3, 1e-5, steps=40, accountant="rdp") > 100 * tight


def test_what_fits_is_found_though_more_noise_may_tell_more():
    """The excess falls through 0 at 1, with a plateau from 1.0002 to 1.2."""
    for high in (2.0, 3.7):
        for beyond in (-0.5, 0.5):
            over = lambda x, beyond=beyond: beyond if 1.0002 < x < 1.2 else 1 - x
            found = _calibrate(over, 0.0, high)
            assert over(found) <= 0 < over(found - 2 * TOLERANCE)


def test_a_capacity_may_matter_at_less_noise_than_a_budget_asks_for():
    """At a noise multiplier of 1, ε is so large that even 1e-22 of it would count."""
    given = {"sampling_probability": 0.32, "steps": 300}
    bounded = given | {"max_batch_size": 82, "max_examples": 100}
    found = noise_multiplier_for(2.0, 1e-5, **bounded)
    whole = noise_multiplier_for(2.0, 1e-5, **given)
    assert whole <= found < 1.01 * whole
    release = SampledGaussian(noise_multiplier=1.0, **bounded)
    with pytest.raises(ValueError, match="must be 'pld' for a capacity"):
        epsilon_spent([release], 1e-5, accountant="rdp")
    cut = {"sampling_probability": 0.2, "max_batch_size": 5, "max_examples": 100}
    with pytest.raises(ValueError, match="must be 'pld' for a capacity"):
        noise_multiplier_for(2.0, 1e-5, accountant="rdp", **cut)


def test_a_budget_is_shared_with_what_is_released_beside_it():
    beside = [SampledGaussian(noise_multiplier=4.0)]
    alone = noise_multiplier_for(2.0, 1e-5, accountant="rdp")
    shared = noise_multiplier_for(2.0, 1e-5, other_releases=beside, accountant="rdp")
    # Squares of 1 / z add up.
    assert shared == pytest.approx(1 / math.sqrt(alone**-2 - 1 / 16), rel=3e-3)
    with pytest.raises(ValueError, match="above the 16.* of other releases, got 2"):
        noise_multiplier_for(
            2.0,
            1e-5,
            other_releases=[SampledGaussian(noise_multiplier=0.36)],
            accountant="rdp",
        )


@pytest.mark.parametrize("beside", [[], [SampledGaussian(noise_multiplier=1e4)]])
def test_an_epsilon_of_thousands_is_accounted_for_as_tightly(beside):
    found = noise_multiplier_for(3e3, 1e-5, other_releases=beside)
    assert exact(found, 1e-5) <= 3e3 < exact(0.998 * found, 1e-5)


def test_where_delta_allows_for_all_that_is_told_epsilon_is_none():
    """δ of one release at ε = 0 is 2 Φ(1 / 2z) - 1, a half at 1 / 2z = 0.6745."""
    assert noise_multiplier_for(1e-13, 0.5) == pytest.approx(0.7413, rel=2e-3)


def test_says_what_was_wrong_with_a_budget():
    with pytest.raises(ValueError, match="epsilon must be finite and > 0"):
        noise_multiplier_for(0.0, 1e-5)
    with pytest.raises(ValueError, match=r"below 1e\+06, got 1e-06 for 1000 steps"):
        noise_multiplier_for(1e-6, 1e-9, steps=1000)
    with pytest.raises(ValueError, match="larger epsilon, or use accountant 'pld'"):
        noise_multiplier_for(1e-6, 1e-9, steps=1000, accountant="rdp")
    for epsilon in (6e5, 1e300):  # By Rényi orders, the first needs 1.3e-3.
        with pytest.raises(ValueError, match="multiplier of 0.001 keeps; take a sma"):
            noise_multiplier_for(epsilon, 1e-5)
    assert noise_multiplier_for(4e5, 1e-5) > 1e-3
