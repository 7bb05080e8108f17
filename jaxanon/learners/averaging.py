"""Learners with one shared model, or none: FedAvg and variants."""

import dataclasses

from jaxanon import federated
from jaxanon.core.method import Method
from jaxanon.federated.engine.cohort import cohort_size
from jaxanon.kernels.bounds import setting
from jaxanon.learners.learner import (
    STEP,
    LearnerConfig,
    learner,
    loss_of,
    network_of,
    personal_learner,
)


def fedavg(spec, config, weighting="rows") -> Method:
    """Builds FedAvg; see ``jaxanon.federated.averaging.fedavg``."""
    network = network_of(spec, config)
    algorithm = federated.fedavg(
        network.init,
        loss_of(network, spec),
        steps=federated.Steps(
            num_steps=config.local_steps, batch_size=config.batch_size
        ),
        cohort_size=cohort_size(config, spec.num_classes("subject")),
        weighting=weighting,
    )
    return learner("fedavg", spec, config, algorithm, network, STEP)


def centralized(spec, config) -> Method:
    """Builds gradient descent on the pooled windows of all clients, a baseline."""
    network = network_of(spec, config)
    algorithm = federated.fedavg(
        network.init,
        loss_of(network, spec),
        steps=federated.Steps(
            num_steps=config.local_steps, batch_size=config.batch_size
        ),
    )
    return learner("centralized", spec, config, algorithm, network, STEP, pooled=True)


def localized(spec, config) -> Method:
    """Trains each client alone; see ``jaxanon.federated.averaging.localized``."""
    return personal_learner("localized", spec, config, federated.localized, STEP)


def fedprox(spec, config) -> Method:
    """Builds FedProx; see ``jaxanon.federated.averaging.fedprox``."""
    return personal_learner(
        "fedprox", spec, config, federated.fedprox, (*STEP, "proximal_mu")
    )


def scaffold(spec, config) -> Method:
    """Builds SCAFFOLD; see ``jaxanon.federated.averaging.scaffold``."""
    names = (*STEP, "server_learning_rate")
    make = federated.scaffold
    return personal_learner("scaffold", spec, config, make, names, weighting="clients")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedProxConfig(LearnerConfig):
    """Settings of FedProx."""

    proximal_mu: float = setting(
        0.1, at_least=0, help="weight of the squared distance from the global model"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaffoldConfig(LearnerConfig):
    """Settings of SCAFFOLD."""

    server_learning_rate: float = setting(1.0, above=0, help="server learning rate")
