"""Federated learners: clients that learn to predict together, each its own way."""

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import configured
from jaxanon.learners import atlas, averaging, clustered, personalised, private
from jaxanon.learners.atlas import AtlasConfig
from jaxanon.learners.averaging import FedProxConfig, ScaffoldConfig
from jaxanon.learners.clustered import (
    ClusteredConfig,
    ClusterFLConfig,
    FedDLConfig,
    FedMaskConfig,
)
from jaxanon.learners.learner import Learner, LearnerConfig
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
    "dpfedavg": (private.dpfedavg, DPFedAvgConfig),
    "fedavg": (averaging.fedavg, LearnerConfig),
    "feddl": (clustered.feddl, FedDLConfig),
    "fedmask": (clustered.fedmask, FedMaskConfig),
    "fedper": (personalised.fedper, OwnLayersConfig),
    "fedprox": (averaging.fedprox, FedProxConfig),
    "fedrep": (personalised.fedrep, OwnLayersConfig),
    "fedsgd_ldp": (private.fedsgd_ldp, PrivateConfig),
    "ldpfl": (private.ldpfl, LdpFlConfig),
    "localized": (averaging.localized, LearnerConfig),
    "perfedavg": (personalised.perfedavg, PerFedAvgConfig),
    "pfedme": (personalised.pfedme, PFedMeConfig),
    "scaffold": (averaging.scaffold, ScaffoldConfig),
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
