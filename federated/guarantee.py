"""What Gaussian noise at every step of a training is worth, and how long it is paid."""

from typing import NamedTuple

from jaxanon.federated.private import Lots, sampled_gaussian
from jaxanon.privacy import epsilon_spent, noise_multiplier_for

SEED = "the seed, from which noise can be drawn again, is in config.json"
DIGEST = (
    "a digest of all windows and labels is in config.json, by which a guess of all of "
    "them can be confirmed"
)
LOSSES = "losses in metrics.jsonl are of clients' own windows"
SCALES = (
    "mean and deviation of each channel, and of a target, over all training windows, "
    "are taken for public"
)
NOT_COVERED = (SEED, DIGEST, LOSSES, SCALES)


class Guarantee(NamedTuple):
    """Gaussian noise of one multiplier at every step, for so many rounds and no more.

    What ``PerWeight`` of ``jaxanon.learners`` shares with it: ``rounds``, ``holds``,
    ``most_windows``, ``rests_on`` (the hyper-parameter that must stay as it was
    reckoned with), ``trained_with``, ``epsilon`` and ``told``.
    """

    lots: Lots
    noise_multiplier: float  # z*, of all that a step releases together
    local_steps: int
    rounds: int | None  # that were paid for; None where noise was named, not bought
    delta: float
    unit: str  # of whom there is one more or less: "an example of a client", ...
    most_windows: int | None = None  # of a client, where it was counted on
    mechanism: str = "Gaussian noise on sums of clipped gradients over lots"
    released: str = "What clients send"
    rounds_per_epoch: int = 1
    setting: str = "rounds"  # that says how many epochs are paid for
    not_covered: tuple[str, ...] = NOT_COVERED

    rests_on = "noise_multiplier"
    holds = True

    def trained_with(self, state) -> "Guarantee":
        """The guarantee of the noise that a state's ``hyper`` has."""
        return self._replace(noise_multiplier=float(state.hyper[self.rests_on]))

    def epsilon(self, rounds: int, accountant: str = "pld") -> float:
        """ε of the first so many rounds, by one of ``jaxanon.privacy.ACCOUNTANTS``."""
        if rounds == 0:
            return 0.0
        steps = rounds * self.local_steps
        release = sampled_gaussian(self.lots, self.noise_multiplier, steps)
        return epsilon_spent([release], self.delta, accountant=accountant)

    def told(self, rounds: int, accountant: str = "pld") -> dict:
        """What a report says of the guarantee after so many rounds."""
        return {
            "mechanism": self.mechanism,
            "released": self.released,
            "neighbours": f"{self.unit} more or less",
            "sampling_probability": self.lots.sampling_probability,
            "noise_multiplier": self.noise_multiplier,
            "steps": rounds * self.local_steps,
            "noisy": "steps",
            "delta": self.delta,
            "epsilon": self.epsilon(rounds, accountant),
            "accountant": accountant,
            "holds": self.holds,
            "not_covered": list(self.not_covered),
        }


def multiplier_for(epsilon: float, delta: float, lots: Lots, steps: int) -> float:
    """The noise multiplier with which so many steps on lots keep within ε and δ.

    Args:
      epsilon, delta: of all steps together.
      lots: ``Lots`` with ``records``.
      steps: >= 1.

    Raises:
      ValueError: as ``sampled_gaussian`` and ``privacy.noise_multiplier_for``.

    Example:
      >>> lots = Lots(sampling_probability=0.05, size=10.0, records=200)
      >>> round(multiplier_for(2.0, 1e-5, lots, 100), 1)
      1.3
    """
    asked = sampled_gaussian(lots, 1.0, steps)
    return noise_multiplier_for(
        epsilon,
        delta,
        sampling_probability=lots.sampling_probability,
        steps=asked.steps,
        capacity=asked.capacity,
        records=asked.records,
    )
