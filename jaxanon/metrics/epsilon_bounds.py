"""How much privacy was lost at least: ε that counted guesses prove."""

import numpy as np
from scipy.stats import beta, binom

MOST = 1000  # Thresholds that are tried.

NEAR = 1e-6  # How near ε is found.


def proportion_bounds(hits, trials, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on a probability from how often something happened.

    Clopper and Pearson's: either holds by itself with ``confidence``, whatever the
    probability, and so they do where it differs from trial to trial (Hoeffding 1956)
    and they are of its mean.

    Args:
      hits: ``int[...]`` in ``[0, trials]``.
      trials: ``int[...]``, independent of one another, at least 1.
      confidence: of one bound, in [1/2, 1).

    Returns:
      The lower and the upper bound, ``float64[...]``.

    Raises:
      ValueError: for another confidence.

    Example:
      Nothing in 50: with 95 % at most 1 - 0.05^(1/50).

      >>> low, high = proportion_bounds(0, 50, 0.95)
      >>> float(low), round(float(high), 4)
      (0.0, 0.0582)

    References:
      Clopper and Pearson, Biometrika 1934; Hoeffding, On the distribution of the number
      of successes in independent trials, 1956.
    """
    _confident(confidence)
    hits, trials = np.asarray(hits), np.asarray(trials)
    least = np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1
    most = np.minimum(hits, trials - 1) + 1, trials - np.minimum(hits, trials - 1)
    low = np.where(hits > 0, beta.ppf(1 - confidence, *least), 0.0)
    high = np.where(hits < trials, beta.ppf(confidence, *most), 1.0)
    return low, high


def epsilon_lower_bound(
    chosen_on, counted_on, delta: float, *, confidence: float = 0.95
) -> float:
    """The ε that a mechanism has at least, by telling its outputs apart.

    (ε, δ)-differential privacy bounds by how much outputs of two neighbours differ: of
    whichever outputs are called "with", ``P(with | with) <= e^ε P(with | without) + δ``
    and so the other way around. Evidence above a threshold is called so; the threshold
    and the inequality are chosen on one half of the runs, and counted on the other, so
    that the bound is wrong for one audit in twenty at most, were it repeated.

    Args:
      chosen_on: ``float[2, ...]``, evidence that a run had the example: of runs without
        it, then of runs with it. The evidence itself may have been fitted to these.
      counted_on: likewise, of as many other runs as one likes, independent of one
        another and of ``chosen_on``.
      delta: δ in [0, 1).
      confidence: in [1/2, 1).

    Returns:
      ε >= 0. Of n runs on either side no more is found than about ``log(n / 4)``,
      whatever was lost.

    Raises:
      ValueError: for evidence of another shape, without a run or NaN, and δ or
        confidence out of range.

    Example:
      Told apart every time in 100 runs: 0.025^(1/100) over 1 - 0.025^(1/100).

      >>> apart = np.stack([np.zeros(100), np.ones(100)])
      >>> round(epsilon_lower_bound(apart, apart, 0.0), 2)
      3.28

    References:
      Jagielski, Ullman and Oprea, Auditing differentially private machine learning,
      NeurIPS 2020; Nasr et al., Tight auditing of differentially private machine
      learning, USENIX Security 2023.
    """
    _confident(confidence)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
    chosen = _sides("chosen_on", chosen_on)
    counted = _sides("counted_on", counted_on)
    thresholds = _thresholds(chosen)
    both = (1 + confidence) / 2  # Of each of two bounds, so that both hold.
    bounds = _bounds(chosen, thresholds, delta, both)
    inequality, place = np.unravel_index(np.argmax(bounds), bounds.shape)
    found = _bounds(counted, thresholds[[place]], delta, both)
    return float(max(0.0, found[inequality, 0]))


def epsilon_from_guesses(
    right: int, guesses: int, canaries: int, delta: float, *, confidence: float = 0.95
) -> float:
    """The ε that one run has at least, by which of its canaries were guessed right.

    Of m canaries each was in the run or not, by a fair coin of its own. With δ = 0,
    whatever was released, what is known of the coins before leaves each guess right
    with probability ``q = e^ε / (1 + e^ε)`` at most: as many are right as of
    ``Binomial(guesses, q)``, or fewer. With δ, some F more may be, of mean ``2 m δ``,
    which an adversary shares out as he likes: ``P(F = i) = 2 m δ / i`` for the i that
    helps most. ε is the largest that so many right guesses refute.

    Args:
      right: guesses that were right, in ``[0, guesses]``.
      guesses: that were made, in ``[0, canaries]``; a number fixed before the run. The
        others are abstained from.
      canaries: m >= 1.
      delta: δ in [0, 1).
      confidence: in [1/2, 1).

    Returns:
      ε >= 0, 0 where guesses prove nothing. All of n being right proves
      ``-log((1 - confidence)^(-1/n) - 1)`` at most, whatever was lost.

    Raises:
      ValueError: for a number out of its range.

    Example:
      Of 100 guesses 75 are right, where ε = log 3 would have it 3 times in 4; 67 of
      them are proved, and each 1e-5 of δ for each of 1000 canaries costs a little.

      >>> round(epsilon_from_guesses(75, 100, 1000, 0.0), 3)
      0.702
      >>> round(epsilon_from_guesses(75, 100, 1000, 1e-5), 3)
      0.699

    References:
      Steinke, Nasr and Jagielski, Privacy auditing with one (1) training run, NeurIPS
      2023, theorem 5.2.
    """
    _confident(confidence)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
    if not 0 <= right <= guesses <= canaries or canaries < 1:
        raise ValueError(
            "of 1 canary or more at most all may be guessed, and of these guesses at "
            f"most all be right, got {right!r} right of {guesses!r} guesses of "
            f"{canaries!r}."
        )
    if right == 0:
        return 0.0
    with_delta = 2 * canaries * delta
    more = np.arange(1, right + 1)

    def chance(epsilon):
        """At most so likely are so many right guesses; grows with ε."""
        q = 1 / (1 + np.exp(-epsilon))
        plain = binom.sf(right - 1, guesses, q)
        helped = binom.sf(right - 1 - more, guesses, q) - plain
        return plain + with_delta * np.max(helped / more)

    # Without δ the binomial's bound is Clopper and Pearson's; with it ε is below.
    low, _ = proportion_bounds(right, guesses, confidence)
    high = float(np.log(low) - np.log1p(-low))
    if delta == 0:
        return max(0.0, high)
    low = 0.0
    if high <= 0 or chance(low) > 1 - confidence:
        return 0.0
    while high - low > NEAR:
        middle = (low + high) / 2
        refuted = chance(middle) <= 1 - confidence
        low, high = (middle, high) if refuted else (low, middle)
    return low


def _thresholds(chosen):
    """Values that occur, where there are many of them fewer in the middle."""
    values = np.unique(chosen)
    if len(values) <= MOST:
        return values
    from_end = np.geomspace(1, len(values) / 2, MOST // 2).astype(int)
    return values[np.unique([from_end - 1, -from_end])]


def _bounds(sides, thresholds, delta, confidence):
    """ε by either inequality (rows) at each threshold, ``float64[2, thresholds]``."""
    below = [np.searchsorted(np.sort(side), thresholds) for side in sides]
    trials = [len(side) for side in sides]
    above = [count - under for count, under in zip(trials, below, strict=True)]
    # Of the members called so, and of the others that are; of those called others.
    pairs = ((above, 1), (below, 0))
    found = []
    for called, own in pairs:
        low, _ = proportion_bounds(called[own], trials[own], confidence)
        _, high = proportion_bounds(called[1 - own], trials[1 - own], confidence)
        with np.errstate(divide="ignore"):
            found.append(np.log(np.maximum(low - delta, 0)) - np.log(high))
    return np.stack(found)


def _sides(name, evidence):
    evidence = np.asarray(evidence, np.float64)
    if evidence.ndim < 2 or len(evidence) != 2 or not evidence.size:
        raise ValueError(
            f"{name} must be float[2, runs], of runs without and with the example, got "
            f"shape {evidence.shape}."
        )
    if np.isnan(evidence).any():
        raise ValueError(f"{name} must be numbers, got NaN; is it of a run that broke?")
    return evidence.reshape(2, -1)


def _confident(confidence):
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [1/2, 1), got {confidence!r}.")
