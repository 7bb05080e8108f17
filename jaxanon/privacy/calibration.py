"""Calibration of Gaussian noise to a privacy budget."""

import functools
import math
from collections.abc import Iterable
from typing import Any

from jaxanon.kernels.bounds import finite
from jaxanon.privacy.accounting import NEEDS_PLD, epsilon_spent, spent
from jaxanon.privacy.sampled_gaussian import (
    NEGLIGIBLE,
    SampledGaussian,
    overflow_probability,
)

MIN_MULTIPLIER = 1e-3  # Corresponds to an ε of about 500,000.

MAX_MULTIPLIER = 1e6  # Beyond it the noise drowns everything.

TOLERANCE = 1e-3  # Precision of the log of a noise multiplier.

FIRST_STEP = 0.1  # Typical excess of the "rdp" result over "pld", in logs.

MIN_EPSILON, MAX_EPSILON = 1e-300, 1e300  # Range in which logs are finite.


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    sampling_probability: float = 1.0,
    steps: int = 1,
    max_batch_size: int | None = None,
    max_examples: int | None = None,
    other_releases: Iterable[SampledGaussian] = (),
    accountant: str = "pld",
) -> float:
    """Returns the smallest noise multiplier that keeps a training within ε and δ.

    Args:
      epsilon: total ε > 0 of all steps.
      delta: δ in (0, 1).
      sampling_probability, steps, max_batch_size, max_examples: fields of
        ``SampledGaussian``.
      other_releases: further releases of the same max_examples, within the same ε.
      accountant: "pld" or "rdp"; see ``epsilon_spent``.

    Returns:
      z > 0, at most 0.1 % above the optimum and never below it.

    Raises:
      ValueError: if an argument is out of range, ``other_releases`` alone spend ε, or
        no noise multiplier between 1e-3 and 1e6 fits.

    Example:
      >>> z = noise_multiplier_for(2.0, 1e-5, sampling_probability=0.05, steps=100)
      >>> round(z, 1)
      1.3

    References:
      As ``epsilon_spent``.
    """
    finite(zero=False, epsilon=epsilon)
    others = list(other_releases)
    noisy = functools.partial(
        SampledGaussian,
        sampling_probability=sampling_probability,
        steps=steps,
        max_batch_size=max_batch_size,
        max_examples=max_examples,
    )
    fast = "rdp" if _rare([noisy(noise_multiplier=1.0), *others]) else accountant
    others_spent = epsilon_spent(others, delta, accountant=accountant)
    if others_spent >= epsilon:
        raise ValueError(
            f"epsilon must be above the {others_spent:g} of other releases, got "
            f"{epsilon:g}; add noise to them, or raise epsilon."
        )

    def excess(log, name):
        """Returns log(spent ε / ε) for the log of a noise multiplier."""
        return _log_ratio(spent((release_of(log), *others), delta, name), epsilon)

    def release_of(log):
        return noisy(noise_multiplier=math.exp(log))

    log = 0.0
    for name in dict.fromkeys((fast, accountant)):
        excess_fn = functools.partial(excess, name=name)
        low, high = _bracket(excess_fn, log)
        if high is None and name == accountant:
            loudest = release_of(math.log(MAX_MULTIPLIER))
            if spent((loudest, *others), delta, name) is None:
                raise ValueError(NEEDS_PLD)
            other = ", or use accountant 'pld'" if accountant == "rdp" else ""
            raise ValueError(
                f"epsilon must be reachable with a noise multiplier below "
                f"{MAX_MULTIPLIER:g}, got {epsilon:g} for {steps} steps; take fewer "
                f"steps or a larger epsilon{other}."
            )
        if low is None and name == accountant:
            raise ValueError(
                f"epsilon must need noise, got {epsilon:g}, which even a noise "
                f"multiplier of {MIN_MULTIPLIER:g} keeps; take a smaller epsilon, or "
                "train without noise."
            )
        if low is not None and high is not None:
            log = _calibrate(excess_fn, low, high)
    return math.exp(log)


def _log_ratio(spent_, epsilon):
    spent_ = MAX_EPSILON if spent_ is None else spent_
    return math.log(min(max(spent_, MIN_EPSILON), MAX_EPSILON) / epsilon)


def _rare(releases):
    """Returns whether truncation is rare enough for "rdp"."""
    return all(overflow_probability(release) <= NEGLIGIBLE for release in releases)


def _bracket(excess_fn, start):
    """Returns ``(low, high)`` around ``start``, where only ``high`` fits the budget.

    An end is None if no multiplier in the allowed range qualifies.
    """
    least, most = math.log(MIN_MULTIPLIER), math.log(MAX_MULTIPLIER)
    step = FIRST_STEP
    low = high = start
    if excess_fn(start) <= 0:
        while excess_fn(low := max(low - step, least)) <= 0:
            if low <= least:
                return None, low
            high, step = low, 4 * step
        return low, high
    while excess_fn(high := min(high + step, most)) > 0:
        if high >= most:
            return low, None
        low, step = high, 4 * step
    return low, high


class _Budget:
    """The part of an accountant that ``calibrate_dp_mechanism`` calls."""

    def __init__(self, ledger, excess_fn):
        self.ledger, self.excess_fn = ledger, excess_fn

    def compose(self, log):
        self.log = log
        return self

    def get_epsilon(self, delta):
        return self.excess_fn(self.log)


def _calibrate(excess_fn, low, high):
    """Returns a log multiplier that fits, within ``TOLERANCE`` of the optimum."""
    import dp_accounting

    empty = dp_accounting.NoOpDpEvent()
    as_event: Any = lambda log: log
    fresh: Any = lambda: _Budget(empty, excess_fn)
    return dp_accounting.calibrate_dp_mechanism(
        fresh,
        as_event,
        0.0,  # Target of ``excess_fn``.
        0.0,
        dp_accounting.ExplicitBracketInterval(low, high),
        tol=TOLERANCE / 2,
    )
