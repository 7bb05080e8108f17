"""Settings that all diffusions share, which check themselves."""

import dataclasses

from jaxanon import kernels
from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite, of_kinds
from jaxanon.models.unet import check_heads
from jaxanon.models.unet_blocks import DTYPES

PREDICTIONS = ("v", "x0", "noise")
SOLVERS = ("ddim", "dpm")
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
    """A diffusion's settings: its steps, its U-Net, how it is sampled.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    categories: tuple[str, ...] = ()
    """channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")"""
    step_size: float = 1e-3
    """step size of Adam, for the denoiser"""
    batch: int = 128
    """windows per step"""
    num_steps: int = 100
    """steps of the diffusion, T"""
    schedule: str = "cosine"
    """cosine; rescaled: PrivateHub's betas, no signal left at the end either; paper:
    its betas as they are, which leave 28 % of the signal's amplitude"""
    prediction: str = "v"
    """what the denoiser predicts: v, x0, or noise, which is PrivateHub's"""
    widths: tuple[int, ...] = (32, 64, 128)
    """of the U-Net's levels, between which windows are halved"""
    blocks: int = 1
    """residual blocks of a level"""
    heads: int = 4
    """of self-attention"""
    dtype: str = "float32"
    """what the U-Net multiplies in: float32 or bfloat16"""
    forgetting: float = 0.1
    """share of windows of which the denoiser is not told a class, and of which not
    statistics, each on its own (condition dropout); rewriting tells it one class alone,
    or nothing, and wants more of it"""
    ema: float = 0.999
    """decay of the running mean of the denoiser's weights, which samples"""
    sampling_steps: int = 20
    """calls of the denoiser for a window; PrivateHub's are 100"""
    solver: str = "ddim"
    """what takes these steps: ddim, or dpm: DPM-Solver++ (2M), of second order; what is
    sampled in training is by ddim, for this one cannot be taken up part-way"""
    strength: float = 0.6
    """share of the steps that a window is noised by before it is rewritten; 1: all; 0,
    of privatehub with classes to hide: windows of others stay as they are"""
    guidance: float = 1.5
    """weight of the condition to have, the public class; 1 obeys it"""
    negative_guidance: float = 0.5
    """weight of the condition to get away from, the private classes"""

    @property
    def may_rest(self) -> bool:
        """Whether a strength of 0 has a meaning."""
        return False

    def __post_init__(self):
        of_kinds(self)
        counts = "batch", "num_steps", "blocks", "heads", "sampling_steps", "widths"
        at_least(1, **{name: getattr(self, name) for name in counts})
        finite(zero=False, step_size=self.step_size)
        finite(zero=self.may_rest, strength=self.strength)
        names = "forgetting", "ema", "guidance", "negative_guidance"
        finite(zero=True, **{name: getattr(self, name) for name in names})
        below_1(forgetting=self.forgetting, ema=self.ema)
        if self.strength > 1:
            raise ValueError(f"strength must be <= 1, got {self.strength!r}.")
        one_of("schedule", self.schedule, tuple(SCHEDULES))
        one_of("prediction", self.prediction, PREDICTIONS)
        one_of("solver", self.solver, SOLVERS)
        one_of("dtype", self.dtype, tuple(DTYPES))
        if not self.widths:
            raise ValueError("widths must name a level at least, got ().")
        check_heads(self.widths, self.heads)
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
        if self.prediction == "noise" and self.schedule != "paper":
            raise ValueError(
                f"prediction 'noise' cannot tell a window where no signal is left, as "
                f"schedule {self.schedule!r} has it; use 'v' or 'x0', or the schedule "
                "'paper'."
            )


def below_1(**named) -> None:
    """Refuses settings that are 1 or more.

    Raises:
      ValueError: for such a one.

    Example:
      >>> below_1(ema=0.999)
    """
    for name, value in named.items():
        if value >= 1:
            raise ValueError(f"{name} must be < 1, got {value!r}.")
