"""Settings of the adversarial generators that PrivateHub is compared with."""

import dataclasses

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite, of_kinds

PRIVACY_LOSSES = ("confusion", "paper")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CGANConfig:
    """A conditional GAN's settings; none is published, these are our own.

    Step sizes are defaults here and arrays in the state, which a sweep may vary without
    compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    categories: tuple[str, ...] = ()
    """channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")"""
    hide: tuple[str, ...] = ()
    """public classes to conceal: real windows of them count as made up"""
    step_size: float = 2e-4
    """step size of Adam, for the generator"""
    critic_step_size: float = 2e-4
    """step size of Adam, for the critic"""
    classifier_step_size: float = 1e-3
    """step size of Adam, for the classifiers of raw windows"""
    batch: int = 64
    """windows per step"""
    latent: int = 32
    """numbers of noise that a window is made of"""
    widths: tuple[int, ...] = (128, 64)
    """of the generator's blocks, each of which doubles time; the critic's, reversed"""

    def __post_init__(self):
        of_kinds(self)
        at_least(1, batch=self.batch, latent=self.latent, widths=self.widths)
        names = "step_size", "critic_step_size", "classifier_step_size"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        if not self.widths:
            raise ValueError("widths must name a block at least, got ().")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OccupancyGANConfig(CGANConfig):
    """Occupancy-GAN's settings: those of a conditional GAN, and weights of losses.

    Raises:
      ValueError: for a setting out of its range, or nothing to hide.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    utility: float = 1.0
    """weight of the classifier of what is to be shown"""
    privacy: float = 1.0
    """weight of the classifier of what is to be concealed"""
    privacy_loss: str = "confusion"
    """confusion: windows of classes to hide lie as near to each other class; paper:
    the classifier's loss grows, without a bound"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, utility=self.utility, privacy=self.privacy)
        one_of("privacy_loss", self.privacy_loss, PRIVACY_LOSSES)
        if not self.hide:
            raise ValueError(
                "hide must name a class at least: without one there is nothing for "
                "occupancy_gan's second classifier; cgan conceals nothing."
            )
