"""Gaussian noise on sums over samples, and what dp-accounting says of it."""

import dataclasses
import functools
import math

from jaxanon.kernels.checks import whole
from jaxanon.privacy.composition import positive

RARELY = 1e-12  # A sample is cut, so that it costs nothing to speak of.
# Between losses that are told apart; each is a whole number of the next.
INTERVALS = 1.0, 0.1, 1e-2, 1e-3, 5e-4, 1e-4, 1e-5, 1e-6, 1e-7
USUAL = 1e-4
ERROR, SHARE = 1e-5, 0.02  # Of ε, or of all losses; of the losses of one step.
MOST_CELLS = 500  # Per standard deviation of all losses, for finer ones than usual.
# Of Rényi divergences: series of orders in between do not always converge.
ORDERS = (*range(2, 65), 72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024)


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
      records: how many there are, where there is a capacity: exactly, for of fewer the
        same capacity may cost more.

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


@functools.lru_cache(maxsize=256)  # Who opens a run again need not wait again.
def composed(releases, delta, accountant, bounded):
    """ε of a tuple of releases.

    Args:
      releases: ``SampledGaussian`` each.
      delta: δ in (0, 1).
      accountant: "pld", "coarse pld" or "rdp".
      bounded: whether to reckon with capacities, or take lots for whole.
    """
    account = _account(accountant, releases)
    for release in releases:
        account.compose(_event(release, bounded), release.steps)
    return max(0.0, float(account.get_epsilon(delta)))


def beyond(release):
    """Chernoff's bound of how probably a sample is larger than its capacity."""
    if release.capacity is None or release.capacity >= release.records:
        return 0.0
    q, share = release.sampling_probability, (release.capacity + 1) / release.records
    if share <= q:
        return 1.0
    rest = (1 - share) * math.log((1 - share) / (1 - q)) if share < 1 else 0.0
    return math.exp(-release.records * (share * math.log(share / q) + rest))


def interval(releases):
    """Between the losses that are told apart, of all releases together.

    What they cost is overstated by about the steps times its square: by 1e-5 of the
    mean loss, or of 1, up to a thousand steps; and by some of it where a single step's
    losses are hardly larger. So where much is told large ones do, which are as many
    times quicker, and steps that tell next to nothing have smaller ones than usual,
    while they are few. Each is a multiple of those that are smaller, for what is told
    more finely costs less.
    """
    steps = sum(release.steps for release in releases)
    told = [r.sampling_probability / r.noise_multiplier for r in releases]
    square = sum(r.steps * one**2 for r, one in zip(releases, told, strict=True))
    error = ERROR * max(1.0, square / 2)
    found = INTERVALS[0]
    for finer in INTERVALS[1:]:
        told_apart = found <= SHARE * min(told)
        if told_apart and (steps * found**2 <= error or found <= USUAL):
            break
        if finer < USUAL and math.sqrt(square) > MOST_CELLS * finer:
            break
        found = finer
    return found


def _account(accountant, releases):
    import dp_accounting  # SciPy takes a second to come.

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    fine = interval(releases)
    intervals = {"pld": fine, "coarse pld": max(2e-3, 2 * fine)}
    if accountant in intervals:
        return dp_accounting.pld.PLDAccountant(relation, intervals[accountant])
    return dp_accounting.rdp.RdpAccountant(ORDERS, neighboring_relation=relation)


def _event(release, bounded):
    import dp_accounting

    if bounded and release.capacity is not None:
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
