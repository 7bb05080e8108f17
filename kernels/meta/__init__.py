"""Meta-gradients (MAML) over a cohort of clients."""

from jaxanon.kernels.meta.api import Objective, Phase, adapt, meta_gradient

__all__ = ["Objective", "Phase", "adapt", "meta_gradient"]
