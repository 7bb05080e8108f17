"""Cloak: a diffusion in an autoencoder's latents, guided by contrasts of classes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.core.programs import single
from jaxanon.core.registry import register
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER, SCHEDULES
from jaxanon.methods.common.generator import (
    CLASSIFIERS,
    classify,
    init_classifiers,
    sizes_and_values,
)
from jaxanon.methods.guided_diffusion import guidance
from jaxanon.methods.guided_diffusion.guidance import CloakConfig
from jaxanon.models.autoencoder import sample
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits, Condition, nothing
from jaxanon.models.guided_diffusion import Compressor, Expander
from jaxanon.models.layers import apply
from jaxanon.models.losses import kl_to_standard_normal, supervised_contrastive_loss
from jaxanon.models.unet import UNet, check_halved

COMPRESSOR, EXPANDER, SCALE = "compressor", "expander", "scale"

KEPT = 0.95  # Of the latents' mean and deviation, from one batch to the next.

LEAST_STD = 1e-3  # Of latents that KL made say nothing.

HYPER = (*guidance.HYPER, "autoencoder_learning_rate", "guidance_encoder_learning_rate")

HYPER += ("kl", "temperature")


class CloakNetworks(NamedTuple):
    """What Cloak is made of; windows are standardised, their values as bits."""

    spec: Any
    config: CloakConfig
    bits: AnalogBits
    sizes: dict[str, int]  # number of classes of each attribute
    schedule: kernels.NoiseSchedule
    # Of each attribute; their "logits" are projections, which have no class.
    classifiers: dict[str, WindowClassifier]
    compressor: Compressor
    expander: Expander
    unet: UNet

    def init(self, key):
        """Parameters of all; the latents' scale is 1 until there are data."""
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        time = self.spec.time // 2 ** len(self.config.autoencoder_widths)
        channels = self.config.channels
        latent = jnp.zeros((1, time, channels))
        keys = jax.random.split(key, 3 + len(self.classifiers))
        step, told = jnp.ones(1, jnp.int32), self.nothing(1)
        denoiser = self.unet.init(keys[0], latent, step, told)["params"]
        return {
            DENOISER: denoiser,
            AVERAGE: jax.tree.map(jnp.copy, denoiser),
            CLASSIFIERS: init_classifiers(self.classifiers, keys[3:], window),
            COMPRESSOR: self.compressor.init(keys[1], window)["params"],
            EXPANDER: self.expander.init(keys[2], latent)["params"],
            SCALE: {"mean": jnp.zeros(channels), "std": jnp.ones(channels)},
        }

    def denoise(self, denoiser, x, t, condition):
        """What the U-Net of those parameters predicts, in the shape of ``x``."""
        return apply(self.unet, denoiser, x, t, condition)

    def nothing(self, batch: int) -> Condition:
        """The condition that says nothing."""
        return nothing({}, len(self.sizes) * self.config.latent_dim + 2, batch)

    def compress(self, params, windows):
        """Mean and log-variance of latent windows, as the encoder has them."""
        return apply(self.compressor, params[COMPRESSOR], windows)

    def expand(self, params, z):
        """``float[batch, time, d]``, the windows of latents."""
        return apply(self.expander, params[EXPANDER], z)


