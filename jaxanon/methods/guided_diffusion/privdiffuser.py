"""PrivDiffuser: diffusion guided towards public and away from private latents."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.core.programs import single
from jaxanon.core.registry import register
from jaxanon.methods.common import generator, recipes
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
from jaxanon.models.conditions import AnalogBits, Condition, null_condition
from jaxanon.models.guided_diffusion import LatentLaw, gaussian_nll
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
    """Networks of PrivDiffuser, for standardised windows encoded as bits."""

    spec: Any
    config: PrivDiffuserConfig
    bits: AnalogBits
    sizes: dict[str, int]  # number of classes of each attribute
    schedule: kernels.NoiseSchedule
    classifiers: dict[str, WindowClassifier]
    law: LatentLaw
    unet: UNet

    def init(self, key):
        """Returns the parameters of all networks."""
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        keys = jax.random.split(key, 2 + len(self.classifiers))
        step, condition = jnp.ones(1, jnp.int32), self.nothing(1)
        denoiser = self.unet.init(keys[0], window, step, condition)["params"]
        return {
            DENOISER: denoiser,
            AVERAGE: jax.tree.map(jnp.copy, denoiser),
            CLASSIFIERS: init_classifiers(self.classifiers, keys[2:], window),
            LAW: self.law.init(keys[1], jnp.zeros((1, self.config.latent_dim)))[
                "params"
            ],
        }

    def denoise(self, denoiser, x, t, condition):
        """Returns the output of the U-Net, in the shape of ``x``."""
        return apply(self.unet, denoiser, x, t, condition)

    def nothing(self, batch: int) -> Condition:
        """Returns the null condition."""
        return null_condition({}, len(self.sizes) * self.config.latent_dim + 2, batch)

    def predict_secrets(self, params, public):
        """Returns mean and log-variance of ``secrets`` given public latents."""
        return apply(self.law, params[LAW], public)


def networks(spec, config: PrivDiffuserConfig) -> PrivDiffuserNetworks:
    """Returns the networks for windows of ``spec``.

    Raises:
      ValueError: if the public attribute is a number, the window length cannot be
        halved, or categories name no channel.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    check_halved(spec.time, len(config.widths))
    private = sum(size for name, size in sizes.items() if name != spec.public)
    classifier = lambda size: WindowClassifier(size, features=config.latent_dim)
    return PrivDiffuserNetworks(
        spec=spec,
        config=config,
        bits=AnalogBits(values, tuple(spec.mean), tuple(spec.std)),
        sizes=sizes,
        schedule=SCHEDULES[config.schedule](config.num_train_timesteps),
        classifiers={name: classifier(size) for name, size in sizes.items()},
        law=LatentLaw(private, tuple(config.law_hidden_sizes)),
        unet=UNet((), tuple(config.widths), config.blocks, config.heads, config.dtype),
    )


@single
@register("privdiffuser", config=PrivDiffuserConfig, recipes=recipes.PRIVDIFFUSER)
def privdiffuser(spec, config) -> Method:
    """Builds PrivDiffuser for windows of ``spec``.

    In the first ``pretraining`` epochs, one classifier per attribute trains on raw
    windows. Its features, scaled to a fixed length, are the attribute's latent. A
    further network predicts the private classes from the public latent. The public
    classifier is penalised by CLUB's estimate of the mutual information between the two
    (``disentangling``). Both networks adapt to each other: on small data, the public
    latents leaked more after a hundred steps and less only after some hundreds. These
    networks are then frozen, and a U-Net learns to denoise windows, conditioned on one
    of the latents or neither.

    ``anonymize`` computes both latents of a window, adds part of the noise
    (``strength``) and denoises towards the public latent and away from the private
    ones: ``D(null) + g (D(public) - D(null)) - n (D(private) - D(null))``, where g is
    ``guidance_scale`` and n is ``negative_guidance_scale``. These three settings can be
    changed after training. ``anonymize`` needs no labels and gives no guarantee: it
    hides what the run's own classifiers detect, and another classifier may detect more.

    From the published abstract, this implementation takes guidance by the latents of
    surrogate models, positive and negative, and limited mutual information. Bound,
    widths, schedule, phases and weights are jaxanon's own, because the abstract does
    not give them.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``PrivDiffuserConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or the window length cannot be halved.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = privdiffuser(load("smartwatch").spec, negative_guidance_scale=1.0)
      >>> method.config.negative_guidance_scale, method.schedule.min_epochs
      (1.0, 11)

    References:
      Yang and Ardakanian, PrivDiffuser, PoPETs 2025 (abstract); Cheng et al., CLUB,
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
    """Returns the component that fits private classes given public latents."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        public, _ = guidance.latents(nets, params, batch.windows)
        loss = gaussian_nll(
            secrets(nets, batch.labels), *nets.predict_secrets(params, public)
        )
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
    """Returns ``more_fn`` of ``generator.classifying``: the penalty on public latents.

    The CLUB bound can be negative while its network lags behind; the penalty is then 0.
    """

    def more_fn(params, features, labels, hyper):
        public, _ = guidance.joined(nets, features)
        law = nets.predict_secrets(params, public)
        bound = kernels.club_bound(secrets(nets, labels), *law)
        cost = hyper["disentangling"] * jnp.maximum(bound, 0)
        return cost, {"information": bound}

    return more_fn


def secrets(nets: PrivDiffuserNetworks, labels):
    """Encodes private classes as 1 for the class and -1 for all others, joined.

    Args:
      nets: ``PrivDiffuserNetworks``.
      labels: ``int32[batch]`` of each attribute.

    Returns:
      ``float32[batch, classes]``, for all private attributes together.
    """
    private = {name: n for name, n in nets.sizes.items() if name != nets.spec.public}
    codes = [2 * jax.nn.one_hot(labels[name], n) - 1 for name, n in private.items()]
    return jnp.concatenate(codes, axis=1)
