"""Settings of TimeGAN, which check themselves."""

import dataclasses

from jaxanon.kernels.setting_checks import at_least, finite, of_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGANConfig:
    """TimeGAN's settings, its authors' where they have them.

    Theirs are 50,000 steps of each phase. Step sizes and weights are defaults here and
    arrays in the state, which a sweep may vary without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    categories: tuple[str, ...] = ()
    """channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")"""
    hide: tuple[str, ...] = ()
    """public classes to conceal, by PrivateHub's fine-tuning"""
    step_size: float = 1e-3
    """step size of Adam, for all of its networks"""
    classifier_step_size: float = 1e-3
    """step size of Adam, for the classifiers of raw windows"""
    batch: int = 128
    """windows per step; a joint round takes five steps on three batches"""
    features: tuple[int, ...] = (24, 24, 24)
    """widths of the recurrent layers; the supervisor has one layer less"""
    embedding: int = 50
    """epochs in which windows learn to be embedded, and recovered"""
    supervising: int = 50
    """epochs in which steps learn to foresee the next"""
    joint: int = 100
    """epochs in which all learn, before fine-tuning, if there are classes to hide; else
    all that are left"""
    gamma: float = 1.0
    """weight of what the critic says of windows before the supervisor saw them"""
    fine_step_size: float = 1e-4
    """step size of Adam in fine-tuning"""
    threshold: float = 0.5
    """G: what is made counts if the classifier gives its class more than this"""
    margin: float = 0.2
    """of the triplet loss"""
    replay: float = 1.0
    """weight of the joint phase's loss in fine-tuning"""

    def __post_init__(self):
        of_kinds(self)
        names = "batch", "features", "embedding", "supervising", "joint"
        at_least(1, **{name: getattr(self, name) for name in names})
        names = "step_size", "classifier_step_size", "fine_step_size"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        names = "gamma", "threshold", "margin", "replay"
        finite(zero=True, **{name: getattr(self, name) for name in names})
        if self.threshold >= 1:
            raise ValueError(f"threshold must be < 1, got {self.threshold!r}.")
        if len(self.features) < 2:
            raise ValueError(
                f"features must name two layers at least, got {self.features!r}: the "
                "supervisor has one less."
            )
