"""One variational autoencoder for all public classes, moved between class means."""

import dataclasses

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import configured, finite
from jaxanon.methods.autoencoder_config import AutoencoderConfig, sized
from jaxanon.methods.autoencoders import (
    Design,
    autoencoders,
    model_player,
    networks,
)
from jaxanon.methods.method import Method
from jaxanon.models.rewriter_losses import FORMS, VALUES

PUBLISHED = {
    "motion_sense": (10, (4096, 2048, 1024, 512, 256, 128)),
    "mobi_act": (5, (2048, 1024, 512, 256, 128)),
    "": (10, (2048, 1024, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneralVAEConfig(AutoencoderConfig):
    """Settings of the general autoencoder; the released program's for MobiAct."""

    batch: int = 128
    """windows per round"""
    beta: float = 0.5
    """weight of the KL divergence; released: MotionSense 0.1 of form=keras"""
    form: str = "plain"
    """loss in nats per window; released: over 75; keras: mean error + 2 beta KL, the
    program for MotionSense, whose KL weighs 512 times as much"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, beta=self.beta)
        one_of("form", self.form, (*FORMS, "keras"))


def general_vae(spec, **settings) -> Method:
    """Builds the general autoencoder for windows of ``spec``.

    One variational autoencoder learns the windows of all public classes. A window is
    anonymized by moving a sample of its latent from the mean of its predicted public
    and private class to the mean of the same public and another private class, or any.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``GeneralVAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> general_vae(load("smartwatch").spec).config.hidden
      (2048, 1024, 512, 256, 128)

    References:
      Hajihassani, Ardakanian, Khazaei, Latent Representation Learning and Manipulation
      for Privacy-Preserving Sensor Data Analytics, SenSys-ML 2020: [14] of their
      Anonymizing Sensor Data on the Edge, 2021, whose section 4.1 and eq. 1 give the
      loss, section 5.3 and Algorithm 1 the move between means, and sections 5.2 and
      6.3.1 compare the two.
    """
    config = sized(configured(GeneralVAEConfig, settings), spec, PUBLISHED)
    nets = networks(spec, config)
    # Mean error + 2 beta KL is 256 error + 512 beta KL, over 256, which Adam ignores.
    times = VALUES if config.form == "keras" else 1
    form = "plain" if config.form == "keras" else config.form
    weights = lambda hyper: (times * hyper["beta"], 0.0)
    design = Design(
        nets,
        (model_player(nets, ("encoder", "decoder"), weights, form),),
        {"beta": config.beta},
        by_class=False,
    )
    return autoencoders("general_vae", spec, config, design)
