"""Accounting of Gaussian noise: ε and δ of whole trainings, by dp-accounting."""

import functools
import math
import warnings
from collections.abc import Iterable
from typing import Any

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import host_number, is_instance, one_of
from jaxanon.privacy.sampled_gaussian import (
    SampledGaussian,
    compose_epsilon,
    overflow_probability,
)

ACCOUNTANTS = ("pld", "rdp")

RESERVED = 0.01  # Fraction of δ for samples that exceed their capacity.

NEEDS_PLD = (
    "accountant must be 'pld' for a capacity that samples often exceed, got 'rdp'; "
    "omit accountant, or raise the capacity."
)


def epsilon_spent(
    releases: Iterable[SampledGaussian], delta: float, *, accountant: str = "pld"
) -> float:
    """Returns the total ε of adaptively composed releases.

    Args:
      releases: releases of the same records; each may depend on earlier ones.
      delta: δ in (0, 1). The accountant "pld" overstates ε considerably below 1e-15.
      accountant: "pld" or "rdp". Privacy loss distributions ("pld") are tight up to a
        pessimistic discretization. Rényi divergences ("rdp") are a faster, larger upper
        bound. A capacity that samples rarely exceed costs 1 % of δ. One that they often
        exceed requires "pld" and takes minutes.

    Returns:
      ε >= 0; 0 without releases.

    Raises:
      ValueError: if the accountant is unknown, δ is out of range, or samples often
        exceed their capacity with "rdp".

    Example:
      One sum with noise multiplier 1, then 100 sums over samples of 1 %:

      >>> round(epsilon_spent([SampledGaussian(noise_multiplier=1.0)], 1e-5), 2)
      4.38
      >>> each = SampledGaussian(
      ...     noise_multiplier=1.0, sampling_probability=0.01, steps=100)
      >>> round(epsilon_spent([each], 1e-5), 2)
      0.72

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016; Mironov, Talwar
      and Zhang, arXiv 1908.10530 (rdp); Koskela, Jälkö and Honkela, AISTATS 2020, and
      Doroshenko et al., PoPETs 2022 (pld).
    """
    one_of("accountant", accountant, ACCOUNTANTS)
    if not isinstance(releases, Iterable):
        raise TypeError(f"releases must be a list, got {type(releases).__name__}.")
    releases = tuple(releases)
    for number, release in enumerate(releases):
        is_instance(SampledGaussian, **{f"releases[{number}]": release})
    epsilon = spent(releases, check_delta(delta), accountant)
    if epsilon is None:
        raise ValueError(NEEDS_PLD)
    return epsilon


def spent(releases, delta, accountant):
    """Returns ``epsilon_spent``, or None if "rdp" cannot bound the truncation."""
    if not releases:
        return 0.0
    overflow = sum(r.steps * overflow_probability(r) for r in releases)
    if overflow:
        # If overflow is rare, part of δ covers any output in that case.
        epsilon = compose_epsilon(releases, (1 - RESERVED) * delta, accountant, False)
        if (1 + math.exp(min(epsilon, 700))) * overflow <= RESERVED * delta:
            return epsilon
        if accountant == "rdp":
            return None
    return compose_epsilon(releases, delta, accountant, bool(overflow))


def steps_within(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    sampling_probability: float = 1.0,
    accountant: str = "pld",
) -> int:
    """Returns the largest number of steps within a budget; 0 if one is too many.

    Args:
      epsilon: ε > 0.
      delta: δ in (0, 1).
      noise_multiplier: z > 0, the standard deviation of the noise over the clip norm.
      sampling_probability: q in (0, 1], the probability of a record per step.
      accountant: "pld" or "rdp", as in ``epsilon_spent``.

    Raises:
      ValueError: if an argument is out of range, or the accountant is unknown.

    Example:
      >>> steps_within(5.0, 1e-5, noise_multiplier=1.0)
      1
    """
    from scipy import optimize  # Imported here: it takes half a second.

    finite(zero=False, epsilon=epsilon)

    @functools.cache
    def excess(steps):
        """Returns the ε of ``steps`` minus the budget, finite for the root search."""
        each = SampledGaussian(
            noise_multiplier=noise_multiplier,
            sampling_probability=sampling_probability,
            steps=steps,
        )
        spent = epsilon_spent([each], delta, accountant=accountant)
        return min(spent - epsilon, epsilon)

    if excess(1) > 0:
        return 0
    low, high = 1, 2
    while excess(high) <= 0:
        fraction = max(1 + excess(high) / epsilon, 0.03)
        # ε grows at least with the square root of the steps.
        low, high = high, math.ceil(max(2.0, fraction**-2) * high)
    root: Any = optimize.brentq(lambda steps: excess(round(steps)), low, high, xtol=0.5)
    num_steps = round(root)
    while excess(num_steps) > 0:
        num_steps -= 1
    while excess(num_steps + 1) <= 0:
        num_steps += 1
    return num_steps


def warn_of_delta(delta: float, records: int) -> None:
    """Warns if δ is large enough to permit publishing a record.

    A mechanism that publishes one of N records at random is (0, 1/N)-private.

    Args:
      delta: δ in (0, 1).
      records: number of records N >= 1 of the smallest data set in question.

    Example:
      >>> warn_of_delta(1e-5, 1000)
    """
    check_delta(delta)
    host_number(records=records)
    if delta * records >= 1:
        warnings.warn(
            f"delta should be well below 1 / {records}, one over the number of "
            f"records, got {delta:g}, which permits publishing one record at random; "
            "lower delta.",
            UserWarning,
            stacklevel=2,
        )


def check_delta(delta: float) -> float:
    """Returns δ as a float; raises ValueError unless it is in (0, 1).

    Example:
      >>> check_delta(1e-5)
      1e-05
    """
    finite(zero=False, delta=delta)
    if not delta < 1:
        raise ValueError(f"delta must be below 1, got {delta!r}.")
    return float(delta)


WEAK = 10.0


def warn_of_epsilon(epsilon: float) -> None:
    """Warns if ε exceeds 10, where the guarantee is weak.

    An output may then be more than e^10 = 22,000 times as likely with a record as
    without it. The guide "How to DP-fy ML" considers ε up to 10 reasonable and larger
    values weak. Noise may still help at larger ε; ``jaxanon.attacks.auditing``
    estimates how much.

    Args:
      epsilon: ε > 0 of a whole training.

    Example:
      >>> warn_of_epsilon(8.0)

    References:
      Ponomareva et al., How to DP-fy ML: a practical guide to machine learning with
      differential privacy, JAIR 2023 (arXiv 2303.00654), tiers of ε.
    """
    host_number(epsilon=epsilon)
    if epsilon > WEAK:
        warnings.warn(
            f"epsilon should be at most {WEAK:g}, got {epsilon:g}, which is a weak "
            "guarantee; use fewer rounds or steps or smaller samples, or measure the "
            "leakage by attacks.",
            UserWarning,
            stacklevel=2,
        )
