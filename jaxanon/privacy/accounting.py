"""What Gaussian noise costs: ε and δ of whole trainings, by dp-accounting."""

import functools
import math
import warnings
from collections.abc import Iterable

from jaxanon.kernels.checks import one_of
from jaxanon.privacy.composition import positive
from jaxanon.privacy.sampled import RARELY, SampledGaussian, beyond, composed

ACCOUNTANTS = ("pld", "rdp")
MOST_MULTIPLIER = 1e6  # Beyond it noise is all there is.
COARSE = "coarse pld"  # Up to twenty times as quick, and hardly above pld.
WIDTH = 1e-3  # To which the log of a noise multiplier is found.
LEAST, LARGEST = 1e-12, 1e300  # An ε of which logs are taken.
SPARED = 0.01  # Of δ, for samples that their capacity cuts.


def epsilon_spent(
    releases: Iterable[SampledGaussian], delta: float, *, accountant: str = "pld"
) -> float:
    """The ε of all releases together, each of which may depend on those before it.

    Args:
      releases: of the same records.
      delta: δ in (0, 1).
      accountant: "pld", privacy loss distributions, tight up to a discretisation that
        errs on the safe side; "rdp", Rényi, an upper bound that is larger and quicker.
        A capacity that is hardly ever reached costs a hundredth of δ; one that cuts
        samples often is understood by "pld" alone, and takes it minutes.

    Returns:
      ε >= 0; 0 where nothing left.

    Raises:
      ValueError: for another accountant, a δ out of its range, or a capacity with
        "rdp".

    Example:
      One sum with as much noise as its clip norm, and a hundred of samples of 1 %:

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
    found = _spent(tuple(releases), checked_delta(delta), accountant)
    if found is None:
        raise ValueError(
            "a capacity that is often reached is accounted for by pld alone; leave "
            "accountant as it is."
        )
    return found


def _spent(releases, delta, accountant):
    """``epsilon_spent``, or by ``COARSE``; None where "rdp" cannot tell."""
    if not releases:
        return 0.0
    spill = sum(release.steps * beyond(release) for release in releases)
    if spill:
        # A lot spills over so rarely that what it is then may as well be anything.
        epsilon = composed(releases, (1 - SPARED) * delta, accountant, False)
        if (1 + math.exp(min(epsilon, 700))) * spill <= SPARED * delta:
            return epsilon
        if accountant == "rdp":
            return None
    return composed(releases, delta, accountant, bool(spill))


def _rare(releases):
    """Whether samples are cut so rarely that "rdp" may be asked about them."""
    return all(beyond(release) <= RARELY for release in releases)


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
      ValueError: as ``epsilon_spent``, and if what is ``beside`` spends ε alone.

    Example:
      >>> z = noise_multiplier_for(2.0, 1e-5, sampling_probability=0.05, steps=100)
      >>> round(z, 1)
      1.3

    References:
      As ``epsilon_spent``.
    """
    positive(epsilon=epsilon)
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
        spent = _spent((own, *beside), delta, judge)
        spent = LARGEST if spent is None else min(max(spent, LEAST), LARGEST)
        return math.log(spent) - goal

    most = math.log(MOST_MULTIPLIER)
    low, high = -math.log(2), 0.0
    while over(high, quick) > 0 and high < most:
        low, high = high, min(high + math.log(2), most)
    if high >= most and quick != accountant:
        # Rényi's orders end where an epsilon is that small: from above, by the other.
        low, high, quick = most, most, accountant
    if over(high, quick) > 0:
        raise ValueError(
            f"no noise multiplier below {MOST_MULTIPLIER:g} keeps {steps} steps "
            f"within epsilon {epsilon:g}; take fewer steps, or a larger epsilon."
        )
    while over(low, quick) <= 0:
        low, high = low - math.log(2), low
    if accountant == quick:
        return math.exp(_least(over, quick, low, high, WIDTH))
    high = _least(over, quick, low, high, 0.02)
    near = 0.1  # What the quick one asks for is mostly a tenth too much.
    if accountant == "pld" and over(high, COARSE) <= 0:
        bracket = _bracket(over, COARSE, high, near)
        high, near = _least(over, COARSE, *bracket, 1e-4), 0.9 * WIDTH
    bracket = _bracket(over, accountant, high, near)
    return math.exp(_least(over, accountant, *bracket, WIDTH))


def _bracket(over, judge, high, step):
    """``(low, high)``, of which ``high`` alone fits, a ``step`` apart or more."""
    if over(high, judge) <= 0:
        low = high - step
        while over(low, judge) <= 0:
            step = 2 * step
            low, high = low - step, low
        return low, high
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
    while above < high and over(above, judge) > 0:  # By rounding, if at all.
        above += width / 4
    return min(high, above)


def steps_within(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    sampling_probability: float = 1.0,
    accountant: str = "pld",
) -> int:
    """How many steps a budget pays for; 0 where it does not pay for one.

    Args:
      epsilon: ε > 0.
      delta: δ in (0, 1).
      noise_multiplier, sampling_probability: as in ``SampledGaussian``.
      accountant: as ``epsilon_spent`` takes it.

    Raises:
      ValueError: as ``epsilon_spent``.

    Example:
      >>> steps_within(5.0, 1e-5, noise_multiplier=1.0)
      1
    """
    positive(epsilon=epsilon)

    def fits(steps):
        each = SampledGaussian(
            noise_multiplier=noise_multiplier,
            sampling_probability=sampling_probability,
            steps=steps,
        )
        return epsilon_spent([each], delta, accountant=accountant) <= epsilon

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def warn_of_delta(delta: float, records: int) -> None:
    """Warns where δ is so large that it allows for giving a record away.

    A mechanism that publishes one record of N, drawn at random, is (0, 1/N)-private.

    Args:
      delta: δ in (0, 1).
      records: N >= 1, of the smallest data set that δ is meant for.

    Example:
      >>> warn_of_delta(1e-5, 1000)
    """
    checked_delta(delta)
    if delta * records >= 1:
        warnings.warn(
            f"delta {delta:g} is no less than 1 / {records}, the number of records: "
            "publishing one of them at random would be as private; take one well "
            "below that.",
            UserWarning,
            stacklevel=2,
        )


def checked_delta(delta: float) -> float:
    """δ as a float; ValueError unless it is in (0, 1).

    Example:
      >>> checked_delta(1e-5)
      1e-05
    """
    positive(delta=delta)
    if not delta < 1:
        raise ValueError(f"delta must be below 1, got {delta!r}.")
    return float(delta)
