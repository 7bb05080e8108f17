"""Settings of the diffusions that are guided by latents, which check themselves."""

import dataclasses

from jaxanon.kernels.setting_checks import at_least, finite
from jaxanon.methods.diffusion_config import DiffusionConfig

AT_RELEASE = ("strength", "guidance", "negative_guidance")
HYPER = ("step_size", "forgetting", "ema", *AT_RELEASE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuidedConfig(DiffusionConfig):
    """What PrivDiffuser and Cloak share; none is published, these are our own.

    Numbers in it are defaults of hyper-parameters, arrays in the state, which a sweep
    may vary without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    latent: int = 64
    """numbers of an attribute's latent, which windows are guided by"""
    pretraining: int = 10
    """epochs in which what reads latents learns; then it rests, and the denoiser
    learns"""
    forgetting: float = 0.2
    """share of windows of which the denoiser is told no latent; of each other it is
    told one, the public or the private"""
    strength: float = 0.8
    """share of the steps that a window is noised by before it is rewritten; 1: all"""
    guidance: float = 1.5
    """weight of the latent to have, the public attribute's; 1 obeys it"""
    negative_guidance: float = 0.5
    """weight of the latent to get away from, the private attributes'"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, latent=self.latent, pretraining=self.pretraining)
        if self.batch < 2:
            raise ValueError(
                f"batch must be >= 2, got {self.batch!r}: windows are compared."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivDiffuserConfig(GuidedConfig):
    """PrivDiffuser's settings, of our own: its abstract gives none.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    classifier_step_size: float = 1e-3
    """step size of Adam, for the classifiers whose features are the latents"""
    disentangling: float = 0.1
    """weight of the bound of what the public latent tells of private classes"""
    law_step_size: float = 3e-3
    """step size of Adam, for the network that the bound is taken from"""
    law_steps: int = 5
    """steps that it takes for each of the classifiers', which it must not lag behind"""
    law_hidden: tuple[int, ...] = (64,)
    """widths of its layers"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, law_hidden=self.law_hidden, law_steps=self.law_steps)
        names = "classifier_step_size", "law_step_size"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        finite(zero=True, disentangling=self.disentangling)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloakConfig(GuidedConfig):
    """Cloak's settings, of our own: its abstract gives none.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    widths: tuple[int, ...] = (32, 64)
    """of the U-Net's levels, between which a window's latent is halved"""
    autoencoder_widths: tuple[int, ...] = (32, 32)
    """of the encoder's convolutions, each of which halves windows; the decoder's,
    reversed"""
    channels: int = 4
    """of the latent windows that are diffused"""
    kl: float = 0.01
    """weight of their KL divergence, beside a mean squared error"""
    autoencoder_step_size: float = 1e-3
    """step size of Adam, for the autoencoder"""
    reader_step_size: float = 1e-3
    """step size of Adam, for what reads the latents to guide by"""
    projection: int = 32
    """numbers that those are projected to where they are compared"""
    temperature: float = 0.5
    """of the contrastive loss; at 0.1, its paper's, readers of two classes were seen to
    learn nothing"""

    def __post_init__(self):
        super().__post_init__()
        names = "autoencoder_widths", "channels", "projection"
        at_least(1, **{name: getattr(self, name) for name in names})
        names = "autoencoder_step_size", "reader_step_size", "temperature"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        finite(zero=True, kl=self.kl)
        if not self.autoencoder_widths:
            raise ValueError(
                "autoencoder_widths must name a layer at least, got (): without one "
                "nothing gets shorter; train privdiffuser."
            )
