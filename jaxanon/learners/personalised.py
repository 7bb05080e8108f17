"""Learners with a personal model for each client."""

import dataclasses

from jaxanon import federated
from jaxanon.core.method import Method
from jaxanon.kernels.bounds import setting
from jaxanon.learners.learner import (
    STEP,
    LearnerConfig,
    network_of,
    personal_learner,
    steps_of,
)


def fedper(spec, config) -> Method:
    """Builds FedPer; see ``jaxanon.federated.personalised.fedper``."""
    more = {"personal_layers": _personal_layers(spec, config)}
    return personal_learner("fedper", spec, config, federated.fedper, STEP, **more)


def fedrep(spec, config) -> Method:
    """Builds FedRep; see ``jaxanon.federated.personalised.fedrep``."""
    layers = _personal_layers(spec, config)
    more = {"personal_layers": layers, "personal_steps": steps_of(config)}
    return personal_learner("fedrep", spec, config, federated.fedrep, STEP, **more)


def ditto(spec, config) -> Method:
    """Builds Ditto; see ``jaxanon.federated.personalised.ditto``."""
    more = {"personal_steps": steps_of(config)}
    return personal_learner(
        "ditto", spec, config, federated.ditto, (*STEP, "proximal_weight"), **more
    )


def pfedme(spec, config) -> Method:
    """Builds pFedMe; see ``jaxanon.federated.personalised.pfedme``."""
    names = (*STEP, "server_learning_rate", "proximal_weight", "mix")
    more = {"personal_steps": config.personal_steps, "weighting": "clients"}
    return personal_learner("pfedme", spec, config, federated.pfedme, names, **more)


def per_fedavg(spec, config) -> Method:
    """Builds Per-FedAvg; see ``jaxanon.federated.meta_learning.per_fedavg``."""
    names = (*STEP, "adaptation_learning_rate")
    more = {"second_order": config.second_order}
    return personal_learner(
        "per_fedavg", spec, config, federated.per_fedavg, names, **more
    )


def _personal_layers(spec, config):
    """Returns the layers after the shared ones, in forward order."""
    layers = network_of(spec, config).layers
    if config.shared_layers > len(layers):
        raise ValueError(
            f"shared_layers must be at most {len(layers)}, the layers of the model, "
            f"got {config.shared_layers}; lower it."
        )
    return layers[config.shared_layers :]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersonalLayersConfig(LearnerConfig):
    """Settings of FedPer and FedRep."""

    shared_layers: int = setting(
        4,
        at_least=0,
        help="number of first layers that all clients share; the others are personal",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DittoConfig(LearnerConfig):
    """Settings of Ditto."""

    proximal_weight: float = setting(
        0.1,
        at_least=0,
        help="λ, weight of the personal model's squared distance from the global model",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFedMeConfig(LearnerConfig):
    """Settings of pFedMe."""

    proximal_weight: float = setting(
        15.0,
        at_least=0,
        help="λ, weight of the personal model's squared distance from the local copy",
    )
    personal_steps: int = setting(5, at_least=1, help="personal steps per local step")
    server_learning_rate: float = setting(
        0.005, above=0, help="η, learning rate of the local copies"
    )
    mix: float = setting(
        1.0, above=0, help="β, server step towards the mean of the local copies"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerFedAvgConfig(LearnerConfig):
    """Settings of Per-FedAvg."""

    adaptation_learning_rate: float = setting(
        0.05, at_least=0, help="α, learning rate of a client's adaptation step"
    )
    second_order: bool = setting(True, help="differentiate through the adaptation step")
