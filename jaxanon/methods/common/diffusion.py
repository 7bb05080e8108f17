"""Losses and guided sampling of a denoiser."""

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.common.generator import Judging
from jaxanon.models.conditions import Condition, forget
from jaxanon.models.unet import DTYPES, check_heads

WARM_UP = 10  # Rounds in which the running mean soon forgets where it began.


class Denoising(Judging, Protocol):
    """Networks that have a denoiser of windows among them."""

    @property
    def schedule(self) -> kernels.NoiseSchedule: ...
    def denoise(self, denoiser, x, t, condition) -> Any: ...
    def nothing(self, batch: int) -> Condition: ...


def denoising(nets: Denoising, when_fn=None) -> Component:
    """The denoiser, by the mean squared error of what it predicts.

    Steps are uniform from 1 to T. What a window is told of is forgotten now and then,
    so that guidance has something to lean away from.
    """

    def loss_fn(key, params, hyper, batch, given):
        del given
        loss = denoising_loss(
            nets, key, params[DENOISER], hyper["condition_dropout"], batch
        )
        return loss, ({"denoising": loss}, {})

    return Component((DENOISER,), loss_fn, when_fn=when_fn)


def denoising_loss(nets: Denoising, key, denoiser, condition_dropout, batch):
    """``float[]``, mean squared error over a batch, of noise, x0 or v."""
    step_key, noise_key, told_key = jax.random.split(key, 3)
    t = drawn_steps(nets, step_key, len(batch.windows))
    condition = forget(told_key, batch.condition, nets.sizes, condition_dropout)
    x_t, wanted = noised(nets, noise_key, batch.windows, t)
    return jnp.mean(errors(nets, denoiser, x_t, wanted, t, condition))


def drawn_steps(nets: Denoising, key, size: int):
    """``int32[size]``, steps of the diffusion, uniform from 1 to T."""
    return jax.random.randint(key, (size,), 1, nets.schedule.num_steps + 1)


def noised(nets: Denoising, key, x0, t):
    """Windows at steps ``t``, and what the denoiser should predict of them.

    Args:
      nets: ``Networks``.
      key: typed PRNG key of the noise.
      x0: ``float[batch, time, d]``.
      t: ``int32[batch]`` or ``int32[]``.

    Returns:
      Two arrays in the shape of ``x0``.
    """
    noise, schedule = jax.random.normal(key, x0.shape), nets.schedule
    x_t = kernels.diffuse(schedule, x0, noise, t)
    if nets.config.prediction_type == "v":
        return x_t, kernels.diffusion_velocity(schedule, x0, noise, t)
    return x_t, noise if nets.config.prediction_type == "noise" else x0


def errors(nets: Denoising, denoiser, x_t, wanted, t, condition):
    """``float[batch]``, mean squared error of each window, and of no other."""
    found = nets.denoise(denoiser, x_t, t, condition)
    return jnp.mean((found - wanted) ** 2, axis=(1, 2))


AVERAGE = "average"


def running_mean(state, group: str = AVERAGE):
    """The denoiser's weights averaged over rounds, whose mean so far is in ``group``.

    The decay rises from 0 to ``ema_decay`` as rounds pass, for the first weights are
    noise.
    """
    round_ = state.round.astype(jnp.float32)
    decay = jnp.minimum(state.hyper["ema_decay"], (1 + round_) / (WARM_UP + round_))
    mix = lambda old, new: decay * old + (1 - decay) * new
    return jax.tree.map(mix, state.params[group], state.params[DENOISER])


PREDICTIONS = ("v", "x0", "noise")

SAMPLERS = ("ddim", "dpmpp_2m")

FIRST_BETA, LAST_BETA, PUBLISHED_STEPS = 1e-4, 0.05, 100  # PrivateHub's.


def _line(num_steps, zero):
    """Those betas, fewer and larger or more and smaller, as much noise in all."""
    scale = PUBLISHED_STEPS / num_steps
    betas = FIRST_BETA * scale, min(LAST_BETA * scale, 0.999)
    return kernels.linear_noise_schedule(num_steps, *betas, zero_terminal_snr=zero)


