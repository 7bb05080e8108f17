"""Gaussian noise on sums over samples, and what dp-accounting says of it."""

import dataclasses
import functools
import math

from jaxanon.kernels.bounds import check, setting

RARELY = 1e-12  # A sample is cut, so that it costs nothing to speak of.

# Nats between losses that are told apart; each is a whole number of the next.
INTERVALS = 1.0, 0.1, 1e-2, 1e-3, 5e-4, 1e-4, 1e-5, 1e-6, 1e-7

USUAL = 1e-4

ERROR = 1e-5  # Of ε, or of 1 where that is more.

SHARE = 0.02  # Of the standard deviation of a step's losses.

MOST_CELLS = 20_000  # Per standard deviation of all losses, for finer ones than usual.

MOST_LOSSES = 400_000  # Of a step, that are told apart: some seconds a step.

# Of Rényi divergences: series of orders in between do not always converge.
ORDERS = (*range(2, 65), 72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledGaussian:
    """Gaussian noise on clipped sums over random samples, one sum a step.

    Neighbours are data sets of which one has a record more: an example, or a client
    with all of its examples, whichever is clipped. Each record is in each sample with
    the same probability, independently of the others (Poisson sampling); batches taken
    in turn, or of a fixed size, are something else, and cost more than this says.

    Raises:
      ValueError: for a number out of its range, or one of ``max_batch_size`` and
        ``max_examples`` without the other.
      TypeError: for a count that is no whole number.

    Example:
      >>> SampledGaussian(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
      SampledGaussian(noise_multiplier=1.0, sampling_probability=0.01, steps=1000, ...)
    """

    noise_multiplier: float = setting(
        above=0, help="z, standard deviation of the noise over the clip norm"
    )
    sampling_probability: float = setting(
        1.0, above=0, at_most=1, help="q; 1 takes every record at every step"
    )
    steps: int = setting(1, at_least=1, help="number of sums that leave")
    max_batch_size: int | None = setting(
        None,
        at_least=1,
        help="most records of a sample, those beyond it are left out at random; None "
        "is no bound. Given with ``max_examples``",
    )
    max_examples: int | None = setting(
        None,
        at_least=1,
        help="how many there are, where there is a capacity: exactly, for of fewer the "
        "same capacity may cost more",
    )

    def __post_init__(self):
        check(self)
        if (self.max_batch_size is None) != (self.max_examples is None):
            raise ValueError(
                "max_batch_size and max_examples must be given together, "
                f"got {self.max_batch_size!r} and {self.max_examples!r}."
            )
        for name in ("steps", "max_batch_size", "max_examples"):
            if getattr(self, name) is not None:  # Dp-accounting takes Python's alone.
                object.__setattr__(self, name, int(getattr(self, name)))


@functools.lru_cache(maxsize=256)  # Who opens a run again need not wait again.
def composed(releases, delta, accountant, bounded):
    """ε of a tuple of releases.

    Args:
      releases: ``SampledGaussian`` each.
      delta: δ in (0, 1).
      accountant: "pld" or "rdp".
      bounded: whether to reckon with capacities, or take lots for whole.
    """
    account = _account(accountant, releases)
    for release in releases:
        account.compose(_event(release, bounded), release.steps)
    return max(0.0, float(account.get_epsilon(delta)))


def beyond(release):
    """Chernoff's bound of how probably a sample is larger than its capacity."""
    if release.max_batch_size is None or release.max_batch_size >= release.max_examples:
        return 0.0
    q, share = (
        release.sampling_probability,
        (release.max_batch_size + 1) / release.max_examples,
    )
    if share <= q:
        return 1.0
    rest = (1 - share) * math.log((1 - share) / (1 - q)) if share < 1 else 0.0
    return math.exp(-release.max_examples * (share * math.log(share / q) + rest))


def interval(releases) -> float:
    """Nats between the losses that are told apart, of all releases together.

    Losses are rounded, by which all steps together cost about their number times the
    square of the interval more. The largest interval is taken that adds ``ERROR`` at
    most, and that is a ``SHARE`` of what a single step's losses differ by, which
    would be overstated by some of it otherwise. It is finer than ``USUAL`` only where
    few steps tell next to nothing, and never so fine that a step has more than
    ``MOST_LOSSES``. Each interval is a multiple of those that are smaller: what is told
    more finely so costs less.

    Args:
      releases: ``SampledGaussian`` each, one or more.

    Returns:
      One of ``INTERVALS``.
    """
    steps = sum(release.steps for release in releases)
    spreads = [spread(release) for release in releases]
    square = sum(r.steps * one**2 for r, one in zip(releases, spreads, strict=True))
    error = ERROR * max(1.0, square / 2)
    widest = max(map(width, releases))
    found = INTERVALS[0]
    for finer in INTERVALS[1:]:
        told_apart = found <= SHARE * min(spreads)
        if told_apart and (steps * found**2 <= error or found <= USUAL):
            break
        if widest > MOST_LOSSES * finer:
            break
        if finer < USUAL and math.sqrt(square) > MOST_CELLS * finer:
            break
        found = finer
    return found


def spread(release) -> float:
    """About the standard deviation of a step's losses, by its χ² divergence.

    1 / z of all records, and near q / z of samples and much noise: the square root of
    log(1 + q² (exp(1 / z²) - 1)).
    """
    q, square = release.sampling_probability, release.noise_multiplier**-2
    return math.sqrt(_log_mixed(q**2, square))


def width(release) -> float:
    """Nats from the least of a step's losses to the largest, but of next to none.

    Dp-accounting cuts a Gaussian off ten standard deviations from its mean.
    """
    q, scale = release.sampling_probability, 1 / release.noise_multiplier
    if q == 1:
        return 20 * scale
    return _log_mixed(q, scale**2 / 2 + 10 * scale) - math.log1p(-q)


def _log_mixed(share, log):
    """log(1 + share (exp(log) - 1)), where an exponential would be too large, too."""
    if log < 700:
        return math.log1p(share * math.expm1(log))
    return max(0.0, log + math.log(share))


def _account(accountant, releases):
    import dp_accounting  # SciPy takes a second to come.

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    if accountant == "pld":
        return dp_accounting.pld.PLDAccountant(relation, interval(releases))
    return dp_accounting.rdp.RdpAccountant(ORDERS, neighboring_relation=relation)


def _event(release, bounded):
    import dp_accounting

    if bounded and release.max_batch_size is not None:
        return dp_accounting.TruncatedSubsampledGaussianDpEvent(
            release.max_examples,
            release.sampling_probability,
            release.max_batch_size,
            release.noise_multiplier,
        )
    event = dp_accounting.GaussianDpEvent(release.noise_multiplier)
    if math.isclose(release.sampling_probability, 1.0):
        return event
    return dp_accounting.PoissonSampledDpEvent(release.sampling_probability, event)
