"""Training losses and guided sampling of a denoiser."""

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.common.generator import Judging
from jaxanon.models.conditions import Condition, drop_conditions
from jaxanon.models.unet import DTYPES, check_heads

WARM_UP = 10  # Rounds with a smaller decay of the averaged weights.


class Denoising(Judging, Protocol):
    """Networks that include a denoiser of windows."""

    @property
    def schedule(self) -> kernels.NoiseSchedule: ...
    def denoise(self, denoiser, x, t, condition) -> Any: ...
    def nothing(self, batch: int) -> Condition: ...


def denoising(nets: Denoising, when_fn=None) -> Component:
    """Returns the denoiser's component, trained by mean squared error.

    Diffusion steps are uniform from 1 to T. Conditions are dropped at random, as
    classifier-free guidance requires.
    """

    def loss_fn(key, params, hyper, batch, given):
        del given
        loss = denoising_loss(
            nets, key, params[DENOISER], hyper["condition_dropout"], batch
        )
        return loss, ({"denoising": loss}, {})

    return Component((DENOISER,), loss_fn, when_fn=when_fn)


def denoising_loss(nets: Denoising, key, denoiser, condition_dropout, batch):
    """Returns the batch's mean squared error of noise, x0 or v, ``float[]``."""
    step_key, noise_key, dropout_key = jax.random.split(key, 3)
    t = drawn_steps(nets, step_key, len(batch.windows))
    condition = drop_conditions(
        dropout_key, batch.condition, nets.sizes, condition_dropout
    )
    x_t, wanted = noised(nets, noise_key, batch.windows, t)
    return jnp.mean(errors(nets, denoiser, x_t, wanted, t, condition))


def drawn_steps(nets: Denoising, key, size: int):
    """Draws diffusion steps uniformly from 1 to T, ``int32[size]``."""
    return jax.random.randint(key, (size,), 1, nets.schedule.num_steps + 1)


def noised(nets: Denoising, key, x0, t):
    """Returns noised windows at steps ``t`` and the denoiser's targets.

    Args:
      nets: networks with a denoiser.
      key: typed PRNG key of the noise.
      x0: ``float[batch, time, d]``.
      t: ``int32[batch]`` or ``int32[]``.

    Returns:
      Two arrays with the shape of ``x0``.
    """
    noise, schedule = jax.random.normal(key, x0.shape), nets.schedule
    x_t = kernels.diffuse(schedule, x0, noise, t)
    if nets.config.prediction_type == "v":
        return x_t, kernels.diffusion_velocity(schedule, x0, noise, t)
    return x_t, noise if nets.config.prediction_type == "noise" else x0


def errors(nets: Denoising, denoiser, x_t, wanted, t, condition):
    """Returns the denoiser's mean squared error per window, ``float[batch]``."""
    predicted = nets.denoise(denoiser, x_t, t, condition)
    return jnp.mean((predicted - wanted) ** 2, axis=(1, 2))


AVERAGE = "average"


def running_mean(state, group: str = AVERAGE):
    """Returns the updated moving average of the denoiser's weights in ``group``.

    The decay grows with the rounds up to ``ema_decay``, because early weights are
    mostly noise.
    """
    round_ = state.round.astype(jnp.float32)
    decay = jnp.minimum(state.hyper["ema_decay"], (1 + round_) / (WARM_UP + round_))
    mix = lambda old, new: decay * old + (1 - decay) * new
    return jax.tree.map(mix, state.params[group], state.params[DENOISER])


PREDICTIONS = ("v", "x0", "noise")

SAMPLERS = ("ddim", "dpmpp_2m")

FIRST_BETA, LAST_BETA, PUBLISHED_STEPS = 1e-4, 0.05, 100  # PrivateHub


def _linear_schedule(num_steps, zero):
    """Returns PrivateHub's linear schedule, rescaled to keep the total noise."""
    scale = PUBLISHED_STEPS / num_steps
    betas = FIRST_BETA * scale, min(LAST_BETA * scale, 0.999)
    return kernels.linear_noise_schedule(num_steps, *betas, zero_terminal_snr=zero)


