"""Privacy guarantees of noise in training, and the rounds within a budget."""

import warnings
from typing import NamedTuple

from jaxanon.privacy.accounting import epsilon_spent, warn_of_delta, warn_of_epsilon
from jaxanon.privacy.calibration import noise_multiplier_for
from jaxanon.privacy.composition import response_epsilon_for, responses_spent
from jaxanon.privacy.poisson_sampling import PoissonSampling, sampled_gaussian

EXAMPLE = "an example of a client that has others"


class PerWeight(NamedTuple):
    """Guarantee of randomized response on every weight that a client sends.

    Has the interface of ``Guarantee``. Neighbours are any two sets of windows of a
    client.
    """

    weights: int  # number of weights of a model
    weight_epsilon: float
    rounds: int  # rounds within the budget
    delta: float
    holds: bool = True  # False: the claimed ε covers only one weight in one round.
    most_windows: int | None = None

    rests_on = "weight_epsilon"
    rounds_per_epoch = 1
    setting = "max_rounds"
    score_multiplier = None

    def trained_with(self, state) -> "PerWeight":
        """Returns the guarantee for the ε in a state's ``hyper``."""
        return self._replace(weight_epsilon=float(state.hyper[self.rests_on]))

    def epsilon(self, rounds: int) -> float:
        """Returns the ε of all messages of a client in the first rounds."""
        count = rounds * self.weights
        return responses_spent(self.weight_epsilon, count, self.delta)

    def report(self, rounds: int, accountant: str = "rdp") -> dict:
        """Returns the guarantee after some rounds as a JSON-able dict."""
        del accountant  # Responses have only one.
        claimed = {} if self.holds else {"claimed": self.weight_epsilon}
        return claimed | {
            "mechanism": "one of two values for every weight",
            "released": "Everything that clients send",
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


SEED = "the seed in config.json, which reproduces the noise"

DIGEST = (
    "the digest of all windows and labels in config.json, which confirms a correct "
    "guess of all of them"
)

LOSSES = "the losses in metrics.jsonl, which are computed on the clients' windows"

SCALES = (
    "mean and standard deviation of each channel, and of a target, over all training "
    "windows, which count as public"
)

NOT_COVERED = (SEED, DIGEST, LOSSES, SCALES)


class Guarantee(NamedTuple):
    """Guarantee of Gaussian noise with a constant multiplier at every step.

    ``PerWeight`` has the same interface: ``rounds``, ``rounds_per_epoch``, ``setting``,
    ``holds``, ``most_windows``, ``score_multiplier`` (of separately released scores, or
    None), ``rests_on`` (the hyper-parameter that must not change), ``trained_with``,
    ``epsilon`` and ``report``.
    """

    lots: PoissonSampling
    noise_multiplier: float  # z*, joint multiplier of all releases of a step
    local_steps: int
    rounds: int | None  # rounds within the budget; None if noise was set directly
    delta: float
    unit: str  # unit added or removed between neighbours, such as "an example"
    most_windows: int | None = None  # assumed maximum number of windows of a client
    mechanism: str = "Gaussian noise on sums of clipped gradients of Poisson samples"
    released: str = "Everything that clients send"
    rounds_per_epoch: int = 1
    setting: str = "max_rounds"  # name of the setting that bounds the epochs
    not_covered: tuple[str, ...] = NOT_COVERED

    rests_on = "noise_multiplier"
    score_multiplier = None
    holds = True

    def trained_with(self, state) -> "Guarantee":
        """Returns the guarantee for the noise multiplier in a state's ``hyper``."""
        return self._replace(noise_multiplier=float(state.hyper[self.rests_on]))

    def epsilon(self, rounds: int, accountant: str = "pld") -> float:
        """Returns the ε of the first rounds; ``accountant`` is "pld" or "rdp"."""
        if rounds == 0:
            return 0.0
        steps = rounds * self.local_steps
        release = sampled_gaussian(self.lots, self.noise_multiplier, steps)
        return epsilon_spent([release], self.delta, accountant=accountant)

    def report(self, rounds: int, accountant: str = "pld") -> dict:
        """Returns the guarantee after some rounds as a JSON-able dict."""
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
    """Returns the guarantee for a config's ε, δ and rounds; None for an ε of 0.

    Args:
      config: ``PrivateConfig``.

    Example:
      >>> from jaxanon.learners.private import PrivateConfig
      >>> guarantee = of_steps(PrivateConfig(epsilon=4.0, max_rounds=2))
      >>> 3.9 < guarantee.epsilon(2) <= 4.0
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
    """Returns the client-level guarantee for a config; None for an ε of 0.

    Args:
      config: ``DPFedAvgConfig``.
      num_clients: number of clients in the population, which is public.

    Example:
      >>> from jaxanon.learners.private import DPFedAvgConfig
      >>> config = DPFedAvgConfig(epsilon=8.0, max_rounds=2, client_fraction=0.5)
      >>> guarantee = of_clients(config, 10)
      >>> guarantee.lots.expected_batch_size, 7.9 < guarantee.epsilon(2) <= 8.0
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
        mechanism="Gaussian noise on sums of clipped client updates, and on counts of "
        "updates within the clip norm",
        released="The server's aggregate (not the messages it receives)",
    )