def networks(spec, config: CloakConfig) -> CloakNetworks:
    """The networks for windows of ``spec``.

    Raises:
      ValueError: for a public attribute that is a number, a window that cannot be
        halved so often, or categories that name no channel.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    widths, inner = tuple(config.autoencoder_widths), tuple(config.widths)
    check_halved(spec.time, len(inner), len(widths))
    bits = AnalogBits(values, tuple(spec.mean), tuple(spec.std))
    reader = lambda: WindowClassifier(config.projection, features=config.latent_dim)
    return CloakNetworks(
        spec=spec,
        config=config,
        bits=bits,
        sizes=sizes,
        schedule=SCHEDULES[config.schedule](config.num_train_timesteps),
        classifiers={name: reader() for name in sizes},
        compressor=Compressor(widths, config.channels),
        expander=Expander(widths[::-1], bits.channels),
        unet=UNet((), inner, config.blocks, config.heads, config.dtype),
    )


@single
@register("cloak", config=CloakConfig)
def cloak(spec, config) -> Method:
    """Builds Cloak for windows of ``spec``.

    First an autoencoder learns latent windows, shorter than those it is given, with a
    small KL divergence. Beside it, one network for each attribute learns features by
    contrast: near those of other windows of the class, far from all the rest. A public
    class's windows are of every private class, and are drawn together: nothing rewards
    public features for what tells the private one. Then, after ``pretraining`` epochs,
    all of these rest and a U-Net learns to take noise off latent windows, told
    the public features, the private ones or neither.

    ``anonymize`` is PrivDiffuser's, in latent windows: noised part of the way
    (``strength``), taken back towards the public features and away from the private
    ones (``guidance_scale``, ``negative_guidance_scale``, which may be chosen after
    training), and decoded. With the default widths a step of the sampler sees a quarter
    of a window's samples. No label is asked for, and nothing is promised.

    Of the published method this keeps what its abstract tells: a latent diffusion,
    contrastive guidance, a balance that the user sets. Losses, widths, schedule and
    phases are ours: the abstract does not give them.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CloakConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or windows cannot be halved so often.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = cloak(load("smartwatch").spec, channels=8)
      >>> method.config.channels, method.config.widths
      (8, (32, 64))

    References:
      Cloak, arXiv 2512.12086, its abstract; Khosla et al., Supervised contrastive
      learning, NeurIPS 2020; Rombach et al., CVPR 2022, for latent diffusion.
    """
    nets = networks(spec, config)
    return guidance.guided(
        "cloak",
        nets,
        HYPER,
        lambda when_fn: (embedding(nets, when_fn), contrasting(nets, when_fn)),
        lambda params, x: see(nets, params, x),
        lambda params, z: nets.expand(params, unscaled(params, z)),
    )


def embedding(nets: CloakNetworks, when_fn) -> Component:
    """Both halves of the autoencoder, by what is lost between them and the KL."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        mean, log_variance = nets.compress(params, batch.windows)
        z = sample(mean, log_variance, jax.random.normal(key, mean.shape))
        error = jnp.mean((batch.windows - nets.expand(params, z)) ** 2)
        kl = jnp.mean(kl_to_standard_normal(mean, log_variance)) / mean.shape[-1]
        now = {"mean": jnp.mean(mean, axis=(0, 1)), "std": jnp.std(mean, axis=(0, 1))}
        mix = lambda old, new: KEPT * old + (1 - KEPT) * new
        kept = {SCALE: jax.tree.map(mix, params[SCALE], now)}
        return error + hyper["kl"] * kl, ({"reconstruction": error, "kl": kl}, kept)

    groups = COMPRESSOR, EXPANDER
    return Component(
        groups, loss_fn, when_fn=when_fn, learning_rate="autoencoder_learning_rate"
    )


def contrasting(nets: CloakNetworks, when_fn) -> Component:
    """What reads each attribute, by the contrast of its classes.

    Without dropout: noise in few directions kept readers of two classes from learning.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        total, info = jnp.zeros(()), {}
        for name in nets.sizes:
            projected, _ = classify(nets, params, name, batch.windows)
            contrast = projected, batch.labels[name], hyper["temperature"]
            info[f"{name} contrast"] = supervised_contrastive_loss(*contrast)
            total = total + info[f"{name} contrast"]
        return total, (info, {})

    return Component(
        (CLASSIFIERS,),
        loss_fn,
        when_fn=when_fn,
        learning_rate="guidance_encoder_learning_rate",
    )


def see(nets: CloakNetworks, params, x):
    """Scaled latent windows and latents of both kinds, of windows."""
    mean, std = (params[SCALE][name][None, None] for name in ("mean", "std"))
    z, _ = nets.compress(params, x)
    return (z - mean) / jnp.maximum(std, LEAST_STD), *guidance.latents(nets, params, x)


def unscaled(params, z):
    """Latent windows as the decoder takes them, of those that are diffused."""
    mean, std = (params[SCALE][name][None, None] for name in ("mean", "std"))
    return z * jnp.maximum(std, LEAST_STD) + mean
