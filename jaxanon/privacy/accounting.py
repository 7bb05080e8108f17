"""What Gaussian noise costs: ε and δ of whole trainings, by dp-accounting."""

import functools
import math
import warnings
from collections.abc import Iterable
from typing import Any

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import finite
from jaxanon.privacy.sampled_gaussian import SampledGaussian, beyond, composed

ACCOUNTANTS = ("pld", "rdp")

SPARED = 0.01  # Of δ, for samples that their capacity cuts.

CUT = (
    "a capacity that is often reached is accounted for by pld alone; leave "
    "accountant as it is."
)


def epsilon_spent(
    releases: Iterable[SampledGaussian], delta: float, *, accountant: str = "pld"
) -> float:
    """The ε of all releases together, each of which may depend on those before it.

    Args:
      releases: of the same records.
      delta: δ in (0, 1); of less than 1e-15 "pld" overstates ε by far.
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
    found = spent(tuple(releases), checked_delta(delta), accountant)
    if found is None:
        raise ValueError(CUT)
    return found


def spent(releases, delta, accountant):
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
    from scipy import optimize  # Half a second, which nobody else here has to wait.

    finite(zero=False, epsilon=epsilon)

    @functools.cache
    def over(steps):
        """ε of so many steps less the budget; finite, for the root is sought."""
        each = SampledGaussian(
            noise_multiplier=noise_multiplier,
            sampling_probability=sampling_probability,
            steps=steps,
        )
        spent = epsilon_spent([each], delta, accountant=accountant)
        return min(spent - epsilon, epsilon)

    if over(1) > 0:
        return 0
    low, high = 1, 2
    while over(high) <= 0:
        share = max(1 + over(high) / epsilon, 0.03)
        # Of many steps ε grows as their root, or faster.
        low, high = high, math.ceil(max(2.0, share**-2) * high)
    root: Any = optimize.brentq(lambda steps: over(round(steps)), low, high, xtol=0.5)
    found = round(root)
    while over(found) > 0:
        found -= 1
    while over(found + 1) <= 0:
        found += 1
    return found


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
    finite(zero=False, delta=delta)
    if not delta < 1:
        raise ValueError(f"delta must be below 1, got {delta!r}.")
    return float(delta)


WEAK = 10.0


def warn_of_epsilon(epsilon: float) -> None:
    """Warns of an ε that promises next to nothing, above 10.

    By definition whatever is seen may then be e^10 = 22,000 times as likely with a
    record as without it. "How to DP-fy ML" takes an ε of up to 10 for a reasonable
    guarantee and calls what is above weak or none: noise may still help there, and
    attacks (``jaxanon.attacks.auditing``) say how much, but ε does not.

    Args:
      epsilon: ε > 0 of a whole training.

    Example:
      >>> warn_of_epsilon(8.0)

    References:
      Ponomareva et al., How to DP-fy ML: a practical guide to machine learning with
      differential privacy, JAIR 2023 (arXiv 2303.00654), tiers of ε.
    """
    if epsilon > WEAK:
        warnings.warn(
            f"epsilon {epsilon:g} is above {WEAK:g}, and promises next to nothing; "
            "spend less, by fewer rounds or steps, or smaller samples, or see what "
            "attacks find.",
            UserWarning,
            stacklevel=2,
        )