def lots_of(config) -> PoissonSampling:
    """Returns a config's Poisson sampling, for clients of ``max_examples`` windows.

    Warns if δ is large enough to permit publishing one of them.

    Args:
      config: ``PrivateConfig``.

    Example:
      >>> from jaxanon.learners.private import PrivateConfig
      >>> lots_of(PrivateConfig(max_examples=200, batch_size=20)).sampling_probability
      0.1
    """
    warn_of_delta(config.delta, config.max_examples)
    return PoissonSampling(
        sampling_probability=config.batch_size / config.max_examples,
        expected_batch_size=float(config.batch_size),
        max_examples=config.max_examples,
    )


def of_weights(config, weights: int, num_clients: int) -> PerWeight | None:
    """Returns the guarantee for a config of LDP-FL; None for an ε of 0.

    Args:
      config: ``LdpFlConfig``.
      weights: number of weights that a client sends in a round.
      num_clients: number of clients N; warns unless δ is below 1 / N.

    Example:
      >>> from jaxanon.learners.private import LdpFlConfig
      >>> guarantee = of_weights(LdpFlConfig(epsilon=4.0, max_rounds=2), 500, 9)
      >>> guarantee.holds, 3.9 < guarantee.epsilon(2) <= 4.0
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


def epochs_within_budget(method, epochs: int, *, stacklevel: int = 2) -> int:
    """Returns the number of epochs within a privacy budget, at most ``epochs``.

    Args:
      method: ``Method``; without a budget the result is ``epochs``.
      epochs: requested epochs; a warning reports a reduction.
      stacklevel: stack level of the warning.
    """
    guarantee = method.guarantee
    if guarantee is None or guarantee.rounds is None:
        return epochs
    most = guarantee.rounds // guarantee.rounds_per_epoch
    if epochs <= most:
        return epochs
    warnings.warn(
        f"epochs should be at most {most}, the number within the privacy budget, got "
        f"{epochs}; training stops after {most}. Set {guarantee.setting}={epochs} to "
        "train for all of them with more noise.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return most


def multiplier_for(
    epsilon: float, delta: float, lots: PoissonSampling, steps: int
) -> float:
    """Returns the noise multiplier that keeps steps on Poisson samples within ε and δ.

    Args:
      epsilon, delta: total ε and δ of all steps.
      lots: ``PoissonSampling`` with ``max_examples``.
      steps: number of steps, >= 1.

    Raises:
      ValueError: if an argument is out of range, or no noise multiplier fits.

    Example:
      >>> lots = PoissonSampling(
      ...     sampling_probability=0.05, expected_batch_size=10.0, max_examples=200)
      >>> round(multiplier_for(2.0, 1e-5, lots, 100), 1)
      1.3
    """
    release = sampled_gaussian(lots, 1.0, steps)
    return noise_multiplier_for(
        epsilon,
        delta,
        sampling_probability=lots.sampling_probability,
        steps=release.steps,
        max_batch_size=release.max_batch_size,
        max_examples=release.max_examples,
    )
