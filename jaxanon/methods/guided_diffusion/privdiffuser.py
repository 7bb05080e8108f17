"""PrivDiffuser: windows led to what they show in public, away from what is private."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.core.programs import single
from jaxanon.core.registry import register
from jaxanon.methods.common import generator
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER, SCHEDULES
from jaxanon.methods.common.generator import (
    CLASSIFIERS,
    init_classifiers,
    sizes_and_values,
)
from jaxanon.methods.guided_diffusion import guidance
from jaxanon.methods.guided_diffusion.guidance import PrivDiffuserConfig
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits, Condition, nothing
from jaxanon.models.guided_diffusion import LatentLaw, surprise
from jaxanon.models.layers import apply
from jaxanon.models.unet import UNet, check_halved

LAW = "law"

HYPER = (
    *guidance.HYPER,
    "classifier_learning_rate",
    "disentangling",
    "law_learning_rate",
)


class PrivDiffuserNetworks(NamedTuple):
    """What PrivDiffuser is made of; windows are standardised, their values as bits."""

    spec: Any
    config: PrivDiffuserConfig
    bits: AnalogBits
    sizes: dict[str, int]  # number of classes of each attribute
    schedule: kernels.NoiseSchedule
    classifiers: dict[str, WindowClassifier]
    law: LatentLaw
    unet: UNet

    def init(self, key):
        """Parameters of all."""
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        keys = jax.random.split(key, 2 + len(self.classifiers))
        step, told = jnp.ones(1, jnp.int32), self.nothing(1)
        denoiser = self.unet.init(keys[0], window, step, told)["params"]
        return {
            DENOISER: denoiser,
            AVERAGE: jax.tree.map(jnp.copy, denoiser),
            CLASSIFIERS: init_classifiers(self.classifiers, keys[2:], window),
            LAW: self.law.init(keys[1], jnp.zeros((1, self.config.latent_dim)))[
                "params"
            ],
        }

    def denoise(self, denoiser, x, t, condition):
        """What the U-Net of those parameters predicts, in the shape of ``x``."""
        return apply(self.unet, denoiser, x, t, condition)

    def nothing(self, batch: int) -> Condition:
        """The condition that says nothing."""
        return nothing({}, len(self.sizes) * self.config.latent_dim + 2, batch)

    def read(self, params, public):
        """Mean and log-variance of ``secrets``, as the law has them."""
        return apply(self.law, params[LAW], public)


def networks(spec, config: PrivDiffuserConfig) -> PrivDiffuserNetworks:
    """The networks for windows of ``spec``.

    Raises:
      ValueError: for a public attribute that is a number, a window that cannot be
        halved, or categories that name no channel.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    check_halved(spec.time, len(config.widths))
    secret = sum(size for name, size in sizes.items() if name != spec.public)
    reader = lambda size: WindowClassifier(size, features=config.latent_dim)
    return PrivDiffuserNetworks(
        spec=spec,
        config=config,
        bits=AnalogBits(values, tuple(spec.mean), tuple(spec.std)),
        sizes=sizes,
        schedule=SCHEDULES[config.schedule](config.num_train_timesteps),
        classifiers={name: reader(size) for name, size in sizes.items()},
        law=LatentLaw(secret, tuple(config.law_hidden_sizes)),
        unet=UNet((), tuple(config.widths), config.blocks, config.heads, config.dtype),
    )


@single
@register("privdiffuser", config=PrivDiffuserConfig)
def privdiffuser(spec, config) -> Method:
    """Builds PrivDiffuser for windows of ``spec``.

    First a classifier of each attribute learns from raw windows. Its features, scaled
    to one length, are the attribute's latent. A network learns the law of the private
    classes given the public latent, and the public classifier pays for what that law
    tells: CLUB's estimate of their mutual information (``disentangling``). Both chase
    each other at first: on small data public latents told more after a hundred steps,
    and less only after some hundreds. Then, after ``pretraining`` epochs, all of these
    rest and a U-Net learns to take noise off windows, told one of the latents or
    neither.

    ``anonymize`` reads both latents from a window, noises it part of the way
    (``strength``) and takes it back, towards the public latent and away from the
    private ones: ``D(nothing) + guidance (D(public) - D(nothing)) - negative_guidance
    (D(private) - D(nothing))``. Strength and weights may be chosen after training. No
    label is asked for, and nothing is promised: what is led away from is known by the
    run's own classifiers, and somebody else's may see what they do not.

    Of the published method this keeps what its abstract tells: guidance by latents of
    surrogate models, positive and negative, and mutual information held down. Bound,
    widths, schedule, phases and weights are ours: the abstract does not give them.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``PrivDiffuserConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or windows cannot be halved.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = privdiffuser(load("smartwatch").spec, negative_guidance_scale=1.0)
      >>> method.config.negative_guidance_scale, method.schedule.min_epochs
      (1.0, 11)

    References:
      Yang and Ardakanian, PrivDiffuser, PoPETs 2025, its abstract; Cheng et al., CLUB,
      ICML 2020, for the bound.
    """
    nets = networks(spec, config)
    return guidance.guided(
        "privdiffuser",
        nets,
        HYPER,
        lambda when_fn: (
            reading(nets, when_fn),
            generator.classifying(nets, when_fn, disentangling(nets)),
        ),
        lambda params, x: (x, *guidance.latents(nets, params, x)),
        lambda params, x: x,
    )


def reading(nets: PrivDiffuserNetworks, when_fn) -> Component:
    """The law of private classes given public latents, by its likelihood."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        public, _ = guidance.latents(nets, params, batch.windows)
        loss = surprise(secrets(nets, batch.labels), *nets.read(params, public))
        return loss, ({"law": loss}, {})

    return Component(
        (LAW,),
        loss_fn,
        steps=nets.config.law_steps,
        fresh=True,
        when_fn=when_fn,
        learning_rate="law_learning_rate",
    )


def disentangling(nets: PrivDiffuserNetworks):
    """``more_fn`` of ``generator.classifying``: what latents tell of private classes.

    Below 0, which the bound may be where the law lags behind, there is no more to gain.
    """

    def more_fn(params, features, labels, hyper):
        public, _ = guidance.joined(nets, features)
        law = nets.read(params, public)
        bound = kernels.club_bound(secrets(nets, labels), *law)
        cost = hyper["disentangling"] * jnp.maximum(bound, 0)
        return cost, {"information": bound}

    return more_fn


def secrets(nets: PrivDiffuserNetworks, labels):
    """Private classes as numbers: 1 of its own and -1 of the others, side by side.

    Args:
      nets: ``PrivDiffuserNetworks``.
      labels: ``int32[batch]`` of each attribute.

    Returns:
      ``float32[batch, classes]``, of all private attributes together.
    """
    private = {name: n for name, n in nets.sizes.items() if name != nets.spec.public}
    own = [2 * jax.nn.one_hot(labels[name], n) - 1 for name, n in private.items()]
    return jnp.concatenate(own, axis=1)
