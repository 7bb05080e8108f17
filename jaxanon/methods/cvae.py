"""Conditional variational autoencoders of one public class each."""

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
from jaxanon.models.rewriter_losses import FORMS

PUBLISHED = {"mobi_act": (5, (512, 512, 256, 128)), "": (10, (512, 512, 256, 128))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CVAEConfig(AutoencoderConfig):
    """Settings of the conditional autoencoders; the released ones for MotionSense."""

    beta: float = 0.1
    """weight of the KL divergence, the released c; MobiAct: 0.5"""
    form: str = "plain"
    """loss in nats per window, or as scaled by the released programs"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, beta=self.beta)
        one_of("form", self.form, FORMS)


def cvae(spec, **settings) -> Method:
    """Builds conditional variational autoencoders for windows of ``spec``.

    ObscureNet without an adversary: the decoder of each public class's autoencoder is
    told the private classes, and nothing but the KL divergence keeps them out of the
    latent.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CVAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> cvae(load("smartwatch").spec, latent=5).config.latent
      5

    References:
      A baseline of Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the
      released programs). The loss is minus eq. 1 of their Anonymizing Sensor Data on
      the Edge, 2021, section 4.1, with ``beta`` before its KL divergence as there, and
      a decoder that is told the private classes.
    """
    config = sized(configured(CVAEConfig, settings), spec, PUBLISHED)
    nets = networks(spec, config, told=True)
    weights = lambda hyper: (hyper["beta"], 0.0)
    player = model_player(nets, ("encoder", "decoder"), weights, config.form)
    return autoencoders(
        "cvae", spec, config, Design(nets, (player,), {"beta": config.beta})
    )
