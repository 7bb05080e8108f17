"""What Gaussian noise costs: ε and δ of whole trainings, by dp-accounting."""

import dataclasses
import math
import warnings
from collections.abc import Iterable

from jaxanon.kernels.checks import one_of, whole
from jaxanon.privacy.composition import positive

ACCOUNTANTS = ("pld", "rdp")
MOST_MULTIPLIER = 1e6  # Beyond it noise is all there is.


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledGaussian:
    """Gaussian noise on clipped sums over random samples, one sum a step.

    Neighbours are data sets of which one has a record more: an example, or a client
    with all of its examples, whichever is clipped. Each record is in each sample with
    the same probability, independently of the others (Poisson sampling); batches taken
    in turn, or of a fixed size, are something else, and cost more than this says.

    Attributes:
      noise_multiplier: z > 0, standard deviation of the noise over the clip norm.
      sampling_probability: q in (0, 1]; 1 takes every record at every step.
      steps: sums that leave, >= 1; of federated learning rounds times local steps.
      capacity: most records of a sample, those beyond it are left out at random; None
        is no bound. Given with ``records``.
      records: how many there are, where there is a capacity.

    Raises:
      ValueError: for a number out of its range, or one of ``capacity`` and ``records``
        without the other.
      TypeError: for a count that is no whole number.

    Example:
      >>> SampledGaussian(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
      SampledGaussian(noise_multiplier=1.0, sampling_probability=0.01, steps=1000, ...)
    """

    noise_multiplier: float
    sampling_probability: float = 1.0
    steps: int = 1
    capacity: int | None = None
    records: int | None = None

    def __post_init__(self):
        positive(noise_multiplier=self.noise_multiplier)
        positive(sampling_probability=self.sampling_probability)
        if self.sampling_probability > 1:
            raise ValueError(
                "sampling_probability must be in (0, 1], got "
                f"{self.sampling_probability!r}."
            )
        whole("steps", self.steps, least=1)
        if (self.capacity is None) != (self.records is None):
            raise ValueError(
                "capacity and records go together: what is left out depends on both; "
                f"got {self.capacity!r} and {self.records!r}."
            )
        if self.capacity is not None:
            whole("capacity", self.capacity, least=1)
            whole("records", self.records, least=1)


def epsilon_spent(
    releases: Iterable[SampledGaussian], delta: float, *, accountant: str = "pld"
) -> float:
    """The ε of all releases together, each of which may depend on those before it.

    Args:
      releases: of the same records.
      delta: δ in (0, 1).
      accountant: "pld", privacy loss distributions, tight up to a discretisation that
        errs on the safe side; "rdp", Rényi, an upper bound that is larger and quicker.
        A capacity is understood by "pld" alone.

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
    delta = _checked_delta(delta)
    account = _account(accountant)
    releases = list(releases)
    if not releases:
        return 0.0
    for release in releases:
        if release.capacity is not None and accountant == "rdp":
            raise ValueError(
                "a capacity is accounted for by pld alone; leave accountant as it is."
            )
        account.compose(_event(release), release.steps)
    return max(0.0, float(account.get_epsilon(delta)))


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    sampling_probability: float = 1.0,
    steps: int = 1,
    beside: Iterable[SampledGaussian] = (),
    accountant: str = "pld",
) -> float:
    """The least noise multiplier with which a training keeps within ε and δ.

    Args:
      epsilon: ε > 0 that all steps may cost together.
      delta: δ in (0, 1).
      sampling_probability, steps: as in ``SampledGaussian``.
      beside: releases of the same records that are paid for from the same ε.
      accountant: as ``epsilon_spent`` takes it.

    Returns:
      z > 0, by at most a thousandth larger than need be, never smaller.

    Raises:
      ValueError: as ``epsilon_spent``, and if what is ``beside`` spends ε alone.

    Example:
      >>> z = noise_multiplier_for(2.0, 1e-5, sampling_probability=0.05, steps=100)
      >>> round(z, 2)
      1.34

    References:
      As ``epsilon_spent``.
    """
    positive(epsilon=epsilon)
    beside = list(beside)
    given = {"sampling_probability": sampling_probability, "steps": steps}
    alone = epsilon_spent(beside, delta, accountant=accountant)
    if alone >= epsilon:
        raise ValueError(
            f"what is released beside it spends {alone:g} of epsilon {epsilon:g} "
            "already; give it more noise, or leave more budget."
        )

    def spent(multiplier):
        own = SampledGaussian(noise_multiplier=multiplier, **given)
        return epsilon_spent([own, *beside], delta, accountant=accountant)

    low, high = 0.0, 1.0
    while spent(high) > epsilon:
        low, high = high, 2 * high
        if high > MOST_MULTIPLIER:
            raise ValueError(
                f"no noise multiplier below {MOST_MULTIPLIER:g} keeps {steps} steps "
                f"within epsilon {epsilon:g}; take fewer steps, or a larger epsilon."
            )
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    return high


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
    _checked_delta(delta)
    if delta * records >= 1:
        warnings.warn(
            f"delta {delta:g} is no less than 1 / {records}, the number of records: "
            "publishing one of them at random would be as private; take one well "
            "below that.",
            UserWarning,
            stacklevel=2,
        )


def _checked_delta(delta):
    positive(delta=delta)
    if not delta < 1:
        raise ValueError(f"delta must be below 1, got {delta!r}.")
    return float(delta)


def _account(accountant):
    import dp_accounting  # SciPy takes a second to come.

    kind = {
        "pld": dp_accounting.pld.PLDAccountant,
        "rdp": dp_accounting.rdp.RdpAccountant,
    }
    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    return kind[accountant](neighboring_relation=relation)


def _event(release):
    import dp_accounting

    if release.capacity is not None:
        return dp_accounting.TruncatedSubsampledGaussianDpEvent(
            release.records,
            release.sampling_probability,
            release.capacity,
            release.noise_multiplier,
        )
    event = dp_accounting.GaussianDpEvent(release.noise_multiplier)
    if math.isclose(release.sampling_probability, 1.0):
        return event
    return dp_accounting.PoissonSampledDpEvent(release.sampling_probability, event)
