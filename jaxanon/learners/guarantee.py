"""What a learner's noise is worth, and how many rounds it pays for."""

import warnings
from typing import NamedTuple

from jaxanon.federated import Lots, sampled_gaussian
from jaxanon.privacy import epsilon_spent, noise_multiplier_for, warn_of_delta

NOT_COVERED = (
    "the seed, from which noise can be drawn again, is in config.json",
    "losses in metrics.jsonl are of clients' own windows",
    "mean and deviation of each channel, over all training windows, are taken for "
    "public",
)


class Guarantee(NamedTuple):
    """Noise of one multiplier at every step, for so many rounds and no more."""

    lots: Lots
    noise_multiplier: float  # z*, of all that a step releases together
    local_steps: int
    rounds: int  # that were paid for
    delta: float
    unit: str  # of whom there is one more or less: "an example of a client", ...
    holds: bool = True  # Else what is claimed.
    most_windows: int | None = None  # of a client, where it was counted on

    rests_on = "noise_multiplier"

    def trained_with(self, hyper: dict) -> "Guarantee":
        """The guarantee of the noise that a state's ``hyper`` has."""
        return self._replace(noise_multiplier=float(hyper[self.rests_on]))

    def epsilon(self, rounds: int) -> float:
        """ε of the first so many rounds, by privacy loss distributions."""
        if rounds == 0:
            return 0.0
        steps = rounds * self.local_steps
        release = sampled_gaussian(self.lots, self.noise_multiplier, steps)
        return epsilon_spent([release], self.delta)

    def told(self, rounds: int) -> dict:
        """What a report says of the guarantee after so many rounds."""
        return {
            "mechanism": "Gaussian noise on sums of clipped gradients over lots",
            "neighbours": f"{self.unit} more or less",
            "sampling_probability": self.lots.sampling_probability,
            "noise_multiplier": self.noise_multiplier,
            "steps": rounds * self.local_steps,
            "noisy": "steps",
            "delta": self.delta,
            "epsilon": self.epsilon(rounds),
            "accountant": "pld",
            "holds": self.holds,
            "not_covered": list(NOT_COVERED),
        }


def of_steps(config, *, unit: str, holds: bool = True) -> Guarantee | None:
    """The guarantee that a config's ε, δ and rounds ask for; None for an ε of 0.

    Args:
      config: ``PrivateConfig``.
      unit: as in ``Guarantee``.
      holds: likewise.

    Example:
      >>> from jaxanon.learners.config import PrivateConfig
      >>> found = of_steps(PrivateConfig(epsilon=4.0, rounds=2), unit="an example")
      >>> 3.9 < found.epsilon(2) <= 4.0
      True
    """
    if config.epsilon == 0:
        return None
    warn_of_delta(config.delta, config.records)
    probability = config.batch / config.records
    lots = Lots(
        sampling_probability=probability,
        size=float(config.batch),
        records=config.records,
    )
    asked = sampled_gaussian(lots, 1.0, config.rounds * config.local_steps)
    multiplier = noise_multiplier_for(
        config.epsilon,
        config.delta,
        sampling_probability=probability,
        steps=asked.steps,
        capacity=asked.capacity,
        records=asked.records,
    )
    return Guarantee(
        lots,
        multiplier,
        config.local_steps,
        config.rounds,
        config.delta,
        unit,
        holds,
        config.records,
    )


def paid_for(method, epochs: int) -> int:
    """Epochs that a privacy budget pays for; all of them where there is none.

    Args:
      method: a ``Method`` or ``Learner``.
      epochs: that were asked for; a warning says where they are too many.
    """
    guarantee = getattr(method, "guarantee", None)
    if guarantee is None or epochs <= guarantee.rounds:
        return epochs
    warnings.warn(
        f"the privacy budget pays for {guarantee.rounds} rounds, and training stops "
        f"after them, not after {epochs}; set rounds to {epochs} for more of them, and "
        "more noise in each.",
        UserWarning,
        stacklevel=3,
    )
    return guarantee.rounds
