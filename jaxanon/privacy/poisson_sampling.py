"""Poisson-sampled batches of a client's DP-SGD steps."""

import dataclasses
import math

from jaxanon.kernels.bounds import check, setting
from jaxanon.privacy.sampled_gaussian import (
    NEGLIGIBLE,
    SampledGaussian,
    overflow_probability,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoissonSampling:
    """Poisson sampling of a client's rows ("lots" in Abadi et al.).

    Each row is in each batch with the same probability, independently of the others, so
    that batch sizes vary; clipped sums are divided by the constant ``size``. All fields
    are public and the same for all clients, whose numbers of rows are private.

    Raises:
      TypeError: if a field is not a number, or ``max_batch_size`` or ``max_examples``
        is not whole.
      ValueError: if a field is out of range, or both ``max_batch_size`` and
        ``max_examples`` are None.

    Example:
      >>> PoissonSampling(
      ...     sampling_probability=0.1, expected_batch_size=20.0, max_examples=200
      ... ).largest
      67
    """

    sampling_probability: float = setting(above=0, at_most=1, help="q, of every row")
    expected_batch_size: float = setting(
        above=0, help="divisor of clipped sums, of expected rows"
    )
    max_batch_size: int | None = setting(
        None,
        at_least=1,
        help="most rows of a lot, for arrays have a size; where more are drawn, some "
        "are left out at random. None takes so many for ``max_examples`` rows that it "
        "happens once in 10^14 lots at most",
    )
    max_examples: int | None = setting(
        None,
        at_least=1,
        help="maximum rows of a client; None, with ``max_batch_size``, is what lots "
        "are drawn from",
    )

    def __post_init__(self):
        check(self)
        if self.max_batch_size is None and self.max_examples is None:
            raise ValueError(
                "max_examples or max_batch_size must be given, got None for both; they "
                "bound the rows of a client and of a batch."
            )

    @property
    def largest(self) -> int:
        """Maximum batch size: given, or a bound derived from ``max_examples``."""
        if self.max_batch_size is not None or self.max_examples is None:
            return self.max_batch_size or 0
        # Bernstein's bound on a binomial tail of e^-32.3 = 1e-14.
        mean = self.sampling_probability * self.max_examples
        variance = mean * (1 - self.sampling_probability)
        margin = 32.3 / 3 + math.sqrt((32.3 / 3) ** 2 + 2 * 32.3 * variance)
        return min(self.max_examples, math.ceil(mean + margin))


def sampled_gaussian(
    lots: PoissonSampling, noise_multiplier: float, steps: int
) -> SampledGaussian:
    """Returns the release of noisy steps, for ``jaxanon.privacy.epsilon_spent``.

    Args:
      lots: ``PoissonSampling``, with ``max_examples`` if ``max_batch_size`` is smaller.
      noise_multiplier: joint noise multiplier z > 0 of all groups.
      steps: number of steps in all rounds, including rounds that a client skipped,
        because participation is public.

    Raises:
      ValueError: if ``max_examples`` is missing, or batches exceed their maximum size
        often enough to reveal a client's number of rows.

    Example:
      >>> lots = PoissonSampling(
      ...     sampling_probability=0.1, expected_batch_size=20.0, max_examples=200)
      >>> sampled_gaussian(lots, 1.0, 50)
      SampledGaussian(noise_multiplier=1.0, sampling_probability=0.1, steps=50, ...)
    """
    if lots.max_examples is None:
        raise ValueError(
            "max_examples must be given to account for truncated batches, got None "
            "with "
            f"batches of at most {lots.largest} rows."
        )
    bounded = lots.largest < lots.max_examples
    release = SampledGaussian(
        noise_multiplier=noise_multiplier,
        sampling_probability=lots.sampling_probability,
        steps=steps,
        max_batch_size=lots.largest if bounded else None,
        max_examples=lots.max_examples if bounded else None,
    )
    # The cost of truncation is not monotone in the number of rows: clients with fewer
    # rows than ``max_examples`` may pay more.
    probability = overflow_probability(release)
    if probability > NEGLIGIBLE:
        raise ValueError(
            "max_batch_size must be large enough that batches are rarely truncated, "
            f"got {lots.largest}, exceeded with probability up to {probability:.1e}; "
            "omit it or raise it."
        )
    return release
