"""The least Gaussian noise with which a training keeps within a budget."""

import functools
import math
from collections.abc import Iterable

from jaxanon.kernels.bounds import finite
from jaxanon.privacy.accounting import CUT, epsilon_spent, spent
from jaxanon.privacy.sampled_gaussian import COARSE, RARELY, SampledGaussian, beyond

LEAST_MULTIPLIER = 1e-3  # Of an ε of half a million.

MOST_MULTIPLIER = 1e6  # Beyond it noise is all there is.

WIDTH = 1e-3  # To which the log of a noise multiplier is found.

LEAST_EPSILON, MOST_EPSILON = 1e-300, 1e300  # Of which logs are taken.


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    sampling_probability: float = 1.0,
    steps: int = 1,
    capacity: int | None = None,
    records: int | None = None,
    beside: Iterable[SampledGaussian] = (),
    accountant: str = "pld",
) -> float:
    """The least noise multiplier with which a training keeps within ε and δ.

    Args:
      epsilon: ε > 0 that all steps may cost together.
      delta: δ in (0, 1).
      sampling_probability, steps, capacity, records: as in ``SampledGaussian``.
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
        capacity=capacity,
        records=records,
    )
    quick = "rdp" if _rare([noisy(noise_multiplier=1.0), *beside]) else accountant
    alone = epsilon_spent(beside, delta, accountant=accountant)
    if alone >= epsilon:
        raise ValueError(
            f"what is released beside it spends {alone:g} of epsilon {epsilon:g} "
            "already; give it more noise, or leave more budget."
        )

    goal = math.log(epsilon)

    def over(log, judge):
        """Log of ε that is spent over what may be, of noise whose log is given."""
        own = noisy(noise_multiplier=math.exp(log))
        found = spent((own, *beside), delta, judge)
        found = MOST_EPSILON if found is None else found
        return math.log(min(max(found, LEAST_EPSILON), MOST_EPSILON)) - goal

    low, high, judge = _doubled(over, quick, accountant)
    if high is None:
        largest = noisy(noise_multiplier=MOST_MULTIPLIER)
        if spent((largest, *beside), delta, accountant) is None:
            raise ValueError(CUT)
        other = ", or accountant 'pld'" if accountant == "rdp" else ""
        raise ValueError(
            f"no noise multiplier below {MOST_MULTIPLIER:g} keeps {steps} steps "
            f"within epsilon {epsilon:g}; take fewer steps, or a larger epsilon{other}."
        )
    if low is not None and judge != accountant:
        low, high = _nearer(over, judge, accountant, low, high)
    if low is None:
        raise ValueError(
            f"epsilon {epsilon:g} is kept by a noise multiplier of "
            f"{LEAST_MULTIPLIER:g}, which hides nothing; take a smaller epsilon, or "
            "no noise."
        )
    return math.exp(_least(over, accountant, low, high, WIDTH))


def _rare(releases):
    """Whether samples are cut so rarely that "rdp" may be asked about them."""
    return all(beyond(release) <= RARELY for release in releases)


def _doubled(over, quick, accountant):
    """``(low, high, judge)``: logs a doubling apart, of which ``high`` alone fits.

    By the quick accountant if that can tell. None for an end that there is not.
    """
    double, least, most = map(math.log, (2, LEAST_MULTIPLIER, MOST_MULTIPLIER))
    low, high = -double, 0.0
    while over(high, quick) > 0 and high < most:
        low, high = high, min(high + double, most)
    if high >= most and quick != accountant:
        # Rényi's orders end where an epsilon is that small: from above, by the other.
        low, high, quick = most, most, accountant
    if over(high, quick) > 0:
        return low, None, quick
    while over(low, quick) <= 0:
        if low <= least:
            return None, low, quick
        low, high = max(low - double, least), low
    return low, high, quick


def _nearer(over, quick, accountant, low, high):
    """A bracket of ``accountant``, narrower than what the quick one told."""
    high = _least(over, quick, low, high, 0.02)
    near = 0.1  # What the quick one asks for is mostly a tenth too much.
    if accountant == "pld" and over(high, COARSE) <= 0:
        low, high = _bracket(over, COARSE, high, near)
        if low is None:
            return None, high
        high, near = _least(over, COARSE, low, high, 1e-4), 0.9 * WIDTH
    return _bracket(over, accountant, high, near)


def _bracket(over, judge, high, step):
    """``(low, high)``, of which ``high`` alone fits, a ``step`` apart or more.

    ``low`` is None where the least multiplier that there is fits.
    """
    least = math.log(LEAST_MULTIPLIER)
    if over(high, judge) <= 0:
        while high > least:
            low = max(high - step, least)
            if over(low, judge) > 0:
                return low, high
            high, step = low, 2 * step
        return None, high
    low, high = high, high + step
    while over(high, judge) > 0:
        step = 2 * step
        low, high = high, high + step
    return low, high


def _least(over, judge, low, high, width):
    """Of a bracket what fits, and is at most so far above the least that does."""
    from scipy import optimize

    if high - low <= width:
        return high
    found = optimize.brentq(lambda log: over(log, judge), low, high, xtol=width / 4)
    above = found + width / 2
    # By rounding; or of samples with a capacity, whose ε need not fall steadily.
    while above < high and over(above, judge) > 0:
        above += width / 4
    return min(high, above)
