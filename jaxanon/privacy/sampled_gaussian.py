"""Gaussian noise on sums over samples, accounted for by dp-accounting."""

import dataclasses
import functools
import math

from jaxanon.kernels.bounds import check, setting

NEGLIGIBLE = 1e-12  # Probability of truncation whose cost can be ignored.

# Discretization intervals of privacy losses, in nats; each is a multiple of the next.
INTERVALS = 1.0, 0.1, 1e-2, 1e-3, 5e-4, 1e-4, 1e-5, 1e-6, 1e-7

DEFAULT_INTERVAL = 1e-4

MAX_ERROR = 1e-5  # Relative to max(ε, 1).

MAX_FRACTION = 0.02  # Interval over the standard deviation of a step's losses.

MAX_CELLS = 20_000  # Per standard deviation of all losses, below the default interval.

MAX_LOSSES = 400_000  # Discrete losses of a step; takes some seconds per step.

# Integer orders of Rényi divergences: the series of others do not always converge.
ORDERS = (*range(2, 65), 72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledGaussian:
    """Gaussian noise on clipped sums over Poisson samples, one sum per step.

    Neighbouring data sets differ by one added or removed record: an example, or a
    client with all its examples, depending on the unit of clipping. Each record is in
    each sample with the same probability, independently of the others. Shuffled batches
    and batches of fixed size are not Poisson samples and cost more than this computes.

    Raises:
      ValueError: if a field is out of range, or only one of ``max_batch_size`` and
        ``max_examples`` is given.
      TypeError: if a count is not a whole number.

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
                "max_batch_size and max_examples must be given together, got "
                f"{self.max_batch_size!r} and {self.max_examples!r}."
            )
        for name in ("steps", "max_batch_size", "max_examples"):
            if getattr(self, name) is not None:  # dp-accounting needs Python ints.
                object.__setattr__(self, name, int(getattr(self, name)))


@functools.lru_cache(maxsize=256)  # Reopening a run reuses the result.
def compose_epsilon(releases, delta, accountant, bounded):
    """Returns the ε of composed releases.

    Args:
      releases: tuple of ``SampledGaussian``.
      delta: δ in (0, 1).
      accountant: "pld" or "rdp".
      bounded: whether to account for truncation at ``max_batch_size``.
    """
    account = _account(accountant, releases)
    for release in releases:
        account.compose(_event(release, bounded), release.steps)
    return max(0.0, float(account.get_epsilon(delta)))


def overflow_probability(release):
    """Returns Chernoff's bound on the probability that a sample exceeds its capacity.

    The bound is 0 without a capacity.
    """
    if release.max_batch_size is None or release.max_batch_size >= release.max_examples:
        return 0.0
    q, fraction = (
        release.sampling_probability,
        (release.max_batch_size + 1) / release.max_examples,
    )
    if fraction <= q:
        return 1.0
    rest = 0.0
    if fraction < 1:
        rest = (1 - fraction) * math.log((1 - fraction) / (1 - q))
    return math.exp(-release.max_examples * (fraction * math.log(fraction / q) + rest))


def interval(releases) -> float:
    """Returns the discretization interval of privacy losses, in nats.

    Rounding losses adds about ``steps * interval**2`` to ε. This function chooses the
    largest interval that adds at most ``MAX_ERROR`` and is at most ``MAX_FRACTION`` of
    the standard deviation of each step's losses. An interval finer than
    ``DEFAULT_INTERVAL`` is chosen only for few steps with small losses, and no step has
    more than ``MAX_LOSSES`` discrete losses. Each interval is a multiple of all smaller
    ones, so a finer interval never increases ε.

    Args:
      releases: one or more ``SampledGaussian``.

    Returns:
      One of ``INTERVALS``.
    """
    steps = sum(release.steps for release in releases)
    stds = [loss_std(release) for release in releases]
    square = sum(r.steps * std**2 for r, std in zip(releases, stds, strict=True))
    error = MAX_ERROR * max(1.0, square / 2)
    widest = max(map(loss_range, releases))
    chosen = INTERVALS[0]
    for finer in INTERVALS[1:]:
        resolved = chosen <= MAX_FRACTION * min(stds)
        if resolved and (steps * chosen**2 <= error or chosen <= DEFAULT_INTERVAL):
            break
        if widest > MAX_LOSSES * finer:
            break
        if finer < DEFAULT_INTERVAL and math.sqrt(square) > MAX_CELLS * finer:
            break
        chosen = finer
    return chosen


def loss_std(release) -> float:
    """Returns the approximate standard deviation of a step's privacy losses.

    Derived from the χ² divergence: sqrt(log(1 + q² (exp(1 / z²) - 1))). That is 1 / z
    without sampling, and about q / z for small q and large z.
    """
    q, square = release.sampling_probability, release.noise_multiplier**-2
    return math.sqrt(_log_mixed(q**2, square))


def loss_range(release) -> float:
    """Returns the range of a step's privacy losses in nats, without negligible tails.

    dp-accounting truncates a Gaussian ten standard deviations from its mean.
    """
    q, scale = release.sampling_probability, 1 / release.noise_multiplier
    if q == 1:
        return 20 * scale
    return _log_mixed(q, scale**2 / 2 + 10 * scale) - math.log1p(-q)


def _log_mixed(fraction, log):
    """Returns log(1 + fraction (exp(log) - 1)) without overflow."""
    if log < 700:
        return math.log1p(fraction * math.expm1(log))
    return max(0.0, log + math.log(fraction))


def _account(accountant, releases):
    import dp_accounting  # Imported here: SciPy takes about a second.

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
