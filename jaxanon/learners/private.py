"""Learners whose clients or server add noise."""

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
    """Builds FedSGD-LDP; see ``federated.private.fedsgd_ldp``. FedAvg if ε is 0."""
    noise = guarantee.of_steps(config)
    if noise is None:
        return fedavg(spec, config, weighting="clients")._replace(name="fedsgd_ldp")
    network = network_of(spec, config)
    algorithm = federated.fedsgd_ldp(
        network.init,
        loss_of(network, spec),
        lots=noise.lots,
        steps=federated.Steps(num_steps=config.local_steps),
        num_clients=spec.num_classes("subject"),
        **rounds_of(spec, config, "clients"),
    )
    return learner(
        "fedsgd_ldp",
        spec,
        config,
        algorithm,
        network,
        (*STEP, "clip_norm"),
        guarantee=noise,
        hyper_values={"noise_multiplier": noise.noise_multiplier},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BudgetConfig(LearnerConfig):
    """Settings of learners whose noise follows from a privacy budget."""

    epsilon: float = setting(2.0, at_least=0, help="ε over all rounds; 0: no noise")
    delta: float = setting(1e-5, above=0, below=1, help="δ of the guarantee")
    max_rounds: int = setting(
        50, at_least=1, help="number of rounds that ε covers; training stops after them"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateConfig(BudgetConfig):
    """Settings of learners whose clients add noise to their steps."""

    epsilon: float = setting(
        2.0,
        at_least=0,
        help="ε of one example of a client, against anyone who sees the client's "
        "messages; 0: no noise, no guarantee",
    )
    max_examples: int = setting(
        512, at_least=1, help="public upper bound on a client's number of windows"
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of an example's gradient or of a client's update"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.batch_size > self.max_examples:
            raise ValueError(
                f"batch_size must be at most max_examples, {self.max_examples}, got "
                f"{self.batch_size!r}; lower it."
            )


def ldp_fl(spec, config) -> Method:
    """Builds LDP-FL; see ``jaxanon.federated.private.ldp_fl``. FedAvg if ε is 0.

    Some programs use the name for Gaussian noise on each example's clipped gradient;
    that is ``fedsgd_ldp`` here.
    """
    network = network_of(spec, config)
    shapes = jax.eval_shape(network.init, jax.eval_shape(jax.random.key, 0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    noise = guarantee.of_weights(config, weights, spec.num_classes("subject"))
    if noise is None:
        return fedavg(spec, config, weighting="clients")._replace(name="ldp_fl")
    radii = {
        name: config.weight_range / math.sqrt(_inputs(layer))
        for name, layer in shapes.items()
    }
    algorithm = federated.ldp_fl(
        network.init,
        loss_of(network, spec),
        steps=steps_of(config),
        radii=radii,
        num_clients=spec.num_classes("subject"),
        cut_mean=config.cut_mean,
        **rounds_of(spec, config, "clients"),
    )
    return learner(
        "ldp_fl",
        spec,
        config,
        algorithm,
        network,
        STEP,
        guarantee=noise,
        hyper_values={"weight_epsilon": noise.weight_epsilon},
    )


def dp_fedavg(spec, config) -> Method:
    """Builds DP-FedAvg; see ``federated.private.dp_fedavg``. FedAvg if ε is 0."""
    noise = guarantee.of_clients(config, spec.num_classes("subject"))
    if noise is None:
        return fedavg(spec, config, weighting="clients")._replace(name="dp_fedavg")
    network = network_of(spec, config)
    multiplier = noise.noise_multiplier
    algorithm = federated.dp_fedavg(
        network.init,
        loss_of(network, spec),
        steps=steps_of(config),
        cohorts=noise.lots,
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
        guarantee=noise,
        hyper_values={"noise_multiplier": multiplier},
    )


def count_stddev(config, multiplier: float) -> float:
    """Returns the noise std of counts that use ``count_fraction`` of the budget.

    The budget's precision 1 / z^2 is split: counts have the part 1 / (2 s)^2.

    Args:
      config: ``DPFedAvgConfig``.
      multiplier: noise multiplier z of sums and counts together.

    Returns:
      Standard deviation s, in clients.

    Example:
      >>> from jaxanon.learners.private import DPFedAvgConfig
      >>> count_stddev(DPFedAvgConfig(count_fraction=0.25), 3.0)
      3.0
    """
    return multiplier / (2 * math.sqrt(config.count_fraction))


def _inputs(layer):
    """Returns a layer's inputs per output: rows of its largest matrix."""
    return max(jax.tree.leaves(layer), key=lambda leaf: leaf.size).shape[0]


CLAIMS = ("client", "weight")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LdpFlConfig(BudgetConfig):
    """Settings of LDP-FL."""

    epsilon: float = setting(
        2.0,
        at_least=0,
        help="ε of the privacy unit, against anyone who sees the client's messages; "
        "0: no noise, no guarantee",
    )
    privacy_unit: str = setting(
        "client",
        choices=CLAIMS,
        help="client: ε covers all weights in all rounds together, which leaves "
        "mostly noise of a network; weight: ε is for each of them, as "
        "published, without a guarantee",
    )
    weight_range: float = setting(
        3.0,
        above=0,
        help="range of weights, divided by the square root of the layer's inputs",
    )
    cut_mean: bool = setting(True, help="also clip the mean, unlike the paper")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPFedAvgConfig(BudgetConfig):
    """Settings of DP-FedAvg with adaptive clip norms.

    ``client_fraction`` is the probability with which each client joins a round
    independently.
    """

    epsilon: float = setting(
        2.0,
        at_least=0,
        help="ε of a client with all its windows, against everyone except the "
        "server; 0: no noise, no guarantee",
    )
    clip_norm: float = setting(
        1.0, above=0, help="initial clip norm of a client's update"
    )
    quantile: float = setting(
        0.5, above=0, below=1, help="fraction of clients whose update is not clipped"
    )
    norm_learning_rate: float = setting(
        0.2, at_least=0, help="learning rate of the clip norm"
    )
    server_learning_rate: float = setting(1.0, above=0, help="server learning rate")
    count_fraction: float = setting(
        0.05, above=0, below=1, help="fraction of the budget spent on counting clients"
    )
