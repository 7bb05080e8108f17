"""Conditional autoencoders of one public class each, with nothing random about them."""

import dataclasses

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods.autoencoder_config import AutoencoderConfig, sized
from jaxanon.methods.autoencoders import (
    Design,
    autoencoders,
    model_player,
    networks,
)
from jaxanon.methods.cvae import PUBLISHED
from jaxanon.methods.method import Method


@dataclasses.dataclass(frozen=True, kw_only=True)
class CAEConfig(AutoencoderConfig):
    """Settings of the conditional autoencoders, which have no weights to choose."""


def cae(spec, **settings) -> Method:
    """Builds conditional autoencoders for windows of ``spec``.

    The decoder of each public class's autoencoder is told the private classes; the
    latent is a code that only the squared error shapes.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> cae(load("smartwatch").spec).config.latent
      10

    References:
      A baseline of Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the
      released programs). The loss is what ``cvae``'s is without the KL divergence.
    """
    config = sized(configured(CAEConfig, settings), spec, PUBLISHED)
    nets = networks(spec, config, told=True, random=False)
    weights = lambda hyper: (0.0, 0.0)
    player = model_player(nets, ("encoder", "decoder"), weights, "plain")
    return autoencoders("cae", spec, config, Design(nets, (player,), {}))
