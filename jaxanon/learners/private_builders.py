"""Builders of LDP-FL and DP-FedAvg."""

import math

import jax

from jaxanon import federated
from jaxanon.learners import guarantee
from jaxanon.learners.builders import fedavg
from jaxanon.learners.learner import Learner, learner, loss_of, network_of
from jaxanon.learners.parts import STEP, rounds_of, steps_of


def ldpfl(spec, config) -> Learner:
    """LDP-FL; see ``jaxanon.federated.ldp_fl``. Without ε it is FedAvg.

    What goes by that name in programs of others, a Gaussian on each example's clipped
    gradient, is ``fedsgd_ldp``.
    """
    network = network_of(spec, config)
    shapes = jax.eval_shape(network.init, jax.eval_shape(jax.random.key, 0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    found = guarantee.of_weights(config, weights, spec.num_classes("subject"))
    if found is None:
        made = fedavg(spec, config, weighting="clients")
        return made._replace(name="ldpfl")
    radii = {
        name: config.reach / math.sqrt(_inputs(layer)) for name, layer in shapes.items()
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
        "ldpfl",
        spec,
        config,
        algorithm,
        network,
        STEP,
        guarantee=found,
        hyper_values={"weight_epsilon": found.weight_epsilon},
    )


def dpfedavg(spec, config) -> Learner:
    """DP-FedAvg; see ``jaxanon.federated.dp_fed_avg``. Without ε it is FedAvg."""
    found = guarantee.of_clients(config, spec.num_classes("subject"))
    if found is None:
        made = fedavg(spec, config, weighting="clients")
        return made._replace(name="dpfedavg")
    network = network_of(spec, config)
    multiplier = found.noise_multiplier
    algorithm = federated.dp_fed_avg(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        cohorts=found.lots,
        count_stddev=count_stddev(config, multiplier),
    )
    names = ("server_step_size", "max_norm", "quantile", "norm_step_size")
    return learner(
        "dpfedavg",
        spec,
        config,
        algorithm,
        network,
        (*STEP, *names),
        guarantee=found,
        hyper_values={"noise_multiplier": multiplier},
    )


def count_stddev(config, multiplier: float) -> float:
    """Noise of counts that takes ``count_share`` of the budget: 1 / (2 s)^2 of 1 / z^2.

    Args:
      config: ``DPFedAvgConfig``.
      multiplier: z, of sums and counts together.

    Returns:
      A standard deviation, in clients.

    Example:
      >>> from jaxanon.learners.private_config import DPFedAvgConfig
      >>> count_stddev(DPFedAvgConfig(count_share=0.25), 3.0)
      3.0
    """
    return multiplier / (2 * math.sqrt(config.count_share))


def _inputs(layer):
    """Numbers that each output of a layer is made of: rows of its largest matrix."""
    return max(jax.tree.leaves(layer), key=lambda leaf: leaf.size).shape[0]
