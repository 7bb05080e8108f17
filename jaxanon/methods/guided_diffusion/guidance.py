"""Settings and guidance of the diffusions that are guided by latents."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.core.method import Method
from jaxanon.kernels.setting_checks import at_least, finite
from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.common.alternating import Player, by_epoch, central, during
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER, DiffusionConfig
from jaxanon.methods.common.generator import Judging, classify
from jaxanon.models.classifiers import unit
from jaxanon.models.conditions import Condition

AT_RELEASE = ("strength", "guidance", "negative_guidance")

HYPER = ("step_size", "forgetting", "ema", *AT_RELEASE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuidedConfig(DiffusionConfig):
    """What PrivDiffuser and Cloak share; none is published, these are our own.

    Numbers in it are defaults of hyper-parameters, arrays in the state, which a sweep
    may vary without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    latent: int = 64
    """numbers of an attribute's latent, which windows are guided by"""
    pretraining: int = 10
    """epochs in which what reads latents learns; then it rests, and the denoiser
    learns"""
    forgetting: float = 0.2
    """share of windows of which the denoiser is told no latent; of each other it is
    told one, the public or the private"""
    strength: float = 0.8
    """share of the steps that a window is noised by before it is rewritten; 1: all"""
    guidance: float = 1.5
    """weight of the latent to have, the public attribute's; 1 obeys it"""
    negative_guidance: float = 0.5
    """weight of the latent to get away from, the private attributes'"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, latent=self.latent, pretraining=self.pretraining)
        if self.batch < 2:
            raise ValueError(
                f"batch must be >= 2, got {self.batch!r}: windows are compared."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivDiffuserConfig(GuidedConfig):
    """PrivDiffuser's settings, of our own: its abstract gives none.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    classifier_step_size: float = 1e-3
    """step size of Adam, for the classifiers whose features are the latents"""
    disentangling: float = 0.1
    """weight of the bound of what the public latent tells of private classes"""
    law_step_size: float = 3e-3
    """step size of Adam, for the network that the bound is taken from"""
    law_steps: int = 5
    """steps that it takes for each of the classifiers', which it must not lag behind"""
    law_hidden: tuple[int, ...] = (64,)
    """widths of its layers"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, law_hidden=self.law_hidden, law_steps=self.law_steps)
        names = "classifier_step_size", "law_step_size"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        finite(zero=True, disentangling=self.disentangling)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloakConfig(GuidedConfig):
    """Cloak's settings, of our own: its abstract gives none.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    widths: tuple[int, ...] = (32, 64)
    """of the U-Net's levels, between which a window's latent is halved"""
    autoencoder_widths: tuple[int, ...] = (32, 32)
    """of the encoder's convolutions, each of which halves windows; the decoder's,
    reversed"""
    channels: int = 4
    """of the latent windows that are diffused"""
    kl: float = 0.01
    """weight of their KL divergence, beside a mean squared error"""
    autoencoder_step_size: float = 1e-3
    """step size of Adam, for the autoencoder"""
    reader_step_size: float = 1e-3
    """step size of Adam, for what reads the latents to guide by"""
    projection: int = 32
    """numbers that those are projected to where they are compared"""
    temperature: float = 0.5
    """of the contrastive loss; at 0.1, its paper's, readers of two classes were seen to
    learn nothing"""

    def __post_init__(self):
        super().__post_init__()
        names = "autoencoder_widths", "channels", "projection"
        at_least(1, **{name: getattr(self, name) for name in names})
        names = "autoencoder_step_size", "reader_step_size", "temperature"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        finite(zero=True, kl=self.kl)
        if not self.autoencoder_widths:
            raise ValueError(
                "autoencoder_widths must name a layer at least, got (): without one "
                "nothing gets shorter; train privdiffuser."
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
            generator.room(nets),
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

    return by_epoch(make)._replace(
        anonymize=anonymize,
        least_epochs=config.pretraining + 1,
        phases=("pretraining",),
        at_release=AT_RELEASE,
        settings_at_release=("sampling_steps", "solver"),
    )


def denoising(nets: Any, see_fn: Callable, when_fn) -> Player:
    """The denoiser, told the public latent, the private one, or neither."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        step_key, noise_key, known_key = jax.random.split(key, 3)
        x0, public, private = see_fn(params, batch.windows)
        known = one_known(known_key, len(x0), hyper["forgetting"])
        t = diffusion.drawn_steps(nets, step_key, len(x0))
        x_t, wanted = diffusion.noised(nets, noise_key, x0, t)
        condition = told(public, private, known)
        errors = diffusion.errors(nets, params[DENOISER], x_t, wanted, t, condition)
        loss = jnp.mean(errors)
        return loss, ({"denoising": loss}, {})

    return Player((DENOISER,), loss_fn, when_fn=when_fn)


def rewritten(nets: Any, key, params, hyper, x0, public, private):
    """Data noised part of the way, led back to one latent and away from another.

    Args:
      nets: as in ``guided``.
      key: typed PRNG key.
      params: of them; the running mean of the denoiser is asked.
      hyper: with ``strength``, ``guidance`` and ``negative_guidance``, ``float[]``
        each.
      x0: ``float[batch, ...]``, what is diffused.
      public: ``float[batch, d]``, latents to have.
      private: ``float[batch, e]``, latents not to have.

    Returns:
      In the shape of ``x0``.

    References:
      Meng et al., SDEdit, ICLR 2022; Ho and Salimans, Classifier-free diffusion
      guidance, 2022; Liu et al., ECCV 2022, for the negative condition.
    """
    noise_key, sample_key = jax.random.split(key)
    every = lambda *known: jnp.broadcast_to(jnp.array([known]), (len(x0), 2))
    alone = lambda *known: told(public, private, every(*known))
    conditions = alone(True, False), alone(False, True)
    denoise_fn = diffusion.guided(nets, params, *conditions, hyper)
    steps = levels(nets.config, hyper["strength"])
    noise = jax.random.normal(noise_key, x0.shape)
    x = kernels.diffuse(nets.schedule, x0, noise, steps[0])
    return diffusion.sampled(nets, sample_key, denoise_fn, x, steps)


def levels(config, strength):
    """The steps that ``strength`` says, evenly down to 0, whatever their first one is.

    ``kernels.diffusion_steps`` of a start that is traced: where that is too low for so
    many steps, levels are repeated, which changes nothing.

    Args:
      config: with ``num_steps`` and ``sampling_steps``.
      strength: ``float[]`` in (0, 1].

    Returns:
      ``int32[sampling_steps + 1]``.

    Example:
      >>> from jaxanon.methods.common.diffusion import DiffusionConfig
      >>> config = DiffusionConfig(num_steps=100, sampling_steps=4)
      >>> levels(config, 0.8).tolist(), levels(config, 0.02).tolist()
      ([80, 60, 40, 20, 0], [2, 2, 1, 1, 0])
    """
    most, number = config.num_steps, config.sampling_steps
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
