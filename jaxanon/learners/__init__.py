"""Federated learners: clients that learn to predict together, each its own way."""

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import configured
from jaxanon.learners import builders, group_builders, private_builders
from jaxanon.learners.config import (
    AtlasConfig,
    DittoConfig,
    FedProxConfig,
    LearnerConfig,
    OwnLayersConfig,
    PerFedAvgConfig,
    PFedMeConfig,
    PrivateConfig,
    ScaffoldConfig,
)
from jaxanon.learners.group_config import (
    ClusteredConfig,
    ClusterFLConfig,
    FedDLConfig,
    FedMaskConfig,
)
from jaxanon.learners.learner import Learner
from jaxanon.learners.private_config import DPFedAvgConfig, LdpFlConfig

_BUILDERS = {
    "atlas": (builders.atlas, AtlasConfig),
    "centralized": (builders.centralized, LearnerConfig),
    "centralized_clustering": (group_builders.centralized_clustering, ClusteredConfig),
    "clusterfl": (group_builders.clusterfl, ClusterFLConfig),
    "ditto": (builders.ditto, DittoConfig),
    "dpfedavg": (private_builders.dpfedavg, DPFedAvgConfig),
    "fedavg": (builders.fedavg, LearnerConfig),
    "feddl": (group_builders.feddl, FedDLConfig),
    "fedmask": (group_builders.fedmask, FedMaskConfig),
    "fedper": (builders.fedper, OwnLayersConfig),
    "fedprox": (builders.fedprox, FedProxConfig),
    "fedrep": (builders.fedrep, OwnLayersConfig),
    "fedsgd_ldp": (builders.fedsgd_ldp, PrivateConfig),
    "ldpfl": (private_builders.ldpfl, LdpFlConfig),
    "localized": (builders.localized, LearnerConfig),
    "perfedavg": (builders.perfedavg, PerFedAvgConfig),
    "pfedme": (builders.pfedme, PFedMeConfig),
    "scaffold": (builders.scaffold, ScaffoldConfig),
}
NAMES = tuple(_BUILDERS)

__all__ = ["NAMES", "Learner", "build", "config_class"]


def config_class(name: str) -> type:
    """The frozen dataclass of a learner's settings.

    Raises:
      ValueError: if there is no such learner.

    Example:
      >>> config_class("fedavg").__name__
      'LearnerConfig'
    """
    return _entry(name)[1]


def build(name: str, spec, **settings) -> Learner:
    """The learner of that name for windows of ``spec``.

    Every subject of the spec is a client, and predicts the public attribute: its class,
    or the number where it is a target.

    Args:
      name: one of ``NAMES``.
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``config_class(name)``.

    Returns:
      ``Learner``, which ``jaxanon.train`` trains as it does a method.

    Raises:
      ValueError: if there is no such learner, or a setting is out of its range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> build("fedper", spec, filters=(4,), shared_layers=1).name
      'fedper'
    """
    builder, config = _entry(name)
    return builder(spec, configured(config, settings))


def _entry(name):
    one_of("learner", name, sorted(NAMES))
    return _BUILDERS[name]
