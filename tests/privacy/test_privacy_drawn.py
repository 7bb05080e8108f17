"""Composition of drawn releases: closed forms, loops, and errors."""

import contextlib
import fractions
import math
import warnings

import numpy as np
import pytest
from gaussian import exact
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import privacy
from jaxanon.privacy import SampledGaussian

some = settings(max_examples=12, deadline=None)
many = settings(max_examples=50, deadline=None)
seeds = st.integers(0, 2**32 - 1)
numbers = st.one_of(
    st.floats(1e-6, 1e6),
    st.integers(1, 10**6),
    st.fractions(fractions.Fraction(1, 1000), 1000),
    st.sampled_from([np.float32(0.5), np.float64(3.0), np.int16(7)]),
)
counts = st.one_of(st.integers(0, 10**6), st.sampled_from([np.int8(5), np.uint32(9)]))
multipliers = st.floats(0.05, 50.0)
deltas = st.sampled_from([1e-9, 1e-5, 1e-2])
accountants = st.sampled_from(privacy.ACCOUNTANTS)


@many
@given(st.dictionaries(numbers, counts, max_size=6), seeds)
def test_a_stream_costs_the_sum_and_a_window_the_most(releases, seed):
    whole = sum(fractions.Fraction(float(e)) * int(n) for e, n in releases.items())
    found = privacy.sequential(releases)
    assert found == pytest.approx(float(whole), rel=1e-15)
    rows = [*releases.items()]
    order = np.random.default_rng(seed).permutation(len(rows))
    assert privacy.sequential(dict(rows[place] for place in order)) == found
    assert privacy.parallel(releases) <= found * (1 + 1e-12)
    assert privacy.sequential({}) == 0


@many
@given(numbers, numbers)
def test_an_hour_costs_as_much_as_its_windows(epsilon, stride_s):
    exactly = (
        3600 * fractions.Fraction(float(epsilon)) / fractions.Fraction(float(stride_s))
    )
    found = privacy.epsilon_per_hour(epsilon, stride_s)
    assert found == pytest.approx(float(exactly), rel=1e-6)
    windows = max(1, round(3600 / float(stride_s)))  # The rounded stride.
    fits = privacy.epsilon_per_hour(epsilon, 3600 / windows)
    assert fits == pytest.approx(privacy.sequential({epsilon: windows}), rel=1e-6)


layers = st.lists(st.tuples(multipliers, st.floats(0.01, 1.0)), min_size=1, max_size=6)


@many
@given(layers, layers, st.sampled_from(privacy.READINGS), seeds)
def test_layers_are_one_mechanism_however_they_are_told_apart(one, two, reading, seed):
    def joint(own):
        z, scores = np.transpose(own)
        return privacy.noise_multiplier_of_layers(z, scores, reading=reading)

    z, scores = np.transpose([*one, *two])
    moved = {"B": scores / z, "C": 1 / (scores * z)}.get(reading, 1 / z)
    assert joint([*one, *two]) == pytest.approx(1 / np.linalg.norm(moved))
    # Merged layers count as one layer.
    both = [joint(one), joint(two)]
    again = privacy.noise_multiplier_of_layers(both)
    assert again == pytest.approx(joint([*one, *two]))
    order = np.random.default_rng(seed).permutation(len(z))
    assert joint(np.array([*one, *two])[order]) == pytest.approx(again)
    shared = privacy.layer_noise_multipliers(float(again), z)
    assert privacy.noise_multiplier_of_layers(shared) == pytest.approx(again)
    np.testing.assert_allclose(np.divide(shared, z), shared[0] / z[0])


@some
@given(
    st.sampled_from([(1, 1), (3, 2), (8, 8)]),
    st.floats(0.1, 10.0),
    st.floats(0.1, 10.0),
    seeds,
)
def test_errors_are_those_of_noise_that_is_drawn(sizes, width, epsilon, seed):
    inputs, features = sizes
    rng = np.random.default_rng(seed)
    noise = rng.laplace(size=(20_000, inputs))
    window = np.abs(noise * inputs * width / epsilon).sum(1).mean()
    assert privacy.raw_error(inputs, width, epsilon) == pytest.approx(window, rel=0.04)
    noise = noise[:, :features] * width / epsilon
    told = np.abs(noise).sum(1).mean()
    found = privacy.feature_error(features, width, epsilon)
    assert found == pytest.approx(told, rel=0.04)
    rows = np.linalg.qr(rng.normal(size=(inputs, inputs)))[0][:features]
    rebuilt = np.abs(noise @ rows).sum(1).mean()
    bound = privacy.rebuilt_error(np.int64(inputs), features, width, epsilon)
    assert rebuilt <= bound and bound**2 == pytest.approx(
        2 * inputs * features * (width / epsilon) ** 2
    )


@some
@given(st.floats(0.1, 50.0), st.sampled_from([1, 3, 100]), deltas)
def test_epsilon_of_all_records_is_that_of_one_gaussian(whole, steps, delta):
    """Steps with noise z √steps equal one with z, by Balle and Wang's δ."""
    least = exact(whole, delta)  # At most 120.
    each = [SampledGaussian(noise_multiplier=whole * math.sqrt(steps), steps=steps)]
    pld, rdp = (
        privacy.epsilon_spent(each, delta, accountant=name)
        for name in privacy.ACCOUNTANTS
    )
    assert least * (1 - 1e-9) <= pld <= 1.001 * least + 1e-4
    assert rdp >= pld * (1 - 1e-4)


