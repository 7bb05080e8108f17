"""The least Gaussian noise with which a training keeps within a budget."""

import functools
import math
from collections.abc import Iterable
from typing import Any

from jaxanon.kernels.bounds import finite
from jaxanon.privacy.accounting import CUT, epsilon_spent, spent
from jaxanon.privacy.sampled_gaussian import RARELY, SampledGaussian, beyond

LEAST_MULTIPLIER = 1e-3  # Of an ε of half a million.

MOST_MULTIPLIER = 1e6  # Beyond it noise is all there is.

WIDTH = 1e-3  # To which the log of a noise multiplier is found.

NEAR = 0.1  # What Rényi's orders ask for is mostly so much too much, in logs.

LEAST_EPSILON, MOST_EPSILON = 1e-300, 1e300  # Of which logs are taken.


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    sampling_probability: float = 1.0,
    steps: int = 1,
    max_batch_size: int | None = None,
    max_examples: int | None = None,
    beside: Iterable[SampledGaussian] = (),
    accountant: str = "pld",
) -> float:
    """The least noise multiplier with which a training keeps within ε and δ.

    Args:
      epsilon: ε > 0 that all steps may cost together.
      delta: δ in (0, 1).
      sampling_probability, steps, max_batch_size, max_examples: as in
        ``SampledGaussian``.
      beside: releases of the same records that are paid for from the same ε.
      accountant: as ``epsilon_spent`` takes it.

    Returns:
      z > 0, by at most a thousandth larger than need be, never smaller.

    Raises:
      ValueError: as ``epsilon_spent``; if what is ``beside`` spends ε alone; or if no
        noise multiplier between 1e-3 and 1e6 is the one.

    Example:
      >>> z = noise_multiplier_for(2.0, 1e-5, sampling_probability=0.05, steps=100)
      >>> round(z, 1)
      1.3

    References:
      As ``epsilon_spent``.
    """
    finite(zero=False, epsilon=epsilon)
    beside = list(beside)
    noisy = functools.partial(
        SampledGaussian,
        sampling_probability=sampling_probability,
        steps=steps,
        max_batch_size=max_batch_size,
        max_examples=max_examples,
    )
    quick = "rdp" if _rare([noisy(noise_multiplier=1.0), *beside]) else accountant
    alone = epsilon_spent(beside, delta, accountant=accountant)
    if alone >= epsilon:
        raise ValueError(
            f"what is released beside it spends {alone:g} of epsilon {epsilon:g} "
            "already; give it more noise, or leave more budget."
        )

    def over(log, judge):
        """Log of ε that is spent over what may be, of noise whose log is given."""
        return _log_ratio(spent((of(log), *beside), delta, judge), epsilon)

    def of(log):
        return noisy(noise_multiplier=math.exp(log))

    log = 0.0
    for judge in dict.fromkeys((quick, accountant)):
        low, high = _bracket(lambda log, judge=judge: over(log, judge), log)
        if high is None and judge == accountant:
            if spent((of(math.log(MOST_MULTIPLIER)), *beside), delta, judge) is None:
                raise ValueError(CUT)
            other = ", or accountant 'pld'" if accountant == "rdp" else ""
            raise ValueError(
                f"no noise multiplier below {MOST_MULTIPLIER:g} keeps {steps} steps "
                f"within epsilon {epsilon:g}; take fewer steps, or a larger "
                f"epsilon{other}."
            )
        if low is None and judge == accountant:
            raise ValueError(
                f"epsilon {epsilon:g} is kept by a noise multiplier of "
                f"{LEAST_MULTIPLIER:g}, which hides nothing; take a smaller epsilon, "
                "or no noise."
            )
        if low is not None and high is not None:
            log = _calibrated(lambda log, judge=judge: over(log, judge), low, high)
    return math.exp(log)


def _log_ratio(found, epsilon):
    found = MOST_EPSILON if found is None else found
    return math.log(min(max(found, LEAST_EPSILON), MOST_EPSILON) / epsilon)


def _rare(releases):
    """Whether samples are cut so rarely that "rdp" may be asked about them."""
    return all(beyond(release) <= RARELY for release in releases)


def _bracket(over, start):
    """``(low, high)`` around ``start``, of which ``high`` alone fits.

    None for an end that there is not between the least and the most.
    """
    least, most, step = math.log(LEAST_MULTIPLIER), math.log(MOST_MULTIPLIER), NEAR
    low = high = start
    if over(start) <= 0:
        while over(low := max(low - step, least)) <= 0:
            if low <= least:
                return None, low
            high, step = low, 4 * step
        return low, high
    while over(high := min(high + step, most)) > 0:
        if high >= most:
            return low, None
        low, step = high, 4 * step
    return low, high


class _Budget:
    """The part of an accountant that ``calibrate_dp_mechanism`` calls."""

    def __init__(self, ledger, over):
        self.ledger, self.over = ledger, over

    def compose(self, log):
        self.log = log
        return self

    def get_epsilon(self, delta):
        return self.over(self.log)


def _calibrated(over, low, high):
    """Of a bracket what fits, and is at most ``WIDTH`` above what does not."""
    import dp_accounting

    empty = dp_accounting.NoOpDpEvent()
    as_event: Any = lambda log: log
    fresh: Any = lambda: _Budget(empty, over)
    return dp_accounting.calibrate_dp_mechanism(
        fresh,
        as_event,
        0.0,  # Of logs of ε over what may be.
        0.0,
        dp_accounting.ExplicitBracketInterval(low, high),
        tol=WIDTH / 2,
    )
