"""Settings and guidance of the diffusions that are guided by latents."""

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
    """What PrivDiffuser and Cloak share; none is published, these are our own.

    Numbers in it are defaults of hyper-parameters, arrays in the state, which a sweep
    may vary without compiling anew.
    """

    batch_size: int = setting(
        128, at_least=2, remedy="windows are compared", help="windows per step"
    )
    latent_dim: int = setting(64, at_least=1, help="size of the latents that guide")
    pretraining: int = setting(
        10, at_least=1, help="first epochs, of the networks that make the latents"
    )
    condition_dropout: float = setting(
        0.2,
        at_least=0,
        below=1,
        help="share of windows of which the denoiser is told no latent; of each other "
        "it is told one, the public or the private",
    )
    strength: float = setting(
        0.8, above=0, at_most=1, help="share of the steps that noise a window"
    )
    guidance_scale: float = setting(1.5, at_least=0, help="weight of the public latent")
    negative_guidance_scale: float = setting(
        0.5, at_least=0, help="weight of the private latents, to be avoided"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivDiffuserConfig(GuidedConfig):
    """PrivDiffuser's settings, of our own: its abstract gives none."""

    classifier_learning_rate: float = setting(
        1e-3, above=0, help="step size of Adam, for the latents' classifiers"
    )
    disentangling: float = setting(
        0.1, at_least=0, help="weight of the public latent's private information"
    )
    law_learning_rate: float = setting(3e-3, above=0, help="step size of the bound")
    law_steps: int = setting(5, at_least=1, help="its steps per classifiers' step")
    law_hidden_sizes: tuple[int, ...] = setting(
        (64,), at_least=1, help="widths of its layers"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloakConfig(GuidedConfig):
    """Cloak's settings, of our own: its abstract gives none."""

    widths: tuple[int, ...] = setting(
        (32, 64), at_least=1, min_length=1, help="of the U-Net's levels"
    )
    autoencoder_widths: tuple[int, ...] = setting(
        (32, 32),
        at_least=1,
        min_length=1,
        remedy="without one nothing gets shorter; train privdiffuser",
        help="of the encoder's convolutions, each of which halves windows; the "
        "decoder's, reversed",
    )
    channels: int = setting(4, at_least=1, help="channels of the latent windows")
    kl: float = setting(0.01, at_least=0, help="weight of the KL divergence")
    autoencoder_learning_rate: float = setting(
        1e-3, above=0, help="step size of Adam, for the autoencoder"
    )
    guidance_encoder_learning_rate: float = setting(
        1e-3, above=0, help="step size of Adam, for what reads the latents to guide by"
    )
    projection: int = setting(
        32, at_least=1, help="size of the projections of latents that are compared"
    )
    temperature: float = setting(
        0.5,
        above=0,
        help="of the contrastive loss; at 0.1, its paper's, readers of two classes "
        "were seen to learn nothing",
    )


def guided(
    name: str,
    nets: Any,
    hyper: tuple[str, ...],
    learning_fn: Callable,
    see_fn: Callable,
    back_fn: Callable,
) -> Method:
    """A method whose denoiser learns when all that it is told by has learned.

    Args:
      name: of the method.
      nets: ``Judging`` networks with ``init``, ``schedule``, ``denoise(denoiser, x, t,
        condition)`` and ``nothing(batch)``; their config is a ``GuidedConfig``.
      hyper: names of its fields that are hyper-parameters.
      learning_fn: ``when_fn -> players``, of the first phase.
      see_fn: ``(params, windows) -> (x0, public, private)``: what is diffused of
        windows as networks see them, ``float[batch, ...]``, and their latents, ``float[
        batch, d]`` each.
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
            players=(*first, denoising(nets, see_fn, after)),
            hyper={name: getattr(config, name) for name in hyper},
            finish_fn=lambda key, state, data: {
                AVERAGE: diffusion.running_mean(since(state))
            },
        )

    def anonymize(key, state, windows):
        x = nets.bits.encode(generator.standardised(nets, windows))
        made = rewritten(nets, key, state.params, state.hyper, *see_fn(state.params, x))
        return generator.physical(nets, nets.bits.decode(back_fn(state.params, made)))

    method = with_phases(
        by_epoch(make), min_epochs=config.pretraining + 1, phases=("pretraining",)
    )
    return method._replace(
        anonymize=anonymize,
        adjustable=Adjustable(AT_RELEASE, ("num_inference_steps", "sampler")),
    )


def denoising(nets: Any, see_fn: Callable, when_fn) -> Component:
    """The denoiser, told the public latent, the private one, or neither."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        step_key, noise_key, known_key = jax.random.split(key, 3)
        x0, public, private = see_fn(params, batch.windows)
        known = one_known(known_key, len(x0), hyper["condition_dropout"])
        t = diffusion.drawn_steps(nets, step_key, len(x0))
        x_t, wanted = diffusion.noised(nets, noise_key, x0, t)
        condition = told(public, private, known)
        errors = diffusion.errors(nets, params[DENOISER], x_t, wanted, t, condition)
        loss = jnp.mean(errors)
        return loss, ({"denoising": loss}, {})

    return Component((DENOISER,), loss_fn, when_fn=when_fn)


def rewritten(nets: Any, key, params, hyper, x0, public, private):
    """Data noised part of the way, led back to one latent and away from another.

    Args:
      nets: as in ``guided``.
      key: typed PRNG key.
      params: of them; the running mean of the denoiser is asked.
      hyper: with ``strength``, ``guidance_scale`` and ``negative_guidance_scale``,
        ``float[]`` each.
      x0: ``float[batch, ...]``, what is diffused.
      public: ``float[batch, d]``, latents to have.
      private: ``float[batch, e]``, latents not to have.

    Returns:
      In the shape of ``x0``.

    References:
      Meng et al., SDEdit, ICLR 2022; Ho and Salimans, Classifier-free diffusion
      guidance, 2022; Liu et al., ECCV 2022, for the negative condition.
    """
    noise_key, sample_key = portable.split(key)
    every = lambda *known: jnp.broadcast_to(jnp.array([known]), (len(x0), 2))
    alone = lambda *known: told(public, private, every(*known))
    conditions = alone(True, False), alone(False, True)
    denoise_fn = diffusion.guided(nets, params, *conditions, hyper)
    steps = levels(nets.config, hyper["strength"])
    noise = portable.normal(noise_key, x0.shape)
    x = kernels.diffuse(nets.schedule, x0, noise, steps[0])
    return diffusion.sampled(nets, sample_key, denoise_fn, x, steps)


def levels(config, strength):
    """The steps that ``strength`` says, evenly down to 0, whatever their first one is.

    ``kernels.diffusion_steps`` of a start that is traced: where that is too low for so
    many steps, levels are repeated, which changes nothing.

    Args:
      config: with ``num_train_timesteps`` and ``num_inference_steps``.
      strength: ``float[]`` in (0, 1].

    Returns:
      ``int32[num_inference_steps + 1]``.

    Example:
      >>> from jaxanon.methods.common.diffusion import DiffusionConfig
      >>> config = DiffusionConfig(num_train_timesteps=100, num_inference_steps=4)
      >>> levels(config, 0.8).tolist(), levels(config, 0.02).tolist()
      ([80, 60, 40, 20, 0], [2, 2, 1, 1, 0])
    """
    most, number = config.num_train_timesteps, config.num_inference_steps
    start = jnp.clip(jnp.round(jnp.asarray(strength) * most), 1, most)
    rising = 2 * start.astype(jnp.int32) * jnp.arange(number + 1) + number
    return (rising // (2 * number))[::-1].astype(jnp.int32)


def latents(nets: Judging, params, x):
    """``float32[batch, d]`` and ``[batch, e]``, of the public and the private classes.

    They are ``joined`` features of the networks that read each attribute from windows.
    """
    return joined(
        nets, {name: classify(nets, params, name, x)[1] for name in nets.sizes}
    )


def joined(nets: Judging, features: dict):
    """The public attribute's features, and those of all private ones side by side.

    Each is scaled to length ``sqrt(d)``, so that its numbers have deviation 1, about.
    """
    scaled = {name: unit(own) * own.shape[1] ** 0.5 for name, own in features.items()}
    public = scaled.pop(nets.spec.public)
    return public, jnp.concatenate([*scaled.values()], axis=1)


def told(public, private, known) -> Condition:
    """What a denoiser is told: latents where they are known, and which of them are.

    Args:
      public: ``float[batch, d]``.
      private: ``float[batch, e]``.
      known: ``bool[batch, 2]``, of each window whether the public latent is, and
        whether the private one.

    Returns:
      ``Condition`` with ``float[batch, d + e + 2]`` features; a window of which none is
      known is told nothing.

    Example:
      >>> told(jnp.ones((1, 1)), 2 * jnp.ones((1, 1)), jnp.array([[False, True]]))[1]
      Array([[0., 0., 2., 1.]], dtype=float32)
    """
    parts = []
    for number, latent in enumerate((public, private)):
        own = known[:, number, None]
        parts += [jnp.where(own, latent, 0), own.astype(latent.dtype)]
    return Condition({}, jnp.concatenate(parts, axis=1), jnp.any(known, axis=1))


def one_known(key, size: int, rate):
    """``bool[size, 2]``, as ``told`` takes them: neither at ``rate``, else either.

    Sampling never asks for both at once.

    Example:
      >>> one_known(jax.random.key(0), 3, 1.0).any(), one_known(
      ...     jax.random.key(0), 3, 0.0).sum(axis=1)
      (Array(False, dtype=bool), Array([1, 1, 1], dtype=int32))
    """
    some_key, first_key = jax.random.split(key)
    some = ~jax.random.bernoulli(some_key, rate, (size,))
    first = jax.random.bernoulli(first_key, 0.5, (size,))
    return jnp.stack([some & first, some & ~first], axis=1)
