"""A conditional GAN, told the class of what it makes."""

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods import gan_players
from jaxanon.methods.gan_config import CGANConfig
from jaxanon.methods.gan_networks import networks
from jaxanon.methods.method import Method


def cgan(spec, **settings) -> Method:
    """Builds a conditional GAN for windows of ``spec``, a baseline of PrivateHub's.

    The critic learns to tell real windows from made ones, both with their public class
    beside them, and the generator to be taken for real. Where there are classes in
    ``hide``, the critic learns that their real windows are made up as well, so that
    the generator gains nothing by windows like those; so does the chapter conceal them.

    ``sample`` makes windows of classes that one names. ``anonymize`` makes each window
    anew, of its class as a classifier of raw windows tells it, or of another class if
    that is to be hidden.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CGANConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, or ``hide`` names no class, or all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> cgan(load("smartwatch").spec, latent=8).config.latent
      8

    References:
      Mirza and Osindero, Conditional generative adversarial nets, 2014; chapter 4 of
      the dissertation in which Atlas is chapter 3, section 4.4.2.
    """
    nets = networks(spec, configured(CGANConfig, settings))
    players = gan_players.judging(nets, concealing=True), gan_players.generating(nets)
    return gan_players.build("cgan", nets, gan_players.HYPER, *players)
