"""Settings and training of diffusion models that attribute latents guide."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.core.method import Adjustable, Method
from jaxanon.kernels import portable
from jaxanon.kernels.bounds import setting
from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.common.alternating import (
    Component,
    by_epoch,
    central,
    during,
    with_phases,
)
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER, DiffusionConfig
from jaxanon.methods.common.generator import Judging, classify
from jaxanon.models.classifiers import unit
from jaxanon.models.conditions import Condition

AT_RELEASE = ("strength", "guidance_scale", "negative_guidance_scale")

HYPER = ("learning_rate", "condition_dropout", "ema_decay", *AT_RELEASE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuidedConfig(DiffusionConfig):
    """Settings shared by PrivDiffuser and Cloak; jaxanon's own, none are published.

    Numbers are arrays in the state, so a sweep can vary them without recompiling.
    """

    batch_size: int = setting(
        128, at_least=2, remedy="the losses compare windows", help="windows per step"
    )
    latent_dim: int = setting(
        64, at_least=1, help="size of each attribute's latent, which guides sampling"
    )
    pretraining: int = setting(
        10, at_least=1, help="initial epochs that train the networks for the latents"
    )
    condition_dropout: float = setting(
        0.2,
        at_least=0,
        below=1,
        help="fraction of windows on which the denoiser trains without a condition; "
        "the others have the public or the private latent",
    )
    strength: float = setting(
        0.8,
        above=0,
        at_most=1,
        help="fraction of the diffusion steps by which a window is noised",
    )
    guidance_scale: float = setting(
        1.5, at_least=0, help="guidance weight towards the public latent"
    )
    negative_guidance_scale: float = setting(
        0.5, at_least=0, help="guidance weight away from the private latents"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivDiffuserConfig(GuidedConfig):
    """Settings of PrivDiffuser; jaxanon's own, because its abstract gives none."""

    classifier_learning_rate: float = setting(
        1e-3,
        above=0,
        help="learning rate of Adam, for the classifiers behind the latents",
    )
    disentangling: float = setting(
        0.1,
        at_least=0,
        help="weight of the mutual information between public latent and private "
        "classes",
    )
    law_learning_rate: float = setting(
        3e-3,
        above=0,
        help="learning rate of the network that predicts private classes from the "
        "public latent",
    )
    law_steps: int = setting(
        5, at_least=1, help="steps of that network per classifier step"
    )
    law_hidden_sizes: tuple[int, ...] = setting(
        (64,), at_least=1, help="widths of that network's hidden layers"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloakConfig(GuidedConfig):
    """Settings of Cloak; jaxanon's own, because its abstract gives none."""

    widths: tuple[int, ...] = setting(
        (32, 64), at_least=1, min_length=1, help="widths of the U-Net's levels"
    )
    autoencoder_widths: tuple[int, ...] = setting(
        (32, 32),
        at_least=1,
        min_length=1,
        remedy="each layer halves the window; for none, train privdiffuser",
        help="widths of the encoder's convolutions, each of which halves the window; "
        "the decoder uses them in reverse order",
    )
    channels: int = setting(4, at_least=1, help="channels of the latent windows")
    kl: float = setting(0.01, at_least=0, help="weight of the KL divergence")
    autoencoder_learning_rate: float = setting(
        1e-3, above=0, help="learning rate of Adam, for the autoencoder"
    )
    guidance_encoder_learning_rate: float = setting(
        1e-3, above=0, help="learning rate of Adam, for the guidance encoders"
    )
    projection: int = setting(
        32,
        at_least=1,
        help="size of the projections that the contrastive loss compares",
    )
    temperature: float = setting(
        0.5,
        above=0,
        help="temperature of the contrastive loss; at 0.1, the value of its paper, "
        "encoders of two classes did not learn",
    )


def guided(
    name: str,
    nets: Any,
    hyper: tuple[str, ...],
    learning_fn: Callable,
    see_fn: Callable,
    back_fn: Callable,
) -> Method:
    """Returns a method that trains networks for latents first and a denoiser after.

    Args:
      name: name of the method.
      nets: ``Judging`` networks with ``init``, ``schedule``, ``denoise(denoiser, x, t,
        condition)`` and ``nothing(batch)``; their config is a ``GuidedConfig``.
      hyper: names of the config fields that are hyper-parameters.
      learning_fn: ``when_fn -> components`` of the first phase.
      see_fn: ``(params, windows) -> (x0, public, private)``: the data to diffuse for
        encoded windows, ``float[batch, ...]``, and the latents, ``float[batch, d]``
        each.
      back_fn: ``(params, x0) -> windows``.
    """
    config = nets.config

    def make(rounds):
        begun = config.pretraining * rounds
        after = during(rounds, config.pretraining)
        first = learning_fn(during(rounds, 0, config.pretraining))
        since = lambda state: state._replace(round=jnp.maximum(state.round - begun, 0))
        return central(
            name,
            config,
            nets.spec,
            generator.batch_source(nets),
            init_fn=nets.init,
            components=(*first, denoising(nets, see_fn, after)),
            hyper={name: getattr(config, name) for name in hyper},
            finish_fn=lambda key, state, data: {
                AVERAGE: diffusion.running_mean(since(state))
            },
        )

    def anonymize(key, state, windows):
        x = nets.bits.encode(generator.standardised(nets, windows))
        x0 = rewrite(nets, key, state.params, state.hyper, *see_fn(state.params, x))
        return generator.physical(nets, nets.bits.decode(back_fn(state.params, x0)))

    method = with_phases(
        by_epoch(make), min_epochs=config.pretraining + 1, phases=("pretraining",)
    )
    return method._replace(
        anonymize=anonymize,
        adjustable=Adjustable(AT_RELEASE, ("num_inference_steps", "sampler")),
    )


def denoising(nets: Any, see_fn: Callable, when_fn) -> Component:
    """Returns the denoiser's component; conditions hold at most one latent."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        step_key, noise_key, known_key = jax.random.split(key, 3)
        x0, public, private = see_fn(params, batch.windows)
        known = one_known(known_key, len(x0), hyper["condition_dropout"])
        t = diffusion.drawn_steps(nets, step_key, len(x0))
        x_t, target = diffusion.noised(nets, noise_key, x0, t)
        condition = make_condition(public, private, known)
        errors = diffusion.errors(nets, params[DENOISER], x_t, target, t, condition)
        loss = jnp.mean(errors)
        return loss, ({"denoising": loss}, {})

    return Component((DENOISER,), loss_fn, when_fn=when_fn)


def rewrite(nets: Any, key, params, hyper, x0, public, private):
    """Noises data part of the way and denoises towards one latent, away from another.

    Args:
      nets: networks as in ``guided``.
      key: typed PRNG key.
      params: parameters; sampling uses the running mean of the denoiser.
      hyper: hyper-parameters with ``strength``, ``guidance_scale`` and
        ``negative_guidance_scale``, ``float[]`` each.
      x0: ``float[batch, ...]``, data to diffuse.
      public: ``float[batch, d]``, latents to approach.
      private: ``float[batch, e]``, latents to avoid.

    Returns:
      An array in the shape of ``x0``.

    References:
      Meng et al., SDEdit, ICLR 2022; Ho and Salimans, Classifier-free diffusion
      guidance, 2022; Liu et al., ECCV 2022, for the negative condition.
    """
    noise_key, sample_key = portable.split(key)
    every = lambda *known: jnp.broadcast_to(jnp.array([known]), (len(x0), 2))
    condition = lambda *known: make_condition(public, private, every(*known))
    conditions = condition(True, False), condition(False, True)
    denoise_fn = diffusion.guided(nets, params, *conditions, hyper)
    steps = levels(nets.config, hyper["strength"])
    noise = portable.normal(noise_key, x0.shape)
    x = kernels.diffuse(nets.schedule, x0, noise, steps[0])
    return diffusion.sampled(nets, sample_key, denoise_fn, x, steps)


def levels(config, strength):
    """Returns diffusion steps that fall evenly from ``strength`` to 0.

    Works as ``kernels.diffusion_steps`` with a traced start. Steps repeat if the start
    is too low for that many distinct steps; repeated steps have no effect.

    Args:
      config: config with ``num_train_timesteps`` and ``num_inference_steps``.
      strength: ``float[]`` in (0, 1].

    Returns:
      ``int32[num_inference_steps + 1]``.

    Example:
      >>> from jaxanon.methods.common.diffusion import DiffusionConfig
      >>> config = DiffusionConfig(num_train_timesteps=100, num_inference_steps=4)
      >>> levels(config, 0.8).tolist(), levels(config, 0.02).tolist()
      ([80, 60, 40, 20, 0], [2, 2, 1, 1, 0])
    """
    last, count = config.num_train_timesteps, config.num_inference_steps
    start = jnp.clip(jnp.round(jnp.asarray(strength) * last), 1, last)
    rising = 2 * start.astype(jnp.int32) * jnp.arange(count + 1) + count
    return (rising // (2 * count))[::-1].astype(jnp.int32)


def latents(nets: Judging, params, x):
    """Returns the public and private latents, ``float32[batch, d]`` and ``[batch, e]``.

    They are ``joined`` features of the attribute classifiers for the windows ``x``.
    """
    return joined(
        nets, {name: classify(nets, params, name, x)[1] for name in nets.sizes}
    )


def joined(nets: Judging, features: dict):
    """Returns the public attribute's features, and those of all private ones joined.

    Each is scaled to length ``sqrt(d)``, so that its values have a std of about 1.
    """
    scaled = {name: unit(x) * x.shape[1] ** 0.5 for name, x in features.items()}
    public = scaled.pop(nets.spec.public)
    return public, jnp.concatenate([*scaled.values()], axis=1)


def make_condition(public, private, known) -> Condition:
    """Returns the condition of a denoiser: the known latents and which are known.

    Args:
      public: ``float[batch, d]``.
      private: ``float[batch, e]``.
      known: ``bool[batch, 2]``, whether the public latent is known, and whether the
        private one is.

    Returns:
      ``Condition`` with ``float[batch, d + e + 2]`` features; the null condition for
      windows without a known latent.

    Example:
      >>> public, private = jnp.ones((1, 1)), 2 * jnp.ones((1, 1))
      >>> make_condition(public, private, jnp.array([[False, True]]))[1]
      Array([[0., 0., 2., 1.]], dtype=float32)
    """
    parts = []
    for index, latent in enumerate((public, private)):
        mask = known[:, index, None]
        parts += [jnp.where(mask, latent, 0), mask.astype(latent.dtype)]
    return Condition({}, jnp.concatenate(parts, axis=1), jnp.any(known, axis=1))


def one_known(key, size: int, rate):
    """Draws ``known`` for ``make_condition``: neither at ``rate``, else one of the two.

    Training needs no window with both, because sampling never uses both.

    Example:
      >>> one_known(jax.random.key(0), 3, 1.0).any(), one_known(
      ...     jax.random.key(0), 3, 0.0).sum(axis=1)
      (Array(False, dtype=bool), Array([1, 1, 1], dtype=int32))
    """
    some_key, first_key = jax.random.split(key)
    some = ~jax.random.bernoulli(some_key, rate, (size,))
    first = jax.random.bernoulli(first_key, 0.5, (size,))
    return jnp.stack([some & first, some & ~first], axis=1)
