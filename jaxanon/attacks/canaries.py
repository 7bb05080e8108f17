"""One run, many canaries: who of them was in it, and the ε that right guesses prove."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxanon import metrics


class Canaries(NamedTuple):
    """What an onlooker guessed of one run, and what it proves."""

    right: int
    guesses: int
    epsilon: float  # lower bound


def one_run(
    key,
    observe: Callable,
    num_canaries: int,
    *,
    guesses: int,
    delta: float,
    confidence: float = 0.95,
) -> Canaries:
    """Runs once with some canaries, each in by a fair coin, and guesses which.

    One training in place of thousands, where there is room for many canaries that
    hardly touch one another, such as examples with orthogonal gradients. It proves
    less than ``shadow`` and ``infer_members`` do: all it has are shares of coins.

    Args:
      key: typed PRNG key, of the coins and of the run.
      observe: ``(key, inside) -> float[canaries]``, evidence that each was in a run
        with those of ``inside``, ``bool[canaries]``; from nothing but what the run
        released. Traced once.
      num_canaries: at least 1.
      guesses, delta, confidence: as ``tell_canaries`` takes them.

    Returns:
      ``Canaries``.

    Raises:
      ValueError: for a number below 1, and as ``tell_canaries``.

    Example:
      Bits that are flipped with probability 1 / (1 + e^2), released as they are then:

      >>> def flipped(key, inside):
      ...     kept = jax.random.bernoulli(key, jax.nn.sigmoid(2.0), inside.shape)
      ...     return 1.0 * (kept == inside)
      >>> found = one_run(jax.random.key(0), flipped, 4000, guesses=2000, delta=0.0)
      >>> 1.7 < found.epsilon <= 2.0
      True

    References:
      Steinke, Nasr and Jagielski, Privacy auditing with one (1) training run, NeurIPS
      2023, algorithm 1.
    """
    if num_canaries < 1:
        raise ValueError(f"num_canaries must be >= 1, got {num_canaries!r}.")
    coin_key, run_key = jax.random.split(key)
    inside = jax.random.bernoulli(coin_key, shape=(num_canaries,))
    evidence = jax.jit(observe)(run_key, inside)
    options = {"guesses": guesses, "delta": delta, "confidence": confidence}
    return tell_canaries(evidence, inside, **options)


def tell_canaries(
    evidence, inside, *, guesses: int, delta: float, confidence: float = 0.95
) -> Canaries:
    """Says "in" of the canaries with most evidence, "out" of those with least.

    Of the others nothing is said: a guess that is not sure spoils the share of those
    that are right. For the bound to hold, the coins must be fair and nobody's to see,
    each canary a neighbour's difference (in the run or not in it), and ``guesses``
    chosen before the run.

    Args:
      evidence: ``float[canaries]`` that a canary was in.
      inside: ``bool[canaries]``, whether it was.
      guesses: how many, half of them "in"; from 1 to all.
      delta: δ at which ε is bounded.
      confidence: of the bound.

    Returns:
      ``Canaries``, whose ``epsilon`` is that of ``metrics.epsilon_of_guesses``.

    Raises:
      ValueError: for other shapes, NaN, a number of guesses out of range, and as
        ``metrics.epsilon_of_guesses``.

    Example:
      >>> seen = np.array([0.9, 0.1, 0.4, -3.0])
      >>> tell_canaries(seen, np.array([1, 1, 0, 0]), guesses=2, delta=0.0)
      Canaries(right=2, guesses=2, epsilon=0.0)

    References:
      As ``one_run``, section 5.
    """
    evidence, inside = np.asarray(evidence, np.float64), np.asarray(inside, bool)
    if evidence.ndim != 1 or evidence.shape != inside.shape:
        raise ValueError(
            "evidence and inside must be [canaries], got shapes "
            f"{evidence.shape} and {inside.shape}."
        )
    if np.isnan(evidence).any():
        raise ValueError("evidence must be numbers, got NaN; did the run diverge?")
    if not 1 <= guesses <= len(evidence):
        raise ValueError(
            f"guesses must be in [1, {len(evidence)}], of so many canaries, got "
            f"{guesses!r}."
        )
    order = np.argsort(evidence, kind="stable")
    low = guesses // 2
    out, into = order[:low], order[len(order) - (guesses - low) :]
    right = int((~inside[out]).sum() + inside[into].sum())
    bound = metrics.epsilon_of_guesses(
        right, guesses, len(evidence), delta, confidence=confidence
    )
    return Canaries(right, guesses, bound)
