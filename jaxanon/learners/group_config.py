"""Settings of learners that group clients."""

import dataclasses

from jaxanon.federated.cluster_fl import FORMS
from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite
from jaxanon.learners.config import LearnerConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterFLConfig(LearnerConfig):
    """ClusterFL's settings."""

    clusters: int = 3
    """clusters of clients, axes along which their models' outputs differ"""
    alpha: float = 1e-3
    """α, weight of all models' squares"""
    beta: float = 5e-4
    """β, how much of it being near one's cluster takes back"""
    rho: float = 4e-3
    """ρ, of the augmented Lagrangian; above 4 β, or duals swing for ever (published:
    0.002, which is 4 β)"""
    temperature: float = 6.0
    """what logits are divided by before they are compared"""
    every: int = 3
    """rounds after which clusters are found anew"""
    probe: int = 64
    """made-up windows, of noise, on which models are compared"""
    form: str = "corrected"
    """corrected: towards one's cluster; released: with the published program's sign and
    without the others' part"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, clusters=self.clusters, every=self.every, probe=self.probe)
        finite(zero=True, alpha=self.alpha, beta=self.beta)
        finite(zero=False, rho=self.rho, temperature=self.temperature)
        one_of("form", self.form, FORMS)
        if self.rho <= 2 * self.beta:
            raise ValueError(
                f"rho must be above 2 beta, {2 * self.beta:g}, got {self.rho!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedDLConfig(LearnerConfig):
    """FedDL's settings."""

    similarity: float = 0.4
    """cosine, in [-1, 1], from which on clients' layers are merged"""

    def __post_init__(self):
        super().__post_init__()
        if not -1 <= self.similarity <= 1:
            raise ValueError(f"similarity must be in [-1, 1], got {self.similarity!r}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedMaskConfig(LearnerConfig):
    """FedMask's settings; the network's weights are random, and stay so."""

    step_size: float = 200.0
    """step size of the masks' descent"""
    masked_layers: int | None = None
    """so many layers, the last ones, have masks, and the others are used as they are;
    default: all"""
    certainty: float = 0.6
    """sigmoid of a mask on which all clients agree, and of all as training begins"""

    def __post_init__(self):
        super().__post_init__()
        if self.masked_layers is not None:
            at_least(1, masked_layers=self.masked_layers)
        if not 0.5 < self.certainty < 1:
            raise ValueError(f"certainty must be in (0.5, 1), got {self.certainty!r}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusteredConfig(LearnerConfig):
    """Settings of centralized clustering; ``cohort`` has no part in it."""

    clusters: int = 3
    """groups of clients, a model for each"""
    by: str = "updates"
    """updates: groups by directions of clients' gradients; windows: by means and
    deviations of their channels"""
    alone: int = 5
    """rounds of one model for all, before groups are found"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, clusters=self.clusters)
        at_least(0, alone=self.alone)
        one_of("by", self.by, ("updates", "windows"))
