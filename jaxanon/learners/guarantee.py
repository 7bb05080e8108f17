"""What a learner's noise is worth, and how many rounds it pays for."""

import warnings
from typing import NamedTuple

from jaxanon.federated import Lots
from jaxanon.federated.guarantee import NOT_COVERED, Guarantee, multiplier_for
from jaxanon.privacy import (
    response_epsilon_for,
    responses_spent,
    warn_of_delta,
    warn_of_epsilon,
)

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


def of_steps(config) -> Guarantee | None:
    """The guarantee that a config's ε, δ and rounds ask for; None for an ε of 0.

    Args:
      config: ``PrivateConfig``.

    Example:
      >>> from jaxanon.learners.config import PrivateConfig
      >>> found = of_steps(PrivateConfig(epsilon=4.0, rounds=2))
      >>> 3.9 < found.epsilon(2) <= 4.0
      True
    """
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    lots = lots_of(config)
    steps = config.rounds * config.local_steps
    multiplier = multiplier_for(config.epsilon, config.delta, lots, steps)
    return Guarantee(
        lots,
        multiplier,
        config.local_steps,
        config.rounds,
        config.delta,
        EXAMPLE,
        most_windows=config.records,
    )


def of_clients(config, num_clients: int) -> Guarantee | None:
    """The guarantee of whole clients that a config asks for; None for an ε of 0.

    Args:
      config: ``DPFedAvgConfig``.
      num_clients: of the population, a public number.

    Example:
      >>> from jaxanon.learners.private_config import DPFedAvgConfig
      >>> found = of_clients(DPFedAvgConfig(epsilon=8.0, rounds=2, cohort=0.5), 10)
      >>> found.lots.size, 7.9 < found.epsilon(2) <= 8.0
      (5.0, True)
    """
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    warn_of_delta(config.delta, num_clients)
    lots = Lots(
        sampling_probability=config.cohort,
        size=config.cohort * num_clients,
        records=num_clients,
    )
    return Guarantee(
        lots,
        multiplier_for(config.epsilon, config.delta, lots, config.rounds),
        1,
        config.rounds,
        config.delta,
        "a client with all its windows",
        mechanism="Gaussian noise on sums of clients' clipped moves, and on counts of "
        "those within the clip norm",
        released="What the server makes of it, and not what it sees,",
    )


def lots_of(config) -> Lots:
    """The lots of a config's steps, on clients of at most ``records`` windows.

    Warns of a δ that allows for giving one of them away.

    Args:
      config: ``PrivateConfig``.

    Example:
      >>> from jaxanon.learners.config import PrivateConfig
      >>> lots_of(PrivateConfig(records=200, batch=20)).sampling_probability
      0.1
    """
    warn_of_delta(config.delta, config.records)
    return Lots(
        sampling_probability=config.batch / config.records,
        size=float(config.batch),
        records=config.records,
    )


def of_weights(config, weights: int, num_clients: int) -> PerWeight | None:
    """The guarantee that a config of LDP-FL asks for; None for an ε of 0.

    Args:
      config: ``LdpFlConfig``.
      weights: that a client sends in a round.
      num_clients: whom δ is warned for where it is not below 1 / their number.

    Example:
      >>> from jaxanon.learners.private_config import LdpFlConfig
      >>> found = of_weights(LdpFlConfig(epsilon=4.0, rounds=2), 500, 9)
      >>> found.holds, 3.9 < found.epsilon(2) <= 4.0
      (True, True)
    """
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    warn_of_delta(config.delta, num_clients)
    whole = config.claim == "client"
    each = config.epsilon
    if whole:
        each = response_epsilon_for(each, config.rounds * weights, config.delta)
    return PerWeight(weights, each, config.rounds, config.delta, holds=whole)


def paid_for(method, epochs: int, *, stacklevel: int = 2) -> int:
    """Epochs that a privacy budget pays for; all of them where there is none.

    Args:
      method: a ``Method`` or ``Learner``.
      epochs: that were asked for; a warning says where they are too many.
      stacklevel: of that warning, seen from who calls.
    """
    guarantee = getattr(method, "guarantee", None)
    if guarantee is None or guarantee.rounds is None:
        return epochs
    paid = guarantee.rounds // getattr(guarantee, "rounds_per_epoch", 1)
    if epochs <= paid:
        return epochs
    setting = getattr(guarantee, "setting", "rounds")
    warnings.warn(
        f"the privacy budget pays for {paid} {setting.removeprefix('paid_')}, and "
        f"training stops after them, not after {epochs}; set {setting} to {epochs} for "
        "more of them, and more noise in each.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return paid
