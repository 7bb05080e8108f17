"""Federated learners: clients that learn to predict together, each its own way."""

from typing import Any

from jaxanon.core import registry
from jaxanon.core.method import Method
from jaxanon.learners import atlas, averaging, clustered, personalised, private
from jaxanon.learners.atlas import AtlasConfig
from jaxanon.learners.averaging import FedProxConfig, ScaffoldConfig
from jaxanon.learners.clustered import (
    ClusteredConfig,
    ClusterFLConfig,
    FedDLConfig,
    FedMaskConfig,
)
from jaxanon.learners.learner import LearnerConfig
from jaxanon.learners.personalised import (
    DittoConfig,
    OwnLayersConfig,
    PerFedAvgConfig,
    PFedMeConfig,
)
from jaxanon.learners.private import DPFedAvgConfig, LdpFlConfig, PrivateConfig

_BUILDERS = {
    "atlas": (atlas.atlas, AtlasConfig),
    "centralized": (averaging.centralized, LearnerConfig),
    "centralized_clustering": (clustered.centralized_clustering, ClusteredConfig),
    "clusterfl": (clustered.clusterfl, ClusterFLConfig),
    "ditto": (personalised.ditto, DittoConfig),
    "dp_fedavg": (private.dp_fedavg, DPFedAvgConfig),
    "fedavg": (averaging.fedavg, LearnerConfig),
    "feddl": (clustered.feddl, FedDLConfig),
    "fedmask": (clustered.fedmask, FedMaskConfig),
    "fedper": (personalised.fedper, OwnLayersConfig),
    "fedprox": (averaging.fedprox, FedProxConfig),
    "fedrep": (personalised.fedrep, OwnLayersConfig),
    "fedsgd_ldp": (private.fedsgd_ldp, PrivateConfig),
    "ldp_fl": (private.ldp_fl, LdpFlConfig),
    "localized": (averaging.localized, LearnerConfig),
    "per_fedavg": (personalised.per_fedavg, PerFedAvgConfig),
    "pfedme": (personalised.pfedme, PFedMeConfig),
    "scaffold": (averaging.scaffold, ScaffoldConfig),
}

_RECIPES = {
    registry.RECOMMENDED: registry.Recipe("The defaults, for any data."),
    "paper": registry.Recipe(
        "The defaults: the paper's update rule; its settings depend on the data."
    ),
    "fast": registry.Recipe("A first look, which predicts less well.", epochs=5),
}
_OWN_RECIPES = {
    "clusterfl": {
        "official": registry.Recipe(
            "The authors' program: its sign of the clusters' term, and the published "
            "penalty, at which the dual variables may oscillate.",
            {"variant": "official", "rho": 0.002},
        )
    },
    "ldp_fl": {
        "paper": registry.Recipe(
            "The paper's budget for each single weight, which guarantees nothing for "
            "clients, and an unclipped mean.",
            {"privacy_unit": "weight", "cut_mean": False},
        )
    },
}
for _name, (_builder, _config) in _BUILDERS.items():
    registry.register(
        _name,
        _builder,
        config=_config,
        kind="learner",
        recipes=_RECIPES | _OWN_RECIPES.get(_name, {}),
    )
NAMES = tuple(_BUILDERS)

__all__ = ["NAMES", "build", "config_class"]


def config_class(name: str) -> Any:
    """The frozen dataclass of a learner's settings.

    Raises:
      ValueError: if there is no such learner.

    Example:
      >>> config_class("fedavg").__name__
      'LearnerConfig'
    """
    return registry.entry(name, "learner").config


def build(name: str, spec, **settings) -> Method:
    """The learner of that name for windows of ``spec``.

    Every subject of the spec is a client, and predicts the public attribute: its class,
    or the number where it is a target.

    Args:
      name: one of ``NAMES``.
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``config_class(name)``.

    Returns:
      ``Method`` with the capability ``predict``.

    Raises:
      ValueError: if there is no such learner, or a setting is out of its range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> build("fedper", spec, filters=(4,), shared_layers=1).name
      'fedper'
    """
    registry.entry(name, "learner")
    return registry.build(name, spec, **settings)
