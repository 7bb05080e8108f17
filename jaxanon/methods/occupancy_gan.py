"""Occupancy-GAN: two classifiers say what a generator should show, and what not."""

import functools

import jax
import jax.numpy as jnp

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods import gan_players, hub_sampling
from jaxanon.methods.gan_config import OccupancyGANConfig
from jaxanon.methods.gan_networks import Networks, networks
from jaxanon.methods.hub_networks import classify
from jaxanon.methods.method import Method
from jaxanon.models.confusion import weighted_cross_entropy


def occupancy_gan(spec, **settings) -> Method:
    """Builds Occupancy-GAN for windows of ``spec``, a baseline of PrivateHub's.

    A conditional GAN whose generator also learns by two losses of a classifier of raw
    windows: that of windows made of classes to show, which it lowers, and that of
    windows made of classes in ``hide``, which it raises. The latter has no bound in the
    published form (``privacy_loss="paper"``), so that it soon outweighs all else; here
    each such window is to look as much of one class as of any other.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``OccupancyGANConfig``.

    Returns:
      ``Method``, with ``sample``; the rest is as in ``cgan``.

    Raises:
      ValueError: if a setting is out of range, or ``hide`` names no class, or all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> occupancy_gan(spec, hide=(spec.classes[spec.public][0],)).name
      'occupancy_gan'

    References:
      Chapter 4 of the dissertation in which Atlas is chapter 3, section 4.4.2, and its
      reference [92], for the two classifiers.
    """
    config = configured(OccupancyGANConfig, settings)
    nets = networks(spec, config)
    more_fn = functools.partial(told_by_classifiers, nets, form=config.privacy_loss)
    hyper = (*gan_players.HYPER, "utility", "privacy")
    players = (
        gan_players.judging(nets, concealing=False),
        gan_players.generating(nets, more_fn),
    )
    return gan_players.build("occupancy_gan", nets, hyper, *players)


def told_by_classifiers(nets: Networks, params, windows, labels, hyper, form):
    """What the two classifiers add to a generator's loss, and both parts of it.

    Args:
      nets: ``Networks``.
      params: with the classifiers'.
      windows: ``float[batch, time, d]``, made.
      labels: ``int32[batch]``, of which public classes they are.
      hyper: with ``utility`` and ``privacy``.
      form: of ``PRIVACY_LOSSES``.

    Returns:
      ``float[]``, and a dict of two.
    """
    logits, _ = classify(nets, params, nets.spec.public, windows)
    secret = hub_sampling.is_hidden(nets)[labels].astype(jnp.float32)
    shown = weighted_cross_entropy(logits, labels, 1 - secret)
    chances = jax.nn.log_softmax(logits)
    if form == "paper":
        # Lowered as it falls: the classifier's loss grows.
        each = jnp.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
    else:
        each = -jnp.mean(chances, axis=-1)
    concealed = jnp.sum(secret * each) / jnp.maximum(jnp.sum(secret), 1)
    info = {"shown": shown, "concealed": concealed}
    return hyper["utility"] * shown + hyper["privacy"] * concealed, info
