"""Learners whose clients each end with a model of their own."""

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
    """FedPer; see ``jaxanon.federated.personalised.fedper``."""
    own = {"own_layers": _own_layers(spec, config)}
    return personal_learner("fedper", spec, config, federated.fedper, STEP, **own)


def fedrep(spec, config) -> Method:
    """FedRep; see ``jaxanon.federated.personalised.fedrep``."""
    own = {"own_layers": _own_layers(spec, config), "own_steps": steps_of(config)}
    return personal_learner("fedrep", spec, config, federated.fedrep, STEP, **own)


def ditto(spec, config) -> Method:
    """Ditto; see ``jaxanon.federated.personalised.ditto``."""
    own = {"own_steps": steps_of(config)}
    return personal_learner(
        "ditto", spec, config, federated.ditto, (*STEP, "proximal_weight"), **own
    )


def pfedme(spec, config) -> Method:
    """pFedMe; see ``jaxanon.federated.personalised.pfedme``."""
    names = (*STEP, "server_learning_rate", "proximal_weight", "mix")
    own = {"own_steps": config.personal_steps, "weighting": "clients"}
    return personal_learner("pfedme", spec, config, federated.pfedme, names, **own)


def per_fedavg(spec, config) -> Method:
    """Per-FedAvg; see ``jaxanon.federated.meta_learning.per_fedavg``."""
    names = (*STEP, "adaptation_learning_rate")
    more = {"second_order": config.second_order}
    return personal_learner(
        "per_fedavg", spec, config, federated.per_fedavg, names, **more
    )


def _own_layers(spec, config):
    """Layers after the shared ones, in the order in which windows meet them."""
    layers = network_of(spec, config).layers
    if config.shared_layers > len(layers):
        raise ValueError(
            f"shared_layers must be at most the {len(layers)} layers of the model, got "
            f"{config.shared_layers}."
        )
    return layers[config.shared_layers :]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnLayersConfig(LearnerConfig):
    """Settings of FedPer and FedRep."""

    shared_layers: int = setting(
        4, at_least=0, help="first layers of the network, which all clients share"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DittoConfig(LearnerConfig):
    """Ditto's settings."""

    proximal_weight: float = setting(
        0.1, at_least=0, help="λ, weight of the distance from it"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFedMeConfig(LearnerConfig):
    """pFedMe's settings."""

    proximal_weight: float = setting(
        15.0, at_least=0, help="λ, weight of own models' distance"
    )
    personal_steps: int = setting(5, at_least=1, help="own steps at each local step")
    server_learning_rate: float = setting(
        0.005, above=0, help="η, of the shared copies"
    )
    mix: float = setting(1.0, above=0, help="β, step of the server to the mean copy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerFedAvgConfig(LearnerConfig):
    """Per-FedAvg's settings."""

    adaptation_learning_rate: float = setting(
        0.05, at_least=0, help="α, step size of a client's adaptation"
    )
    second_order: bool = setting(True, help="differentiate through that step")
