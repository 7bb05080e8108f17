"""Learners whose clients each end with a model of their own."""

import dataclasses

from jaxanon import federated
from jaxanon.kernels.setting_checks import at_least, finite
from jaxanon.learners.learner import (
    STEP,
    Learner,
    LearnerConfig,
    network_of,
    personal_learner,
    steps_of,
)


def fedper(spec, config) -> Learner:
    """FedPer; see ``jaxanon.federated.personalised.fed_per``."""
    own = {"own_layers": _own_layers(spec, config)}
    return personal_learner("fedper", spec, config, federated.fed_per, STEP, **own)


def fedrep(spec, config) -> Learner:
    """FedRep; see ``jaxanon.federated.personalised.fed_rep``."""
    own = {"own_layers": _own_layers(spec, config), "own_steps": steps_of(config)}
    return personal_learner("fedrep", spec, config, federated.fed_rep, STEP, **own)


def ditto(spec, config) -> Learner:
    """Ditto; see ``jaxanon.federated.personalised.ditto``."""
    own = {"own_steps": steps_of(config)}
    return personal_learner(
        "ditto", spec, config, federated.ditto, (*STEP, "pull"), **own
    )


def pfedme(spec, config) -> Learner:
    """pFedMe; see ``jaxanon.federated.personalised.p_fed_me``."""
    names = (*STEP, "server_step_size", "pull", "mix")
    own = {"own_steps": config.own_steps, "weighting": "clients"}
    return personal_learner("pfedme", spec, config, federated.p_fed_me, names, **own)


def perfedavg(spec, config) -> Learner:
    """Per-FedAvg; see ``jaxanon.federated.meta_learning.per_fed_avg``."""
    names = (*STEP, "adaptation_step_size")
    more = {"second_order": config.second_order}
    return personal_learner(
        "perfedavg", spec, config, federated.per_fed_avg, names, **more
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

    shared_layers: int = 4
    """so many layers, from the first on, are everybody's; the others stay"""

    def __post_init__(self):
        super().__post_init__()
        at_least(0, shared_layers=self.shared_layers)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DittoConfig(LearnerConfig):
    """Ditto's settings."""

    pull: float = 0.1
    """λ, weight of the squared distance of own models from what is shared"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, pull=self.pull)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFedMeConfig(LearnerConfig):
    """pFedMe's settings."""

    pull: float = 15.0
    """λ, how near own models are held to what is shared"""
    own_steps: int = 5
    """steps of the own model at each local step"""
    server_step_size: float = 0.005
    """η, of the copy of what is shared"""
    mix: float = 1.0
    """β, how much of the mean of the copies the server takes"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, own_steps=self.own_steps)
        finite(zero=True, pull=self.pull)
        finite(zero=False, server_step_size=self.server_step_size, mix=self.mix)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerFedAvgConfig(LearnerConfig):
    """Per-FedAvg's settings."""

    adaptation_step_size: float = 0.05
    """α, of the step by which a client makes the model its own"""
    second_order: bool = True
    """differentiate through that step"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, adaptation_step_size=self.adaptation_step_size)
