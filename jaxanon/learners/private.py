"""Learners whose clients or servers add noise."""

import dataclasses
import math

import jax

from jaxanon import federated
from jaxanon.core.method import Method
from jaxanon.kernels.bounds import setting
from jaxanon.learners.averaging import fedavg
from jaxanon.learners.learner import (
    STEP,
    LearnerConfig,
    learner,
    loss_of,
    network_of,
    rounds_of,
    steps_of,
)
from jaxanon.privacy import guarantee


def fedsgd_ldp(spec, config) -> Method:
    """FedSGD-LDP; see ``federated.private.fedsgd_ldp``. Without ε it is FedAvg."""
    found = guarantee.of_steps(config)
    if found is None:
        made = fedavg(spec, config, weighting="clients")
        return made._replace(name="fedsgd_ldp")
    network = network_of(spec, config)
    algorithm = federated.fedsgd_ldp(
        network.init,
        loss_of(network, spec),
        lots=found.lots,
        num_steps=config.local_steps,
        num_clients=spec.num_classes("subject"),
        rounds=rounds_of(spec, config, "clients"),
    )
    return learner(
        "fedsgd_ldp",
        spec,
        config,
        algorithm,
        network,
        (*STEP, "clip_norm"),
        guarantee=found,
        hyper_values={"noise_multiplier": found.noise_multiplier},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BudgetConfig(LearnerConfig):
    """What learners have whose noise is bought from a budget."""

    epsilon: float = setting(2.0, at_least=0, help="ε of all rounds; 0: no noise")
    delta: float = setting(1e-5, above=0, below=1, help="δ of the guarantee")
    max_rounds: int = setting(
        50, at_least=1, help="rounds that ε pays for, and no more"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateConfig(BudgetConfig):
    """Settings of learners whose clients' steps are noisy."""

    epsilon: float = setting(
        2.0,
        at_least=0,
        help="ε of an example of a client, against whoever sees what it sends; 0: no "
        "noise, no guarantee",
    )
    max_examples: int = setting(
        512, at_least=1, help="most windows of a client, in public"
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of an example's gradient, or of a client's update"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.batch_size > self.max_examples:
            raise ValueError(
                f"batch_size must be at most max_examples, {self.max_examples}, got "
                f"{self.batch_size!r}."
            )


def ldp_fl(spec, config) -> Method:
    """LDP-FL; see ``jaxanon.federated.private.ldp_fl``. Without ε it is FedAvg.

    What goes by that name in programs of others, a Gaussian on each example's clipped
    gradient, is ``fedsgd_ldp``.
    """
    network = network_of(spec, config)
    shapes = jax.eval_shape(network.init, jax.eval_shape(jax.random.key, 0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    found = guarantee.of_weights(config, weights, spec.num_classes("subject"))
    if found is None:
        made = fedavg(spec, config, weighting="clients")
        return made._replace(name="ldp_fl")
    radii = {
        name: config.weight_range / math.sqrt(_inputs(layer))
        for name, layer in shapes.items()
    }
    algorithm = federated.ldp_fl(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        radii=radii,
        num_clients=spec.num_classes("subject"),
        cut_mean=config.cut_mean,
        rounds=rounds_of(spec, config, "clients"),
    )
    return learner(
        "ldp_fl",
        spec,
        config,
        algorithm,
        network,
        STEP,
        guarantee=found,
        hyper_values={"weight_epsilon": found.weight_epsilon},
    )


def dp_fedavg(spec, config) -> Method:
    """DP-FedAvg; see ``federated.private.dp_fedavg``. Without ε it is FedAvg."""
    found = guarantee.of_clients(config, spec.num_classes("subject"))
    if found is None:
        made = fedavg(spec, config, weighting="clients")
        return made._replace(name="dp_fedavg")
    network = network_of(spec, config)
    multiplier = found.noise_multiplier
    algorithm = federated.dp_fedavg(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        cohorts=found.lots,
        count_stddev=count_stddev(config, multiplier),
    )
    names = ("server_learning_rate", "clip_norm", "quantile", "norm_learning_rate")
    return learner(
        "dp_fedavg",
        spec,
        config,
        algorithm,
        network,
        (*STEP, *names),
        guarantee=found,
        hyper_values={"noise_multiplier": multiplier},
    )


def count_stddev(config, multiplier: float) -> float:
    """Noise of counts for ``count_fraction`` of the budget: 1 / (2 s)^2 of 1 / z^2.

    Args:
      config: ``DPFedAvgConfig``.
      multiplier: z, of sums and counts together.

    Returns:
      A standard deviation, in clients.

    Example:
      >>> from jaxanon.learners.private import DPFedAvgConfig
      >>> count_stddev(DPFedAvgConfig(count_fraction=0.25), 3.0)
      3.0
    """
    return multiplier / (2 * math.sqrt(config.count_fraction))


def _inputs(layer):
    """Numbers that each output of a layer is made of: rows of its largest matrix."""
    return max(jax.tree.leaves(layer), key=lambda leaf: leaf.size).shape[0]


CLAIMS = ("client", "weight")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LdpFlConfig(BudgetConfig):
    """LDP-FL's settings."""

    epsilon: float = setting(
        2.0,
        at_least=0,
        help="ε of what is claimed, against whoever sees what a client sends; 0: no "
        "noise, no guarantee",
    )
    privacy_unit: str = setting(
        "client",
        choices=CLAIMS,
        help="client: epsilon is of all weights in all rounds together, which leaves "
        "nothing of a network but noise; weight: of each of them, as published, and no "
        "guarantee",
    )
    weight_range: float = setting(
        3.0, above=0, help="range of weights, over the root of inputs"
    )
    cut_mean: bool = setting(True, help="clip the mean too, unlike the paper")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPFedAvgConfig(BudgetConfig):
    """Settings of DP-FedAvg with clip norms that adapt.

    ``client_fraction`` is the probability with which a client joins a round, on its
    own.
    """

    epsilon: float = setting(
        2.0,
        at_least=0,
        help="ε of a client with all its windows, against all but the server; 0: no "
        "noise, no guarantee",
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of what a client moves by, as training begins"
    )
    quantile: float = setting(
        0.5, above=0, below=1, help="share of clients that the clip norm leaves whole"
    )
    norm_learning_rate: float = setting(
        0.2, at_least=0, help="step size of the clip norm"
    )
    server_learning_rate: float = setting(1.0, above=0, help="step size of the server")
    count_fraction: float = setting(
        0.05, above=0, below=1, help="share of the budget that is spent on counting"
    )
