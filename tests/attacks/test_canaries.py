"""One run with many canaries: guesses by hand, and against an audit of many runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import attacks, metrics
from jaxanon.privacy import SampledGaussian, epsilon_spent


def test_the_surest_are_guessed_and_the_rest_left_out():
    evidence = [0.2, -5.0, 3.0, 0.1, -0.3, 1.0]
    inside = np.array([0, 0, 1, 0, 1, 0], bool)
    tell = lambda guesses: attacks.guess_canaries(
        evidence, inside, guesses=guesses, delta=0.0, confidence=0.5
    )
    # One is "in", 3.0; then -5.0 is "out"; then 1.0 is "in", which is wrong.
    assert [tell(n)[:2] for n in (1, 2, 3, 6)] == [(1, 1), (2, 2), (2, 3), (3, 6)]
    assert tell(2).epsilon == metrics.epsilon_from_guesses(2, 2, 6, 0.0, confidence=0.5)


def test_one_run_proves_what_many_do_and_no_more_than_was_lost():
    """A sum of disjoint rows, each with noise of 1."""
    delta, many = 1e-5, 20_000
    of_all = lambda key, inside: inside + jax.random.normal(key, inside.shape)
    once = attacks.one_run(
        jax.random.key(0), of_all, many, guesses=many // 20, delta=delta
    )
    of_one = lambda key, example, member: member + jax.random.normal(key, (1,))
    seen = attacks.shadow(jax.random.key(1), of_one, 1, many)
    often = attacks.infer_members(seen, delta=delta, spread="pooled")
    lost = epsilon_spent([SampledGaussian(noise_multiplier=1.0)], delta)
    assert 0.4 * lost < once.epsilon < lost
    assert 0.4 * lost < often.epsilon < lost
    assert 0.6 * often.epsilon < once.epsilon < 1.2 * often.epsilon


def test_randomised_responses_are_told_tightly():
    """Pure DP: bits that are right with probability e / (1 + e)."""

    def flipped(key, inside):
        kept = jax.random.bernoulli(key, jax.nn.sigmoid(1.0), inside.shape)
        return jnp.where(kept, inside, ~inside)

    options = {"guesses": 20_000, "delta": 0.0, "confidence": 0.999}
    found = attacks.one_run(jax.random.key(0), flipped, 20_000, **options)
    assert 0.9 < found.epsilon <= 1.0


def test_says_what_was_wrong():
    tell = lambda evidence, inside, guesses=1: attacks.guess_canaries(
        evidence, inside, guesses=guesses, delta=0.0
    )
    with pytest.raises(ValueError, match=r"be \[canaries\], got shapes \(2,\) and \(3"):
        tell([0.0, 1.0], [True, False, True])
    with pytest.raises(ValueError, match="evidence must be numbers, got NaN; did the"):
        tell([0.0, np.nan], [True, False])
    for guesses in (0, 3):
        with pytest.raises(ValueError, match=rf"in \[1, 2\], .* got {guesses}"):
            tell([0.0, 1.0], [True, False], guesses)
    with pytest.raises(ValueError, match="num_canaries must be >= 1, got 0"):
        attacks.one_run(jax.random.key(0), None, 0, guesses=1, delta=0.0)
