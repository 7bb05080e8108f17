"""What a learner's noise is worth, and how many rounds it pays for."""

import warnings
from typing import NamedTuple

from jaxanon.privacy.accounting import epsilon_spent, warn_of_delta, warn_of_epsilon
from jaxanon.privacy.calibration import noise_multiplier_for
from jaxanon.privacy.composition import response_epsilon_for, responses_spent
from jaxanon.privacy.poisson_sampling import PoissonSampling, sampled_gaussian

EXAMPLE = "an example of a client that has others"


class PerWeight(NamedTuple):
    """One of two values for every weight that a client sends, in every round.

    As ``Guarantee``; neighbours are any two sets of windows of a client.
    """

    weights: int  # of a model
    weight_epsilon: float
    rounds: int  # that were paid for
    delta: float
    holds: bool = True  # Else the ε claimed is of one weight in one round.
    most_windows: int | None = None

    rests_on = "weight_epsilon"

    def trained_with(self, state) -> "PerWeight":
        """The guarantee of the ε that a state's ``hyper`` has."""
        return self._replace(weight_epsilon=float(state.hyper[self.rests_on]))

    def epsilon(self, rounds: int) -> float:
        """ε of all that a client sends in the first so many rounds."""
        count = rounds * self.weights
        return responses_spent(self.weight_epsilon, count, self.delta)

    def told(self, rounds: int, accountant: str = "rdp") -> dict:
        """What a report says of the guarantee after so many rounds."""
        del accountant  # Of responses there is one.
        claimed = {} if self.holds else {"claimed": self.weight_epsilon}
        return claimed | {
            "mechanism": "one of two values for every weight",
            "released": "What clients send",
            "neighbours": "any two sets of windows of a client",
            "weight_epsilon": self.weight_epsilon,
            "steps": rounds * self.weights,
            "noisy": "weights",
            "delta": self.delta,
            "epsilon": self.epsilon(rounds),
            "accountant": "rdp",
            "holds": self.holds,
            "not_covered": list(NOT_COVERED),
        }


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

    What ``PerWeight`` shares with it: ``rounds``, ``holds``,
    ``most_windows``, ``rests_on`` (the hyper-parameter that must stay as it was
    reckoned with), ``trained_with``, ``epsilon`` and ``told``.
    """

    lots: PoissonSampling
    noise_multiplier: float  # z*, of all that a step releases together
    local_steps: int
    rounds: int | None  # that were paid for; None where noise was named, not bought
    delta: float
    unit: str  # of whom there is one more or less: "an example of a client", ...
    most_windows: int | None = None  # of a client, where it was counted on
    mechanism: str = "Gaussian noise on sums of clipped gradients over lots"
    released: str = "What clients send"
    rounds_per_epoch: int = 1
    setting: str = "max_rounds"  # that says how many epochs are paid for
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


def of_steps(config) -> Guarantee | None:
    """The guarantee that a config's ε, δ and rounds ask for; None for an ε of 0.

    Args:
      config: ``PrivateConfig``.

    Example:
      >>> from jaxanon.learners.private import PrivateConfig
      >>> found = of_steps(PrivateConfig(epsilon=4.0, rounds=2))
      >>> 3.9 < found.epsilon(2) <= 4.0
      True
    """
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    lots = lots_of(config)
    steps = config.max_rounds * config.local_steps
    multiplier = multiplier_for(config.epsilon, config.delta, lots, steps)
    return Guarantee(
        lots,
        multiplier,
        config.local_steps,
        config.max_rounds,
        config.delta,
        EXAMPLE,
        most_windows=config.max_examples,
    )


def of_clients(config, num_clients: int) -> Guarantee | None:
    """The guarantee of whole clients that a config asks for; None for an ε of 0.

    Args:
      config: ``DPFedAvgConfig``.
      num_clients: of the population, a public number.

    Example:
      >>> from jaxanon.learners.private import DPFedAvgConfig
      >>> found = of_clients(DPFedAvgConfig(epsilon=8.0, rounds=2, cohort=0.5), 10)
      >>> found.lots.size, 7.9 < found.epsilon(2) <= 8.0
      (5.0, True)
    """
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    warn_of_delta(config.delta, num_clients)
    lots = PoissonSampling(
        sampling_probability=config.client_fraction,
        expected_batch_size=config.client_fraction * num_clients,
        max_examples=num_clients,
    )
    return Guarantee(
        lots,
        multiplier_for(config.epsilon, config.delta, lots, config.max_rounds),
        1,
        config.max_rounds,
        config.delta,
        "a client with all its windows",
        mechanism="Gaussian noise on sums of clients' clipped moves, and on counts of "
        "those within the clip norm",
        released="What the server makes of it, and not what it sees,",
    )


def lots_of(config) -> PoissonSampling:
    """The lots of a config's steps, on clients of at most ``max_examples`` windows.

    Warns of a δ that allows for giving one of them away.

    Args:
      config: ``PrivateConfig``.

    Example:
      >>> from jaxanon.learners.private import PrivateConfig
      >>> lots_of(PrivateConfig(max_examples=200, batch=20)).sampling_probability
      0.1
    """
    warn_of_delta(config.delta, config.max_examples)
    return PoissonSampling(
        sampling_probability=config.batch_size / config.max_examples,
        expected_batch_size=float(config.batch_size),
        max_examples=config.max_examples,
    )


def of_weights(config, weights: int, num_clients: int) -> PerWeight | None:
    """The guarantee that a config of LDP-FL asks for; None for an ε of 0.

    Args:
      config: ``LdpFlConfig``.
      weights: that a client sends in a round.
      num_clients: whom δ is warned for where it is not below 1 / their number.

    Example:
      >>> from jaxanon.learners.private import LdpFlConfig
      >>> found = of_weights(LdpFlConfig(epsilon=4.0, rounds=2), 500, 9)
      >>> found.holds, 3.9 < found.epsilon(2) <= 4.0
      (True, True)
    """
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    warn_of_delta(config.delta, num_clients)
    whole = config.privacy_unit == "client"
    each = config.epsilon
    if whole:
        each = response_epsilon_for(each, config.max_rounds * weights, config.delta)
    return PerWeight(weights, each, config.max_rounds, config.delta, holds=whole)


def paid_for(method, epochs: int, *, stacklevel: int = 2) -> int:
    """Epochs that a privacy budget pays for; all of them where there is none.

    Args:
      method: a ``Method``.
      epochs: that were asked for; a warning says where they are too many.
      stacklevel: of that warning, seen from who calls.
    """
    guarantee = method.guarantee
    if guarantee is None or guarantee.rounds is None:
        return epochs
    paid = guarantee.rounds // getattr(guarantee, "rounds_per_epoch", 1)
    if epochs <= paid:
        return epochs
    setting = getattr(guarantee, "setting", "max_rounds")
    warnings.warn(
        f"the privacy budget pays for {paid} {setting.removeprefix('paid_')}, and "
        f"training stops after them, not after {epochs}; set {setting} to {epochs} for "
        "more of them, and more noise in each.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return paid


def multiplier_for(
    epsilon: float, delta: float, lots: PoissonSampling, steps: int
) -> float:
    """The noise multiplier with which so many steps on lots keep within ε and δ.

    Args:
      epsilon, delta: of all steps together.
      lots: ``PoissonSampling`` with ``max_examples``.
      steps: >= 1.

    Raises:
      ValueError: as ``sampled_gaussian`` and ``privacy.noise_multiplier_for``.

    Example:
      >>> lots = PoissonSampling(sampling_probability=0.05, expected_batch_size=10.0,
      max_examples=200)
      >>> round(multiplier_for(2.0, 1e-5, lots, 100), 1)
      1.3
    """
    asked = sampled_gaussian(lots, 1.0, steps)
    return noise_multiplier_for(
        epsilon,
        delta,
        sampling_probability=lots.sampling_probability,
        steps=asked.steps,
        max_batch_size=asked.max_batch_size,
        max_examples=asked.max_examples,
    )
