"""What a learner's noise is worth, and how many rounds it pays for."""

import warnings
from typing import NamedTuple

from jaxanon.federated import Lots, sampled_gaussian
from jaxanon.privacy import (
    SampledGaussian,
    epsilon_spent,
    noise_multiplier_for,
    warn_of_delta,
)

OF_LOTS = "Gaussian noise on sums of clipped gradients over lots"
OF_CLIENTS = "Gaussian noise on every client's clipped update"

NOT_COVERED = (
    "the seed, from which noise can be drawn again, is in config.json",
    "losses in metrics.jsonl are of clients' own windows",
    "mean and deviation of each channel, over all training windows, are taken for "
    "public",
)


class Guarantee(NamedTuple):
    """Noise of one multiplier at every step, for so many rounds and no more.

    Without lots a client is hidden, among all that it could have been: its data are not
    sampled, for the server knows who takes part, and two of its updates may be twice a
    clip norm apart.
    """

    lots: Lots | None
    noise_multiplier: float  # z*, of all that a step releases together
    local_steps: int  # of a round, that are noisy; of a client one, what it sends
    rounds: int  # that were paid for
    delta: float
    unit: str  # of whom there is one more or less: "an example of a client", ...
    holds: bool = True  # Else what is claimed.
    score_multiplier: float | None = None  # of scores that are released once a round

    def releases(self, rounds: int) -> dict[str, SampledGaussian]:
        """What leaves in so many rounds, >= 1, by what it is."""
        what, steps = "updates", rounds * self.local_steps
        if self.lots is not None:
            what = "gradients"
        found = {what: self._release(self.noise_multiplier, steps)}
        if self.score_multiplier is not None:
            found["scores"] = self._release(self.score_multiplier, rounds)
        return found

    def epsilon(self, rounds: int) -> float:
        """ε of the first so many rounds, by privacy loss distributions."""
        if rounds == 0:
            return 0.0
        return epsilon_spent(self.releases(rounds).values(), self.delta)

    def told(self, rounds: int) -> dict:
        """What a report says of the guarantee after so many rounds."""
        whole = self.lots is None
        how = "in place of its own" if whole else "more or less"
        return {
            "mechanism": OF_CLIENTS if whole else OF_LOTS,
            "neighbours": f"{self.unit} {how}",
            "counted": "noisy updates" if whole else "noisy steps",
            "sampling_probability": 1.0 if whole else self.lots.sampling_probability,
            "noise_multiplier": self.noise_multiplier,
            "steps": rounds * self.local_steps,
            "delta": self.delta,
            "epsilon": self.epsilon(rounds),
            "accountant": "pld",
            "holds": self.holds,
            "parts": self._parts(rounds),
            "not_covered": list(NOT_COVERED),
        }

    def _release(self, multiplier, steps):
        if self.lots is not None:
            return sampled_gaussian(self.lots, multiplier, steps)
        return SampledGaussian(noise_multiplier=multiplier / 2, steps=steps)

    def _parts(self, rounds):
        """What each release would spend alone, of what is released by itself."""
        if self.score_multiplier is None or rounds == 0:
            return []
        return [
            {
                "what": what,
                "noise_multiplier": getattr(self, name),
                "steps": release.steps,
                "epsilon": epsilon_spent([release], self.delta),
            }
            for (what, release), name in zip(
                self.releases(rounds).items(),
                ("noise_multiplier", "score_multiplier"),
                strict=True,
            )
        ]


def of_steps(
    config, *, unit: str, holds: bool = True, score_share: float | None = None
) -> Guarantee | None:
    """The guarantee that a config's ε, δ and rounds ask for; None for an ε of 0.

    Args:
      config: ``PrivateConfig``.
      unit: as in ``Guarantee``.
      holds: likewise.
      score_share: share of ε that scores would spend alone which are released once a
        round; None where there are none.

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
    each = {
        "sampling_probability": probability,
        "capacity": asked.capacity,
        "records": asked.records,
    }
    multiplier, of_scores = _multipliers(config, asked.steps, score_share, **each)
    return Guarantee(
        lots,
        multiplier,
        config.local_steps,
        config.rounds,
        config.delta,
        unit,
        holds,
        of_scores,
    )


def of_clients(
    config, num_clients: int, *, holds: bool = True, score_share: float | None = None
) -> Guarantee | None:
    """The guarantee of clients that a config's ε, δ and rounds ask for; None for 0.

    Every client is taken to take part in every round.

    Args:
      config: ``PrivateConfig``.
      num_clients: of all of them.
      holds: as in ``Guarantee``.
      score_share: as ``of_steps`` takes it.

    Example:
      >>> from jaxanon.learners.config import PrivateConfig
      >>> found = of_clients(PrivateConfig(epsilon=4.0, rounds=2), 100)
      >>> 3.9 < found.epsilon(2) <= 4.0, round(found.noise_multiplier, 1)
      (True, 3.0)
    """
    if config.epsilon == 0:
        return None
    warn_of_delta(config.delta, num_clients)
    halves = _multipliers(config, config.rounds, score_share)
    multiplier, of_scores = (None if half is None else 2 * half for half in halves)
    return Guarantee(
        None,
        multiplier,
        1,
        config.rounds,
        config.delta,
        "any other data of a client",
        holds,
        of_scores,
    )


def _multipliers(config, steps, score_share, **each):
    """Of so many sums and, if they are released, of scores once a round."""
    beside, of_scores = [], None
    if score_share is not None:
        scores = {"steps": config.rounds, **each}
        of_scores = noise_multiplier_for(
            score_share * config.epsilon, config.delta, **scores
        )
        beside = [SampledGaussian(noise_multiplier=of_scores, **scores)]
    multiplier = noise_multiplier_for(
        config.epsilon, config.delta, steps=steps, beside=beside, **each
    )
    return multiplier, of_scores


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
