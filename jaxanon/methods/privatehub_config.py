"""Settings of PrivateHub, which check themselves."""

import dataclasses

from jaxanon import kernels
from jaxanon.kernels.checks import one_of
from jaxanon.methods.hub_noise_settings import check_noise
from jaxanon.methods.setting_checks import finite, whole
from jaxanon.models.unet import check_heads
from jaxanon.models.unet_blocks import DTYPES

PREDICTIONS = ("v", "x0", "noise")
FIRST_BETA, LAST_BETA, PUBLISHED_STEPS = 1e-4, 0.05, 100
HYPER = ("step_size", "classifier_step_size", "forgetting", "ema")
HYPER += ("guidance", "negative_guidance")
HYPER += ("fine_step_size", "threshold", "margin", "replay")
TRIPLETS = ("hinge", "paper")
GRADIENTS = ("one_step", "last_steps")


def _line(num_steps, zero):
    """The paper's betas, fewer and larger or more and smaller, as much noise in all."""
    scale = PUBLISHED_STEPS / num_steps
    betas = FIRST_BETA * scale, min(LAST_BETA * scale, 0.999)
    return kernels.linear_noise_schedule(num_steps, *betas, zero_terminal_snr=zero)


SCHEDULES = {
    "cosine": lambda n: kernels.cosine_noise_schedule(n, zero_terminal_snr=True),
    "rescaled": lambda n: _line(n, zero=True),
    "paper": lambda n: _line(n, zero=False),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateHubConfig:
    """PrivateHub's settings; the paper gives steps, betas, batch and epochs alone.

    Step sizes, rates and weights of guidance are defaults here and arrays in the state,
    which a sweep may vary without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    categories: tuple[str, ...] = ()
    """channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")"""
    hide: tuple[str, ...] = ()
    """public classes to conceal: windows of them are made anew, as of other classes"""
    step_size: float = 1e-3
    """step size of Adam, for the denoiser"""
    classifier_step_size: float = 1e-3
    """step size of Adam, for the classifiers of raw windows"""
    batch: int = 128
    """windows per step"""
    num_steps: int = 100
    """steps of the diffusion, T"""
    schedule: str = "cosine"
    """cosine; rescaled: the paper's betas, no signal left at the end either; paper: its
    betas as they are, which leave 28 % of the signal's amplitude"""
    prediction: str = "v"
    """what the denoiser predicts: v, x0, or noise, which is the paper's"""
    widths: tuple[int, ...] = (32, 64, 128)
    """of the U-Net's levels, between which windows are halved"""
    blocks: int = 1
    """residual blocks of a level"""
    heads: int = 4
    """of self-attention"""
    dtype: str = "float32"
    """what the U-Net multiplies in: float32 or bfloat16"""
    forgetting: float = 0.1
    """share of windows of which the denoiser is not told a class, or statistics"""
    ema: float = 0.999
    """decay of the running mean of the denoiser's weights, which samples"""
    sampling_steps: int = 20
    """steps of DDIM; the paper's is 100"""
    strength: float = 0.6
    """share of the steps that a window is noised by before it is rewritten; 1: all"""
    guidance: float = 1.5
    """weight of the condition to have, the public class; 1 obeys it"""
    negative_guidance: float = 0.5
    """weight of the condition to get away from, the private classes"""

    patience: int = 0
    """epochs of pre-training that do no better on held-out windows before it stops, and
    goes back to the best; 0: it never does; the paper's: 30"""
    held_out: float = 0.1
    """share of the training windows held out, where there is patience"""
    pretraining: int = 150
    """epochs before fine-tuning, which there is if there are classes to hide"""
    fine_step_size: float = 1e-4
    """step size of Adam in fine-tuning"""
    threshold: float = 0.5
    """G: what is made counts if the classifier gives its class more than this"""
    margin: float = 0.2
    """of the triplet loss"""
    triplet: str = "hinge"
    """hinge: on features of length 1; paper: no hinge, no length, no lower bound"""
    gradient: str = "one_step"
    """what fine-tuning is graded on: one_step: clean windows as the denoiser sees them
    in noised ones, at a random step; last_steps: windows sampled from noise, of which
    the last gradient_steps learn"""
    gradient_steps: int = 2
    """steps of DDIM that learn, with last_steps"""
    replay: float = 1.0
    """weight of the pre-training's loss in fine-tuning; the paper's: 0"""

    epsilon: float = 0.0
    """ε of a training window, spent in paid_epochs; 0: no noise, unless it is named"""
    noise_multiplier: float = 0.0
    """deviation of the noise over max_norm, in place of what epsilon buys"""
    delta: float = 1e-5
    """δ of the guarantee, below 1 / records"""
    max_norm: float = 1.0
    """clip norm of a window's gradient, of all networks together (with noise)"""
    records: int | None = None
    """training windows that there are at most, a public number; noise needs it"""
    paid_epochs: int = 20
    """epochs that epsilon pays for; training stops after them"""

    @property
    def noisy(self) -> bool:
        """Whether it trains behind noise."""
        return self.epsilon > 0 or self.noise_multiplier > 0

    def __post_init__(self):
        counts = "batch", "num_steps", "blocks", "heads", "sampling_steps", "widths"
        counts += "gradient_steps", "pretraining"
        whole(1, **{name: getattr(self, name) for name in counts})
        whole(0, patience=self.patience)
        finite(
            zero=False,
            step_size=self.step_size,
            classifier_step_size=self.classifier_step_size,
            fine_step_size=self.fine_step_size,
            strength=self.strength,
            held_out=self.held_out,
        )
        names = "forgetting", "ema", "guidance", "negative_guidance"
        names += "threshold", "margin", "replay"
        finite(zero=True, **{name: getattr(self, name) for name in names})
        for name in ("forgetting", "ema", "strength", "threshold", "held_out"):
            value = getattr(self, name)
            if value > 1 or (value == 1 and name != "strength"):
                bound = "<= 1" if name == "strength" else "< 1"
                raise ValueError(f"{name} must be {bound}, got {value!r}.")
        one_of("schedule", self.schedule, tuple(SCHEDULES))
        one_of("prediction", self.prediction, PREDICTIONS)
        one_of("triplet", self.triplet, TRIPLETS)
        one_of("gradient", self.gradient, GRADIENTS)
        one_of("dtype", self.dtype, tuple(DTYPES))
        check_heads(self.widths, self.heads)
        check_noise(self)
        if self.num_steps < 2:
            raise ValueError(
                f"num_steps must be >= 2, got {self.num_steps!r}: one step has no "
                "schedule."
            )
        if self.sampling_steps > self.num_steps:
            raise ValueError(
                f"sampling_steps must be <= num_steps, {self.num_steps}, got "
                f"{self.sampling_steps!r}."
            )
        learning = self.gradient_steps if self.gradient == "last_steps" else 0
        if learning > self.sampling_steps:
            raise ValueError(
                f"gradient_steps must be <= sampling_steps, {self.sampling_steps}, got "
                f"{self.gradient_steps!r}."
            )
        if self.prediction == "noise" and self.schedule != "paper":
            raise ValueError(
                f"prediction 'noise' cannot tell a window where no signal is left, as "
                f"schedule {self.schedule!r} has it; use 'v' or 'x0', or the schedule "
                "'paper'."
            )