@some
@given(
    st.lists(
        st.tuples(
            st.floats(0.5, 8.0),
            st.sampled_from([0.01, 0.2, 1.0]),
            st.sampled_from([1, 2, 4]),
        ),
        min_size=1,
        max_size=3,
    ),
    deltas,
    seeds,
)
def test_epsilon_grows_with_all_that_leaves_in_any_order(told, delta, seed):
    names = "noise_multiplier", "sampling_probability", "steps"
    releases = [SampledGaussian(**dict(zip(names, one, strict=True))) for one in told]
    spent = lambda releases: privacy.epsilon_spent(releases, delta, accountant="rdp")
    found = spent(releases)
    assert found >= 0 and spent(iter(releases)) == found
    order = np.random.default_rng(seed).permutation(len(releases))
    assert spent([releases[place] for place in order]) == pytest.approx(found)
    assert spent(releases[1:]) <= found * (1 + 1e-9)
    assert privacy.epsilon_spent(releases, delta / 10, accountant="rdp") >= found
    apart = [
        SampledGaussian(**dict(zip(names, (z, q, 1), strict=True)))
        for z, q, steps in told
        for _ in range(steps)
    ]
    assert spent(apart) == pytest.approx(found)
    assert spent([]) == 0


@some
@given(st.floats(0.05, 20.0), deltas, st.sampled_from([1, 7]), accountants)
def test_the_noise_for_a_budget_is_the_least(epsilon, delta, steps, accountant):
    found = privacy.noise_multiplier_for(
        epsilon, delta, steps=steps, accountant=accountant
    )
    spent = lambda z: privacy.epsilon_spent(
        [SampledGaussian(noise_multiplier=z, steps=steps)], delta, accountant=accountant
    )
    assert spent(found) <= epsilon < spent(0.998 * found)
    if accountant == "pld":
        least = found / math.sqrt(steps)
        assert exact(least, delta) <= epsilon < exact(0.995 * least, delta)


@some
@given(st.floats(0.1, 8.0), st.floats(0.5, 20.0), st.sampled_from([0.02, 1.0]), deltas)
def test_steps_of_a_budget_are_the_most(epsilon, multiplier, probability, delta):
    given = {"noise_multiplier": multiplier, "sampling_probability": probability}
    found = privacy.steps_within(epsilon, delta, accountant="rdp", **given)

    def spent(steps):
        one = [SampledGaussian(steps=steps, **given)]
        return privacy.epsilon_spent(one, delta, accountant="rdp")

    assert found >= 0 and spent(found + 1) > epsilon
    assert found == 0 or spent(found) <= epsilon


def lost(epsilon, count, budget):
    """Returns δ of ``count`` randomised responses, summed over the number right.

    By Kairouz, Oh and Viswanath: for each sum, one probability less e^budget times the
    other, if positive.
    """
    p = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    for right in range(count + 1):
        wrong = count - right
        one = math.comb(count, right) * p**right * (1 - p) ** wrong
        other = math.comb(count, right) * p**wrong * (1 - p) ** right
        total += max(0.0, one - math.exp(budget) * other)
    return total


@many
@given(st.floats(1e-3, 5.0), st.integers(0, 60), deltas)
def test_responses_cost_no_less_than_they_tell(epsilon, count, delta):
    found = privacy.responses_spent(epsilon, count, delta)
    assert 0 <= found <= count * epsilon * (1 + 1e-12)
    assert lost(epsilon, count, found) <= delta * (1 + 1e-6)
    for less in (
        privacy.responses_spent(0.9 * epsilon, count, delta),
        privacy.responses_spent(epsilon, max(count - 1, 0), delta),
        privacy.responses_spent(epsilon, count, 2 * delta),
    ):
        assert less <= found * (1 + 1e-9)


@some
@given(st.floats(0.1, 10.0), st.integers(1, 5000), st.sampled_from([1e-9, 1e-5]))
def test_the_epsilon_of_each_response_is_the_largest(epsilon, count, delta):
    each = privacy.response_epsilon_for(epsilon, count, delta)
    assert epsilon / count <= each
    spent = lambda each: privacy.responses_spent(each, count, delta)
    assert spent(each) <= epsilon * (1 + 1e-12) < spent(1.0021 * each)


@many
@given(st.floats(1e-3, 1e3), st.floats(1e-9, 0.999), st.integers(1, 10**6))
def test_who_promises_next_to_nothing_is_warned(epsilon, delta, records):
    for warn, words, more, why in [
        (privacy.warn_of_epsilon, [epsilon], epsilon > 10, "should be at most 10"),
        (privacy.warn_of_delta, [delta, records], delta * records >= 1, "well below"),
    ]:
        told = (
            pytest.warns(UserWarning, match=why) if more else contextlib.nullcontext()
        )
        with told, warnings.catch_warnings():
            if not more:
                warnings.simplefilter("error")
            warn(*words)
