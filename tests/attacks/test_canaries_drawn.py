"""Canaries of one run: guessed members, for drawn evidence and coins."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import attacks

SEEDS = st.integers(0, 2**32 - 1)
few = functools.partial(settings, deadline=None)


@few(max_examples=30)
@given(st.data(), SEEDS, st.sampled_from([1, 2, 7]), st.sampled_from([0.0, 1e-3, 0.4]))
def test_canaries_with_most_evidence_are_said_to_be_in(data, seed, number, delta):
    rng = np.random.default_rng(seed)
    evidence = rng.permutation(number) - 0.5 * number
    inside = rng.integers(2, size=number).astype(
        data.draw(st.sampled_from([bool, int]))
    )
    guesses = data.draw(st.integers(1, number))
    tell = functools.partial(attacks.guess_canaries, guesses=guesses, delta=delta)
    found = tell(evidence, inside)
    ranked = sorted(range(number), key=lambda canary: evidence[canary])
    out, into = ranked[: guesses // 2], ranked[number - (guesses + 1) // 2 :]
    assert found.right == sum(inside[into]) + sum(1 - np.int64(inside[out]))
    assert found.guesses == guesses and 0 <= found.epsilon
    # The bound if all are right, and 0 if δ can explain all.
    most = -math.log(0.05 ** (-1 / guesses) - 1) if 0.05 ** (1 / guesses) > 0.5 else 0.0
    assert found.epsilon <= most + 1e-9
    if delta == 0 and found.right == guesses:
        assert found.epsilon == pytest.approx(most)
    order = rng.permutation(number)
    assert tell(np.exp(evidence)[order], inside[order]) == found


@few(max_examples=8)
@given(SEEDS, st.sampled_from([1, 40]), st.sampled_from([1.0, -1.0]))
def test_one_run_is_what_is_told_of_fair_coins(seed, number, sign):
    coins = []

    def observe(key, inside):
        jax.debug.callback(lambda inside: coins.append(np.array(inside)), inside)
        assert inside.dtype == bool and inside.shape == (number,)
        return sign * inside + 0.1 * jax.random.uniform(key, (number,))

    key, guesses = jax.random.key(seed), 2 * (number // 4) or 1
    found = attacks.one_run(key, observe, number, guesses=guesses, delta=0.0)
    jax.effects_barrier()
    (inside,) = coins
    low = guesses // 2  # Guessed to be out; at most as many as were out can be right.
    if sign > 0:
        right = min(low, (~inside).sum()) + min(guesses - low, inside.sum())
    else:
        right = max(low - inside.sum(), 0) + max(guesses - low - (~inside).sum(), 0)
    assert found.right == right and found.guesses == guesses
    if number > 1:
        assert 5 <= inside.sum() <= 35  # Beyond them, the coins are not fair.


@pytest.mark.parametrize("attack", ["one run", "told"])
@few(max_examples=4)
@given(number=st.integers(1, 5), beyond=st.integers(1, 3), delta=st.floats(-1, 2))
def test_canaries_that_prove_nothing_are_refused(attack, number, beyond, delta):
    def tell(number, **options):
        options = {"guesses": number, "delta": 0.0} | options
        if attack == "told":
            return attacks.guess_canaries(np.arange(number), np.ones(number), **options)
        observe = lambda key, inside: jnp.zeros(inside.shape)
        return attacks.one_run(jax.random.key(0), observe, number, **options)

    for wrong, message in (
        ({"guesses": number + beyond}, r"guesses must be in \[1, "),
        ({"guesses": 1 - beyond}, r"guesses must be in \[1, "),
        ({"delta": delta if not 0 <= delta < 1 else -delta - 0.1}, "delta must be"),
        ({"confidence": 0.5 - 0.1 * beyond}, "confidence must be"),
    ):
        with pytest.raises(ValueError, match=message):
            tell(number, **wrong)
    if attack == "one run":
        with pytest.raises(ValueError, match="num_canaries must be >= 1"):
            tell(1 - beyond)
    else:
        for evidence in (np.zeros((2, number)), np.zeros(number + 1)):
            with pytest.raises(ValueError, match=r"evidence and inside must be"):
                attacks.guess_canaries(evidence, np.ones(number), guesses=1, delta=0.0)
        with pytest.raises(ValueError, match="evidence must be numbers, got NaN"):
            attacks.guess_canaries([np.nan], [True], guesses=1, delta=0.0)
