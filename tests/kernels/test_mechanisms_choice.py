"""Choices among k: exact probabilities, within e^ε for neighbours."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from jaxanon.kernels import mechanisms
from jaxanon.kernels.mechanisms import cases, choice, reference

pytestmark = pytest.mark.slow

NUM = 6000
MAKERS = {
    "gumbel": (
        lambda key, scores, epsilon, **more: mechanisms.exponential_mechanism(
            key, scores, epsilon, **more
        ),
        reference.exponential_probabilities,
    ),
    "exponential": (
        lambda key, scores, epsilon, **more: mechanisms.report_noisy_max(
            key, scores, epsilon, **more
        ),
        reference.permute_and_flip_probabilities,
    ),
    "laplace": (
        lambda key, scores, epsilon, **more: mechanisms.report_noisy_max(
            key, scores, epsilon, noise="laplace", **more
        ),
        reference.laplace_max_probabilities,
    ),
}
ALL = pytest.mark.parametrize("maker", MAKERS)


def _key():
    """Returns the same key, new for each use."""
    return jax.random.key(11)


def _chosen(maker, scores, epsilon, linf=1.0, **more):
    bounded = mechanisms.bounded_value(jnp.array(scores), linf=linf)
    choose = lambda key: MAKERS[maker][0](key, bounded, epsilon, **more)
    drawn = jax.jit(jax.vmap(choose))(jax.random.split(_key(), NUM))
    return np.bincount(np.asarray(drawn), minlength=len(scores))


@ALL
@pytest.mark.parametrize("name", cases.SCORES)
def test_choices_follow_the_exact_probabilities_and_not_wrong_scales(maker, name):
    scores = cases.SCORES[name]
    # Sensitivity 0.5 and ε 2: scale 2 Δ / ε = 0.5.
    counts = _chosen(maker, scores, 2.0, linf=0.5)
    law = MAKERS[maker][1]
    assert stats.chisquare(counts, NUM * law(scores, 0.5)).pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        expected = NUM * law(scores, 0.5 * wrong)
        assert stats.chisquare(counts, expected).pvalue < 1e-4


@ALL
def test_monotonic_scores_need_half_the_noise(maker):
    scores = cases.SCORES["two"]
    counts = _chosen(maker, scores, 2.0, monotonic=True)
    assert stats.chisquare(counts, NUM * MAKERS[maker][1](scores, 0.5)).pvalue > 0.01
    wrong = stats.chisquare(counts, NUM * MAKERS[maker][1](scores, 1.0))
    assert wrong.pvalue < 1e-4


def test_exact_probabilities_by_hand_and_by_quadrature():
    d, b = 0.7, 0.4
    # Two candidates: logistic difference; e^(-d/b)/2; Laplace difference.
    p = 1 / (1 + math.exp(-d / b))
    assert reference.exponential_probabilities((0, d), b)[1] == pytest.approx(p)
    loses = math.exp(-d / b) / 2
    assert reference.permute_and_flip_probabilities((0, d), b)[0] == pytest.approx(
        loses
    )
    loses = math.exp(-d / b) / 2 * (1 + d / (2 * b))
    assert reference.laplace_max_probabilities((0, d), b)[0] == pytest.approx(loses)
    # Four candidates, against SciPy's densities and quadrature.
    scores = cases.SCORES["spread"]
    for law, ours in (
        (stats.expon, reference.permute_and_flip_probabilities),
        (stats.laplace, reference.laplace_max_probabilities),
        (stats.gumbel_r, reference.exponential_probabilities),
    ):
        first = lambda z, law=law: (
            law.pdf(z, scores[1], 0.8)
            * np.prod([law.cdf(z, s, 0.8) for i, s in enumerate(scores) if i != 1])
        )
        found, _ = integrate.quad(first, -8, 30, points=sorted(scores), limit=200)
        assert ours(scores, 0.8)[1] == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("maker", MAKERS)
def test_neighbouring_scores_change_no_probability_by_more_than_e_epsilon(maker):
    epsilon, law = 1.0, MAKERS[maker][1]
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(6):
        scores = rng.normal(size=4)
        moved = scores + rng.choice([-1.0, 1.0], size=4)
        ratio = law(scores, 2 / epsilon) / law(moved, 2 / epsilon)
        worst = max(worst, *np.abs(np.log(ratio)))
    assert worst <= epsilon + 1e-6
    # One against distant others approaches ε; half the scale exceeds it.
    scores, moved = np.array([0.0, 9.0, 9.0]), np.array([1.0, 8.0, 8.0])
    log_ratio = lambda scale: np.log(law(moved, scale)[0] / law(scores, scale)[0])
    assert 0.7 * epsilon < log_ratio(2 / epsilon) <= epsilon + 1e-6
    assert log_ratio(1 / epsilon) > epsilon


@ALL
def test_impossible_candidates_infinite_epsilon_and_zero_sensitivity(maker):
    choose = MAKERS[maker][0]
    of = lambda scores, epsilon=1.0, linf=1.0: int(
        choose(_key(), mechanisms.bounded_value(jnp.array(scores), linf=linf), epsilon)
    )
    assert of([-jnp.inf, 0.0, jnp.nan]) == 1
    assert of([-jnp.inf, jnp.nan]) == -1
    assert of([1.0, 1.5, 1.25], epsilon=jnp.inf) == 1
    assert of([1.0, 1.5, 1.25], linf=0.0) == 1
    assert of([3.0]) == 0


@ALL
def test_half_precision_scores_and_a_sweep_compile_once(maker, traced_once):
    choose = MAKERS[maker][0]

    @jax.jit
    @traced_once
    def sweep(key, scores, epsilons):
        one = lambda key, e: choose(key, mechanisms.bounded_value(scores, linf=0.5), e)
        return jax.vmap(one)(jax.random.split(key, 2), epsilons)

    scores = jnp.array([1.0, 3.0, 2.0], jnp.bfloat16)
    sweep(_key(), scores, jnp.array([1.0, 2.0]))
    got = sweep(_key(), scores, jnp.array([jnp.inf, 1e9]))
    np.testing.assert_array_equal(got, [1, 1])


def test_randomized_response_follows_its_matrix_and_not_wrong_ones():
    epsilon, k = 1.2, 4
    labels = jnp.repeat(jnp.arange(k), NUM // k)
    said = mechanisms.randomized_response(_key(), labels, k, epsilon)
    counts = np.zeros((k, k))
    np.add.at(counts, (np.asarray(labels), np.asarray(said)), 1)
    expected = NUM / k * reference.randomized_response_matrix(k, epsilon)
    assert stats.chisquare(counts.ravel(), expected.ravel(), k - 1).pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        bad = NUM / k * reference.randomized_response_matrix(k, epsilon * wrong)
        assert stats.chisquare(counts.ravel(), bad.ravel(), k - 1).pvalue < 1e-9
    rng = np.random.default_rng(0)
    loops = [reference.randomized_response(rng, 2, k, epsilon) for _ in range(NUM // k)]
    table = [np.bincount(loops, minlength=k), counts[2]]
    assert stats.chi2_contingency(table).pvalue > 0.01


def test_the_matrix_has_the_epsilon_that_is_claimed():
    for k in (2, 3, 7):
        matrix = reference.randomized_response_matrix(k, 0.8)
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
        # The largest ratio of any report between two truths.
        assert np.log(matrix.max(axis=0) / matrix.min(axis=0)).max() == pytest.approx(
            0.8
        )
        claimed = mechanisms.randomized_response_epsilon(matrix[0, 0], k)
        assert float(claimed) == pytest.approx(0.8, rel=1e-5)


def test_labels_out_of_range_are_reported_uniformly():
    said = mechanisms.randomized_response(_key(), jnp.full(NUM, -1), 3, 9.0)
    assert stats.chisquare(np.bincount(said)).pvalue > 0.01
    said = mechanisms.randomized_response(_key(), jnp.full(NUM, 3), 3, 9.0)
    assert stats.chisquare(np.bincount(said)).pvalue > 0.01


def test_frequencies_are_unbiased_with_the_exact_matrix():
    # With expected fractions as input, the estimate equals the truth for any k and ε.
    k, epsilon, n = 3, math.log(2), 4  # p = 2/4, q = 1/4.
    responses = jnp.array([0, 0, 1, 2])  # Fractions if the truth is "all are 0".
    got = mechanisms.randomized_response_frequencies(responses, k, epsilon)
    np.testing.assert_allclose(got, [1, 0, 0], atol=1e-6)
    padded = jnp.concatenate([responses, jnp.array([1, 1])])
    mask = jnp.arange(6) < n
    masked = mechanisms.randomized_response_frequencies(padded, k, epsilon, mask)
    chex.assert_trees_all_close(masked, got)
    none = mechanisms.randomized_response_frequencies(padded, k, epsilon, mask & False)
    np.testing.assert_allclose(none, [1 / 3] * 3, rtol=1e-6)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_frequencies_of_responses_that_nobody_can_have_sent_are_no_numbers(wrong):
    responses = jnp.array([0, 0, 1, wrong])
    estimate = mechanisms.randomized_response_frequencies
    assert np.isnan(estimate(responses, 3, 1.0)).all()
    # Traced values cannot be checked, so the result is NaN.
    assert np.isnan(jax.jit(lambda said: estimate(said, 3, 1.0))(responses)).all()
    padding = responses != wrong
    got = mechanisms.randomized_response_frequencies(responses, 3, 1.0, padding)
    wanted = mechanisms.randomized_response_frequencies(responses[:3], 3, 1.0)
    chex.assert_trees_all_close(got, wanted)


def test_frequencies_of_drawn_responses_come_near_and_add_up():
    truth = np.array([0.1, 0.6, 0.3])
    labels = jnp.array(np.repeat(np.arange(3), (NUM * truth).astype(int)))

    @jax.jit
    @chex.assert_max_traces(n=1)
    def estimate(key, epsilon):
        said = mechanisms.randomized_response(key, labels, 3, epsilon)
        return mechanisms.randomized_response_frequencies(said, 3, epsilon)

    for epsilon in (0.5, 2.0):
        got = estimate(_key(), jnp.float32(epsilon))
        matrix = reference.randomized_response_matrix(3, epsilon)
        gap = matrix[0, 0] - matrix[0, 1]
        np.testing.assert_allclose(got, truth, atol=4 * 0.5 / gap / np.sqrt(NUM))
        assert float(jnp.sum(got)) == pytest.approx(1, abs=1e-5)


def test_says_what_was_wrong():
    scores = mechanisms.bounded_value(jnp.zeros((2, 3)), linf=1.0)
    labels = jnp.zeros(2, jnp.int32)
    with pytest.raises(
        ValueError, match=r"scores must be float\[k\] .* shape \(2, 3\)"
    ):
        mechanisms.exponential_mechanism(_key(), scores, 1.0)
    with pytest.raises(ValueError, match="epsilon must be > 0, got -1"):
        mechanisms.report_noisy_max(_key(), scores, -1)
    with pytest.raises(ValueError, match="noise must be one of .*, got 'gumbel'"):
        mechanisms.report_noisy_max(_key(), scores, 1.0, noise="gumbel")
    with pytest.raises(ValueError, match="num_classes must be >= 2, got 1"):
        mechanisms.randomized_response(_key(), labels, 1, 1.0)
    with pytest.raises(
        ValueError, match="labels must have a dtype that holds 200 classes"
    ):
        mechanisms.randomized_response(_key(), labels.astype(jnp.int8), 200, 1.0)
    with pytest.raises(
        TypeError, match=r"labels must be int\[...\], got dtype float32"
    ):
        mechanisms.randomized_response(_key(), jnp.zeros(2), 3, 1.0)
    with pytest.raises(
        ValueError, match=r"both be \[n\], got shapes \(2,\) and \(3,\)"
    ):
        mechanisms.randomized_response_frequencies(labels, 3, 1.0, jnp.ones(3, bool))


def test_the_upper_tail_of_gumbel_noise_is_not_cut_off():
    # P(g > 13) is e^-13, P(g > 15.95) e^-15.95. Noise of one 32-bit word ends at 15.95,
    # so a few of many millions of equal candidates would win too often.
    num = 1 << 25

    @jax.jit
    def tail(key):
        def one(carry, key):
            noise = choice.gumbel(key, (num // 32,))
            most, count = carry
            return (jnp.maximum(most, noise.max()), count + jnp.sum(noise > 13)), None

        start = jnp.float32(0), jnp.int32(0)
        return jax.lax.scan(one, start, jax.random.split(key, 32))[0]

    most, count = tail(jax.random.key(0))
    expected = num * np.exp(-13)
    for scale, close in ((1, True), (2 / 3, False), (3 / 2, False)):
        near = abs(count - scale * expected) < 2.8 * (scale * expected) ** 0.5
        assert near == close
    assert most > 15.95


def test_what_is_static_may_come_from_numpy_and_not_from_a_trace():
    labels = jnp.array([2, 0, 1])
    same = mechanisms.randomized_response(_key(), labels, np.int64(3), jnp.inf)
    assert same.dtype == labels.dtype and same.tolist() == labels.tolist()
    with pytest.raises(
        TypeError, match="num_classes must be known when .* static_argn"
    ):
        jax.jit(lambda k: mechanisms.randomized_response_epsilon(0.5, k))(2)
    scores = mechanisms.bounded_value(jnp.ones(2), linf=1)
    choose = mechanisms.exponential_mechanism
    with pytest.raises(TypeError, match="monotonic must be known when .* static"):
        jax.jit(lambda one: choose(_key(), scores, 1.0, monotonic=one))(True)
    with pytest.raises(ValueError, match=r"in \[1/2, 1\], got np.float32\(0.25\)"):
        mechanisms.randomized_response_epsilon(np.float32(0.25), 2)


def test_the_exponential_mechanism_draws_that_noise(monkeypatch):
    # The second candidate is far worse, and wins by its noise.
    scores = mechanisms.bounded_value(jnp.array([100.0, 0.0]), linf=1)
    told = jnp.array([0.0, 1e4])
    monkeypatch.setattr(choice, "gumbel", lambda key, shape: told)
    assert mechanisms.exponential_mechanism(_key(), scores, 1.0) == 1