SCHEDULES = {
    "cosine": lambda n: kernels.cosine_noise_schedule(n, zero_terminal_snr=True),
    "rescaled": lambda n: _line(n, zero=True),
    "paper": lambda n: _line(n, zero=False),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiffusionConfig:
    """A diffusion's settings: its steps, its U-Net, how it is sampled."""

    categories: tuple[str, ...] = setting(
        (),
        help='channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")',
    )
    learning_rate: float = setting(1e-3, above=0, help="step size of the denoiser")
    batch_size: int = setting(128, at_least=1, help="windows per step")
    num_train_timesteps: int = setting(
        100, at_least=2, help="steps of the diffusion, T"
    )
    schedule: str = setting(
        "cosine",
        choices=SCHEDULES,
        help="cosine; rescaled: PrivateHub's betas, no signal left at the end either; "
        "paper: its betas as they are, which leave 28 % of the signal's amplitude",
    )
    prediction_type: str = setting(
        "v", choices=PREDICTIONS, help="what the denoiser predicts; PrivateHub: noise"
    )
    widths: tuple[int, ...] = setting(
        (32, 64, 128), at_least=1, min_length=1, help="of the U-Net's levels"
    )
    blocks: int = setting(1, at_least=1, help="residual blocks of a level")
    heads: int = setting(4, at_least=1, help="of self-attention")
    dtype: str = setting("float32", choices=DTYPES, help="data type of the U-Net")
    condition_dropout: float = setting(
        0.1,
        at_least=0,
        below=1,
        help="share of windows of which the denoiser is not told a class, and of which "
        "not statistics, each on its own (condition dropout); rewriting tells it one "
        "class alone, or nothing, and wants more of it",
    )
    ema_decay: float = setting(
        0.999, at_least=0, below=1, help="decay of averaged weights"
    )
    num_inference_steps: int = setting(
        20, at_least=1, help="calls of the denoiser for a window; PrivateHub's are 100"
    )
    sampler: str = setting(
        "ddim",
        choices=SAMPLERS,
        help="what takes these steps: ddim, or dpm: DPM-Solver++ (2M), of second "
        "order; what is sampled in training is by ddim, for this one cannot be taken "
        "up part-way",
    )
    strength: float = setting(
        0.6, above=0, at_most=1, help="share of the steps that noise a window"
    )
    guidance_scale: float = setting(1.5, at_least=0, help="weight of the public class")
    negative_guidance_scale: float = setting(
        0.5, at_least=0, help="weight of the private classes, to be avoided"
    )

    def __post_init__(self):
        check(self)
        check_heads(self.widths, self.heads)
        if self.num_inference_steps > self.num_train_timesteps:
            raise ValueError(
                "num_inference_steps must be <= num_train_timesteps, "
                f"{self.num_train_timesteps}, got "
                f"{self.num_inference_steps!r}."
            )
        if self.prediction_type == "noise" and self.schedule != "paper":
            raise ValueError(
                f"prediction 'noise' cannot tell a window where no signal is left, as "
                f"schedule {self.schedule!r} has it; use 'v' or 'x0', or the schedule "
                "'paper'."
            )


DENOISER = "denoiser"


def guided(nets: Denoising, params, positive: Condition, negative, hyper):
    """``(x, t) -> output`` that leans towards one condition and away from another.

    Args:
      nets: ``Networks``.
      params: of them; the running mean of the denoiser is asked.
      positive: ``Condition``, what to have, of each window.
      negative: what not to have; None where there is nothing to get away from.
      hyper: with ``guidance_scale`` and ``negative_guidance_scale``, ``float[]`` each.
    """
    denoise = lambda x, t, told: nets.denoise(params[AVERAGE], x, t, told)
    null, weight = nets.nothing(len(positive.known)), hyper["guidance_scale"]
    if negative is None:
        return kernels.classifier_free_guidance(denoise, positive, null, weight)
    return kernels.negative_guidance(
        denoise, positive, negative, null, weight, hyper["negative_guidance_scale"]
    )


def denoised(nets: Denoising, key, denoise_fn, x, start: int):
    """``x`` at step ``start`` taken back to data.

    There are as many steps as ``num_inference_steps`` says, fewer where ``start`` is.
    """
    steps = kernels.diffusion_steps(start, min(nets.config.num_inference_steps, start))
    return sampled(nets, key, denoise_fn, x, steps)


def sampled(nets: Denoising, key, denoise_fn, x, steps):
    """``x`` taken back along ``steps`` by the solver that the settings name.

    Args:
      nets: with a ``config`` of a diffusion, and its ``schedule``.
      key: typed PRNG key.
      denoise_fn, x, steps: as ``kernels.ddim_sample`` takes them.
    """
    given, kind = (nets.schedule, x, steps), nets.config.prediction_type
    if nets.config.sampler == "dpmpp_2m":
        return kernels.dpm_solver_sample(denoise_fn, *given, prediction=kind)
    return kernels.ddim_sample(denoise_fn, key, *given, prediction=kind)


def first_step(config) -> int:
    """Where a rewriting begins: the step that ``strength`` says; 0 is none at all."""
    return max(
        int(config.strength > 0), round(config.strength * config.num_train_timesteps)
    )
