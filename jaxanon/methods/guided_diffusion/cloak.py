"""Cloak: diffusion in the latent space of an autoencoder, with contrastive guidance."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.core.programs import single
from jaxanon.core.registry import register
from jaxanon.methods.common import recipes
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
from jaxanon.models.conditions import AnalogBits, Condition, null_condition
from jaxanon.models.guided_diffusion import Compressor, Expander
from jaxanon.models.layers import apply
from jaxanon.models.losses import kl_to_standard_normal, supervised_contrastive_loss
from jaxanon.models.unet import UNet, check_halved

COMPRESSOR, EXPANDER, SCALE = "compressor", "expander", "scale"

SCALE_DECAY = 0.95  # Decay per batch of the running mean and std of latents.

LEAST_STD = 1e-3  # Minimum std; the KL term can collapse a latent channel.

HYPER = (*guidance.HYPER, "autoencoder_learning_rate", "guidance_encoder_learning_rate")

HYPER += ("kl", "temperature")


class CloakNetworks(NamedTuple):
    """Networks of Cloak, for standardised windows encoded as bits."""

    spec: Any
    config: CloakConfig
    bits: AnalogBits
    sizes: dict[str, int]  # number of classes of each attribute
    schedule: kernels.NoiseSchedule
    # One encoder per attribute; its "logits" are the projections that are compared.
    classifiers: dict[str, WindowClassifier]
    compressor: Compressor
    expander: Expander
    unet: UNet

    def init(self, key):
        """Returns all parameters; the latent scale is 1 until the first round."""
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        time = self.spec.time // 2 ** len(self.config.autoencoder_widths)
        channels = self.config.channels
        latent = jnp.zeros((1, time, channels))
        keys = jax.random.split(key, 3 + len(self.classifiers))
        step, condition = jnp.ones(1, jnp.int32), self.nothing(1)
        denoiser = self.unet.init(keys[0], latent, step, condition)["params"]
        return {
            DENOISER: denoiser,
            AVERAGE: jax.tree.map(jnp.copy, denoiser),
            CLASSIFIERS: init_classifiers(self.classifiers, keys[3:], window),
            COMPRESSOR: self.compressor.init(keys[1], window)["params"],
            EXPANDER: self.expander.init(keys[2], latent)["params"],
            SCALE: {"mean": jnp.zeros(channels), "std": jnp.ones(channels)},
        }

    def denoise(self, denoiser, x, t, condition):
        """Returns the output of the U-Net, in the shape of ``x``."""
        return apply(self.unet, denoiser, x, t, condition)

    def nothing(self, batch: int) -> Condition:
        """Returns the null condition."""
        return null_condition({}, len(self.sizes) * self.config.latent_dim + 2, batch)

    def compress(self, params, windows):
        """Returns the encoder's mean and log-variance of latent windows."""
        return apply(self.compressor, params[COMPRESSOR], windows)

    def expand(self, params, z):
        """Decodes latent windows to ``float[batch, time, d]``."""
        return apply(self.expander, params[EXPANDER], z)


def networks(spec, config: CloakConfig) -> CloakNetworks:
    """Returns the networks for windows of ``spec``.

    Raises:
      ValueError: if the public attribute is a number, the window length cannot be
        halved often enough, or categories name no channel.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    widths, inner = tuple(config.autoencoder_widths), tuple(config.widths)
    check_halved(spec.time, len(inner), len(widths))
    bits = AnalogBits(values, tuple(spec.mean), tuple(spec.std))
    encoder = lambda: WindowClassifier(config.projection, features=config.latent_dim)
    return CloakNetworks(
        spec=spec,
        config=config,
        bits=bits,
        sizes=sizes,
        schedule=SCHEDULES[config.schedule](config.num_train_timesteps),
        classifiers={name: encoder() for name in sizes},
        compressor=Compressor(widths, config.channels),
        expander=Expander(widths[::-1], bits.channels),
        unet=UNet((), inner, config.blocks, config.heads, config.dtype),
    )


@single
@register("cloak", config=CloakConfig, recipes=recipes.CLOAK)
def cloak(spec, config) -> Method:
    """Builds Cloak for windows of ``spec``.

    In the first ``pretraining`` epochs, an autoencoder learns shorter latent windows,
    with a small KL term. At the same time, one encoder per attribute learns features
    with a contrastive loss, which brings features of the same class together and
    separates those of different classes. Windows of one public class have all private
    classes, so the loss does not reward public features for private information. These
    networks are then frozen, and a U-Net learns to denoise latent windows, conditioned
    on the public features, the private features or neither.

    ``anonymize`` works as in PrivDiffuser, on latent windows. It adds part of the noise
    (``strength``) and denoises towards the public features and away from the private
    ones (``guidance_scale``, ``negative_guidance_scale``). It then decodes the result.
    These three settings can be changed after training. With the default widths, a
    sampler step processes a quarter of a window's samples. ``anonymize`` needs no
    labels and gives no guarantee.

    From the published abstract, this implementation takes latent diffusion, contrastive
    guidance and a user-set trade-off. Losses, widths, schedule and phases are
    jaxanon's own, because the abstract does not give them.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CloakConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or the window length cannot be halved
        often enough.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = cloak(load("smartwatch").spec, channels=8)
      >>> method.config.channels, method.config.widths
      (8, (32, 64))

    References:
      Cloak, arXiv 2512.12086 (abstract); Khosla et al., Supervised contrastive
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
    """Returns the component of the autoencoder, with reconstruction and KL losses."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        mean, log_variance = nets.compress(params, batch.windows)
        z = sample(mean, log_variance, jax.random.normal(key, mean.shape))
        error = jnp.mean((batch.windows - nets.expand(params, z)) ** 2)
        kl = jnp.mean(kl_to_standard_normal(mean, log_variance)) / mean.shape[-1]
        now = {"mean": jnp.mean(mean, axis=(0, 1)), "std": jnp.std(mean, axis=(0, 1))}
        mix = lambda old, new: SCALE_DECAY * old + (1 - SCALE_DECAY) * new
        aux = {SCALE: jax.tree.map(mix, params[SCALE], now)}
        return error + hyper["kl"] * kl, ({"reconstruction": error, "kl": kl}, aux)

    groups = COMPRESSOR, EXPANDER
    return Component(
        groups, loss_fn, when_fn=when_fn, learning_rate="autoencoder_learning_rate"
    )


def contrasting(nets: CloakNetworks, when_fn) -> Component:
    """Returns the component of the guidance encoders, with a contrastive loss.

    Uses no dropout: in experiments, encoders of two classes did not learn with it.
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
    """Returns scaled latent windows and the public and private features of windows."""
    mean, std = (params[SCALE][name][None, None] for name in ("mean", "std"))
    z, _ = nets.compress(params, x)
    return (z - mean) / jnp.maximum(std, LEAST_STD), *guidance.latents(nets, params, x)


def unscaled(params, z):
    """Inverts the scaling of latent windows for the decoder."""
    mean, std = (params[SCALE][name][None, None] for name in ("mean", "std"))
    return z * jnp.maximum(std, LEAST_STD) + mean
