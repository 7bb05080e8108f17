"""Settings of LDP-FL and DP-FedAvg."""

import dataclasses

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import finite
from jaxanon.learners.config import BudgetConfig

CLAIMS = ("client", "weight")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LdpFlConfig(BudgetConfig):
    """LDP-FL's settings."""

    epsilon: float = 2.0
    """ε of what is claimed, against whoever sees what a client sends; 0: no noise, no
    guarantee"""
    claim: str = "client"
    """client: epsilon is of all weights in all rounds together, which leaves nothing of
    a network but noise; weight: of each of them, as published, and no guarantee"""
    reach: float = 3.0
    """range of a layer's weights around 0, times one over the root of its inputs"""
    cut_mean: bool = True
    """clip the mean to that range, which the paper does not"""

    def __post_init__(self):
        super().__post_init__()
        one_of("claim", self.claim, CLAIMS)
        finite(zero=False, reach=self.reach)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPFedAvgConfig(BudgetConfig):
    """Settings of DP-FedAvg with clip norms that adapt.

    ``cohort`` is the probability with which a client joins a round, on its own.
    """

    epsilon: float = 2.0
    """ε of a client with all its windows, against all but the server; 0: no noise, no
    guarantee"""
    max_norm: float = 1.0
    """clip norm of what a client moves by, as training begins"""
    quantile: float = 0.5
    """share of the clients that the clip norm should leave whole"""
    norm_step_size: float = 0.2
    """how fast the clip norm follows"""
    server_step_size: float = 1.0
    """how much of the mean move the server takes"""
    count_share: float = 0.05
    """share of the budget that counting those within the clip norm takes"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=False, max_norm=self.max_norm)
        finite(zero=False, server_step_size=self.server_step_size)
        finite(zero=True, norm_step_size=self.norm_step_size)
        for name in ("quantile", "count_share"):
            value = getattr(self, name)
            finite(zero=False, **{name: value})
            if value >= 1:
                raise ValueError(f"{name} must be in (0, 1), got {value!r}.")
