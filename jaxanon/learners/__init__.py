"""Federated learners: methods whose clients train a model to predict an attribute."""

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
    PerFedAvgConfig,
    PersonalLayersConfig,
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
    "fedper": (personalised.fedper, PersonalLayersConfig),
    "fedprox": (averaging.fedprox, FedProxConfig),
    "fedrep": (personalised.fedrep, PersonalLayersConfig),
    "fedsgd_ldp": (private.fedsgd_ldp, PrivateConfig),
    "ldp_fl": (private.ldp_fl, LdpFlConfig),
    "localized": (averaging.localized, LearnerConfig),
    "per_fedavg": (personalised.per_fedavg, PerFedAvgConfig),
    "pfedme": (personalised.pfedme, PFedMeConfig),
    "scaffold": (averaging.scaffold, ScaffoldConfig),
}

_RECIPES = {
    registry.RECOMMENDED: registry.Recipe("Default settings for any data set."),
    "paper": registry.Recipe(
        "Default settings with the paper's update rule; settings depend on the data."
    ),
    "fast": registry.Recipe("Quick first run with lower accuracy.", epochs=5),
}
_EXTRA_RECIPES = {
    "clusterfl": {
        "official": registry.Recipe(
            "The authors' program: its sign of the cluster term and the published "
            "penalty, with which the dual variables may oscillate.",
            {"variant": "official", "rho": 0.002},
        )
    },
    "ldp_fl": {
        "paper": registry.Recipe(
            "The paper's budget per weight, which gives clients no guarantee, and "
            "an unclipped mean.",
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
        recipes=_RECIPES | _EXTRA_RECIPES.get(_name, {}),
    )
NAMES = tuple(_BUILDERS)

__all__ = ["NAMES", "build", "config_class"]


def config_class(name: str) -> Any:
    """Returns the config dataclass of a learner.

    Raises:
      ValueError: if the name is unknown.

    Example:
      >>> config_class("fedavg").__name__
      'LearnerConfig'
    """
    return registry.entry(name, "learner").config


def build(name: str, spec, **settings) -> Method:
    """Builds the learner with this name for windows of ``spec``.

    Every subject of the spec is a client. Clients predict the public attribute: its
    class, or its value if it is a target.

    Args:
      name: one of ``NAMES``.
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``config_class(name)``.

    Returns:
      ``Method`` with the capability ``predict``.

    Raises:
      ValueError: if the name is unknown, or a setting is out of range.
      TypeError: if a setting is unknown.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> build("fedper", spec, filters=(4,), shared_layers=1).name
      'fedper'
    """
    registry.entry(name, "learner")
    return registry.build(name, spec, **settings)