SCHEDULES = {
    "cosine": lambda n: kernels.cosine_noise_schedule(n, zero_terminal_snr=True),
    "rescaled": lambda n: _linear_schedule(n, zero=True),
    "paper": lambda n: _linear_schedule(n, zero=False),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiffusionConfig:
    """Settings of a diffusion model: schedule, U-Net and sampling."""

    categories: tuple[str, ...] = setting(
        (),
        help='channels with values 0, 1 ("door on", "* on") or 0 to K - 1 ("mode=4")',
    )
    learning_rate: float = setting(1e-3, above=0, help="denoiser learning rate")
    batch_size: int = setting(128, at_least=1, help="windows per step")
    num_train_timesteps: int = setting(
        100, at_least=2, help="number of diffusion steps, T"
    )
    schedule: str = setting(
        "cosine",
        choices=SCHEDULES,
        help="noise schedule: cosine; rescaled: PrivateHub's betas, with zero terminal "
        "SNR; paper: PrivateHub's betas, which leave 28 % of the signal's amplitude",
    )
    prediction_type: str = setting(
        "v", choices=PREDICTIONS, help="target of the denoiser; PrivateHub: noise"
    )
    widths: tuple[int, ...] = setting(
        (32, 64, 128), at_least=1, min_length=1, help="channels of each U-Net level"
    )
    blocks: int = setting(1, at_least=1, help="residual blocks per U-Net level")
    heads: int = setting(4, at_least=1, help="self-attention heads")
    dtype: str = setting("float32", choices=DTYPES, help="data type of the U-Net")
    condition_dropout: float = setting(
        0.1,
        at_least=0,
        below=1,
        help="probability of dropping each condition of a window (a class, or the "
        "statistics) in training; rewriting uses one class or none, and benefits from "
        "a higher probability",
    )
    ema_decay: float = setting(
        0.999, at_least=0, below=1, help="decay of the averaged weights"
    )
    num_inference_steps: int = setting(
        20, at_least=1, help="denoiser calls per window; PrivateHub: 100"
    )
    sampler: str = setting(
        "ddim",
        choices=SAMPLERS,
        help="ddim, or dpmpp_2m: second-order DPM-Solver++ (2M); training always "
        "samples with ddim, because dpmpp_2m cannot start from an intermediate step",
    )
    strength: float = setting(
        0.6,
        above=0,
        at_most=1,
        help="fraction of the diffusion steps used to noise a window",
    )
    guidance_scale: float = setting(
        1.5, at_least=0, help="guidance weight of the public class"
    )
    negative_guidance_scale: float = setting(
        0.5, at_least=0, help="guidance weight away from the private classes"
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
                "prediction_type must be 'v' or 'x0' with zero-terminal-SNR schedule "
                f"{self.schedule!r}, got 'noise'; change it, or use schedule 'paper'."
            )


DENOISER = "denoiser"


def guided(nets: Denoising, params, positive: Condition, negative, hyper):
    """Returns a guided denoiser ``(x, t) -> output``.

    Args:
      nets: networks with a denoiser.
      params: parameters of ``nets``; the averaged denoiser is used.
      positive: ``Condition`` of each window to guide towards.
      negative: ``Condition`` to guide away from; None disables it.
      hyper: has ``guidance_scale`` and ``negative_guidance_scale``, ``float[]`` each.
    """
    denoise = lambda x, t, condition: nets.denoise(params[AVERAGE], x, t, condition)
    null, weight = nets.nothing(len(positive.known)), hyper["guidance_scale"]
    if negative is None:
        return kernels.classifier_free_guidance(denoise, positive, null, weight)
    return kernels.negative_guidance(
        denoise, positive, negative, null, weight, hyper["negative_guidance_scale"]
    )


def denoised(nets: Denoising, key, denoise_fn, x, start: int):
    """Denoises ``x`` from step ``start`` to data.

    Takes ``min(num_inference_steps, start)`` steps.
    """
    steps = kernels.diffusion_steps(start, min(nets.config.num_inference_steps, start))
    return sampled(nets, key, denoise_fn, x, steps)


def sampled(nets: Denoising, key, denoise_fn, x, steps):
    """Denoises ``x`` along ``steps`` with the configured sampler.

    Args:
      nets: networks with a diffusion ``config`` and ``schedule``.
      key: typed PRNG key.
      denoise_fn, x, steps: arguments of ``kernels.ddim_sample``.
    """
    given, kind = (nets.schedule, x, steps), nets.config.prediction_type
    if nets.config.sampler == "dpmpp_2m":
        return kernels.dpm_solver_sample(denoise_fn, *given, prediction=kind)
    return kernels.ddim_sample(denoise_fn, key, *given, prediction=kind)


def first_step(config) -> int:
    """Returns the diffusion step at which rewriting starts; 0 leaves windows as is."""
    return max(
        int(config.strength > 0), round(config.strength * config.num_train_timesteps)
    )
