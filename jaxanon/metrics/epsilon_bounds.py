"""Lower bounds on ε from attacks, for privacy audits."""

import numpy as np
from scipy.stats import beta, binom

from jaxanon.kernels.checks import as_numpy, host_number

MAX_THRESHOLDS = 1000

TOLERANCE = 1e-6  # precision of ε


def proportion_bounds(hits, trials, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns Clopper-Pearson bounds on a probability from a number of successes.

    Each bound alone holds with ``confidence``, for any probability. If the probability
    differs between trials, the bounds hold for its mean (Hoeffding 1956).

    Args:
      hits: ``int[...]``, number of successes, in ``[0, trials]``.
      trials: ``int[...]``, number of independent trials, at least 1.
      confidence: confidence level of one bound, in [1/2, 1).

    Returns:
      The lower and the upper bound, ``float64[...]``.

    Raises:
      ValueError: if ``confidence`` is out of range.

    Example:
      Without success in 50 trials, the 95 % upper bound is 1 - 0.05^(1/50).

      >>> low, high = proportion_bounds(0, 50, 0.95)
      >>> float(low), round(float(high), 4)
      (0.0, 0.0582)

    References:
      Clopper and Pearson, Biometrika 1934; Hoeffding, On the distribution of the number
      of successes in independent trials, 1956.
    """
    _check_confidence(confidence)
    hits, trials = as_numpy("hits", hits), as_numpy("trials", trials)
    lower = np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1
    upper = np.minimum(hits, trials - 1) + 1, trials - np.minimum(hits, trials - 1)
    low = np.where(hits > 0, beta.ppf(1 - confidence, *lower), 0.0)
    high = np.where(hits < trials, beta.ppf(confidence, *upper), 1.0)
    return low, high


def epsilon_lower_bound(
    chosen_on, counted_on, delta: float, *, confidence: float = 0.95
) -> float:
    """Returns a lower bound on a mechanism's ε from a distinguishing attack.

    (ε, δ)-differential privacy limits how well any attack distinguishes runs with and
    without an example: ``P(guess with | with) <= e^ε P(guess with | without) + δ``, and
    the same with both sides exchanged. The attack guesses "with" if the evidence is
    above a threshold. The threshold and the inequality are selected on some runs and
    evaluated on others. The bound therefore exceeds the true ε with probability at most
    ``1 - confidence``.

    Args:
      chosen_on: ``float[2, ...]``, evidence for the example in runs without it, then in
        runs with it. The evidence may be fitted to these runs.
      counted_on: ``float[2, ...]``, evidence of further runs, which must be independent
        of one another and of ``chosen_on``.
      delta: δ in [0, 1).
      confidence: confidence level in [1/2, 1).

    Returns:
      ε >= 0. With n runs on each side, the bound is at most about ``log(n / 4)``.

    Raises:
      ValueError: if evidence has a wrong shape, no runs or NaN, or if ``delta`` or
        ``confidence`` is out of range.

    Example:
      The attack is always correct in 100 runs. The bound is the log of the ratio of
      0.025^(1/100) and 1 - 0.025^(1/100).

      >>> evidence = np.stack([np.zeros(100), np.ones(100)])
      >>> round(epsilon_lower_bound(evidence, evidence, 0.0), 2)
      3.28

    References:
      Jagielski, Ullman and Oprea, Auditing differentially private machine learning,
      NeurIPS 2020; Nasr et al., Tight auditing of differentially private machine
      learning, USENIX Security 2023.
    """
    _check_confidence(confidence)
    host_number(delta=delta)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
    chosen = _sides("chosen_on", chosen_on)
    counted = _sides("counted_on", counted_on)
    thresholds = _thresholds(chosen)
    both = (1 + confidence) / 2  # Confidence level at which two bounds hold together.
    bounds = _bounds(chosen, thresholds, delta, both)
    inequality, index = np.unravel_index(np.argmax(bounds), bounds.shape)
    bounds = _bounds(counted, thresholds[[index]], delta, both)
    return float(max(0.0, bounds[inequality, 0]))


def epsilon_from_guesses(
    right: int, guesses: int, canaries: int, delta: float, *, confidence: float = 0.95
) -> float:
    """Returns a lower bound on ε from guesses about canaries of a single run.

    Each of m canaries was included in the run with probability 1/2, independently. With
    δ = 0, each guess is correct with probability at most ``q = e^ε / (1 + e^ε)``, given
    all previous ones. The number of correct guesses is therefore stochastically at most
    ``Binomial(guesses, q)``. With δ > 0, an additional number F of mean ``2 m δ`` may
    be correct. The worst case is ``P(F = i) = 2 m δ / i`` for the i that helps most.
    The result is the largest ε that the number of correct guesses rejects.

    Args:
      right: number of correct guesses, in ``[0, guesses]``.
      guesses: number of guesses, in ``[0, canaries]``, fixed before the run. The
        attacker abstains for the other canaries.
      canaries: number of canaries, m >= 1.
      delta: δ in [0, 1).
      confidence: confidence level in [1/2, 1).

    Returns:
      ε >= 0. With n guesses, it is at most ``-log((1 - confidence)^(-1/n) - 1)``.

    Raises:
      ValueError: if a number is out of range.

    Example:
      75 of 100 guesses are correct, as expected for ε = log 3 = 1.099. The confidence
      level reduces this to 0.702, and δ = 1e-5 for each of 1000 canaries to 0.699.

      >>> round(epsilon_from_guesses(75, 100, 1000, 0.0), 3)
      0.702
      >>> round(epsilon_from_guesses(75, 100, 1000, 1e-5), 3)
      0.699

    References:
      Steinke, Nasr and Jagielski, Privacy auditing with one (1) training run, NeurIPS
      2023, theorem 5.2.
    """
    _check_confidence(confidence)
    host_number(delta=delta)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
    host_number(right=right, guesses=guesses, canaries=canaries)
    if not 0 <= right <= guesses <= canaries or canaries < 1:
        raise ValueError(
            "right, guesses and canaries must satisfy 0 <= right <= guesses <= "
            "canaries and canaries >= 1, got "
            f"{right!r}, {guesses!r} and {canaries!r}."
        )
    if right == 0:
        return 0.0
    with_delta = 2 * canaries * delta
    more = np.arange(1, right + 1)

    def chance(epsilon):
        """Upper bound on the probability of ``right`` or more; grows with ε."""
        q = 1 / (1 + np.exp(-epsilon))
        plain = binom.sf(right - 1, guesses, q)
        gain = binom.sf(right - 1 - more, guesses, q) - plain
        return plain + with_delta * np.max(gain / more)

    # Without δ, this is the Clopper-Pearson bound; δ > 0 reduces it.
    low, _ = proportion_bounds(right, guesses, confidence)
    high = float(np.log(low) - np.log1p(-low))
    if delta == 0:
        return max(0.0, high)
    low = 0.0
    if high <= 0 or chance(low) > 1 - confidence:
        return 0.0
    while high - low > TOLERANCE:
        midpoint = (low + high) / 2
        rejected = chance(midpoint) <= 1 - confidence
        low, high = (midpoint, high) if rejected else (low, midpoint)
    return low


def _thresholds(chosen):
    """Values that occur; of many, at most ``MAX_THRESHOLDS``, denser at both ends."""
    values = np.unique(chosen)
    if len(values) <= MAX_THRESHOLDS:
        return values
    from_end = np.geomspace(1, len(values) / 2, MAX_THRESHOLDS // 2).astype(int)
    return values[np.unique([from_end - 1, -from_end])]


def _bounds(sides, thresholds, delta, confidence):
    """ε by either inequality (rows) at each threshold, ``float64[2, thresholds]``."""
    below = [np.searchsorted(np.sort(side), thresholds) for side in sides]
    trials = [len(side) for side in sides]
    above = [count - under for count, under in zip(trials, below, strict=True)]
    # Guesses "with" for runs with the example, then guesses "without" for runs without.
    pairs = ((above, 1), (below, 0))
    bounds = []
    for guessed, side in pairs:
        low, _ = proportion_bounds(guessed[side], trials[side], confidence)
        _, high = proportion_bounds(guessed[1 - side], trials[1 - side], confidence)
        with np.errstate(divide="ignore"):
            bounds.append(np.log(np.maximum(low - delta, 0)) - np.log(high))
    return np.stack(bounds)


def _sides(name, evidence):
    evidence = as_numpy(name, evidence, np.float64)
    if evidence.ndim < 2 or len(evidence) != 2 or not evidence.size:
        raise ValueError(
            f"{name} must be float[2, runs], for runs without and with the example, "
            f"got shape {evidence.shape}."
        )
    if np.isnan(evidence).any():
        raise ValueError(f"{name} must be numbers, got NaN; exclude diverged runs.")
    return evidence.reshape(2, -1)


def _check_confidence(confidence):
    host_number(confidence=confidence)
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [1/2, 1), got {confidence!r}.")
