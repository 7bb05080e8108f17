"""A client's noisy steps: random samples, clipped examples, one sum's noise."""

import dataclasses
import math

from jaxanon.kernels.bounds import check, setting
from jaxanon.privacy.sampled_gaussian import RARELY, SampledGaussian, beyond


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoissonSampling:
    """Random samples of a client's rows, the lots of DP-SGD.

    Every row is in every lot with the same probability, whatever the others do, so
    lots differ in size; steps are as long as if they did not. All of it is public, and
    the same for clients with many rows and with few: how many there are is private.

    Raises:
      TypeError: for what is no number, ``max_batch_size`` or ``max_examples`` that are
        not whole.
      ValueError: for a number out of its range, or neither ``max_batch_size`` nor
        ``max_examples``.

    Example:
      >>> PoissonSampling(sampling_probability=0.1, expected_batch_size=20.0,
      max_examples=200).largest 67
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
        help="rows that no client has more of; None, with ``max_batch_size``, is what "
        "lots are drawn from",
    )

    def __post_init__(self):
        check(self)
        if self.max_batch_size is None and self.max_examples is None:
            raise ValueError(
                "max_examples must be given, the most rows that a client has, or "
                "max_batch_size, "
                "the most that a lot has."
            )

    @property
    def largest(self) -> int:
        """The capacity, as given or as it follows from ``max_examples``."""
        if self.max_batch_size is not None or self.max_examples is None:
            return self.max_batch_size or 0
        # Bernstein's bound of a binomial's tail, at e^-32.3 = 1e-14.
        mean = self.sampling_probability * self.max_examples
        spread = mean * (1 - self.sampling_probability)
        more = 32.3 / 3 + math.sqrt((32.3 / 3) ** 2 + 2 * 32.3 * spread)
        return min(self.max_examples, math.ceil(mean + more))


def sampled_gaussian(
    lots: PoissonSampling, noise_multiplier: float, steps: int
) -> SampledGaussian:
    """What so many noisy steps on lots cost, for ``jaxanon.privacy.epsilon_spent``.

    Args:
      lots: ``PoissonSampling`` with ``max_examples``, where a lot cannot hold all of
        them.
      noise_multiplier: z > 0 of all groups together.
      steps: of all rounds together, those that a client sat out too: that it did is
        no secret.

    Raises:
      ValueError: for lots that leave rows out and don't say of how many, or leave them
        out so often that it tells of how many there are.

    Example:
      >>> lots = PoissonSampling(sampling_probability=0.1, expected_batch_size=20.0,
      max_examples=200)
      >>> sampled_gaussian(lots, 1.0, 50)
      SampledGaussian(noise_multiplier=1.0, sampling_probability=0.1, steps=50, ...)
    """
    if lots.max_examples is None:
        raise ValueError(
            f"lots hold {lots.largest} rows at most, and what leaving out others "
            "costs depends on how many there are; give their records."
        )
    bounded = lots.largest < lots.max_examples
    release = SampledGaussian(
        noise_multiplier=noise_multiplier,
        sampling_probability=lots.sampling_probability,
        steps=steps,
        max_batch_size=lots.largest if bounded else None,
        max_examples=lots.max_examples if bounded else None,
    )
    # What cutting costs does not grow with the rows: for a client with some of them it
    # may be more than for one with all.
    if beyond(release) > RARELY:
        raise ValueError(
            f"lots of {lots.largest} rows at most are cut with probability up to "
            f"{beyond(release):.1e}, and what that costs depends on how many rows each "
            "client has; leave capacity out, or take a larger one."
        )
    return release
