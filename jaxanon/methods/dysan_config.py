"""Settings of DySan and of what it re-implements by its own networks."""

import dataclasses

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite, of_kinds
from jaxanon.methods.method import Incompatible
from jaxanon.models.dysan import ERRORS

OPTIMIZATIONS = ("sum", "vector")
GOALS = ("chance", "published")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SanitizerConfig:
    """Settings of a sanitizer against a predictor and discriminators.

    Those of the released program unless said otherwise. ``alpha``, ``lambda_`` and
    ``step_size`` are defaults here and arrays in the state, which a sweep may vary
    without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    alpha: float = 0.6
    """weight of the private attributes' errors, to be as of guessing"""
    lambda_: float = 0.4
    """weight of the public attribute's error"""
    step_size: float = 5e-4
    """step size of all networks' Adam"""
    batch: int = 256
    """windows per step"""
    inner_steps: int = 1
    """of predictor and discriminators per round, on fresh windows; released: 50"""
    early_stop: bool = False
    """released: fewer, from the 21st on, once 20 losses are a tenth of the first"""
    errors: str = "balanced"
    """averaged over an attribute's own classes; released: over the private one's"""
    goal: str = "chance"
    """private errors as of guessing; published: the greater the better"""
    optimization: str = "sum"
    """one step on the weighted sum; vector, as released: one step for each term"""
    standardised: bool = True
    """networks see standardised channels; no, as released: physical units"""
    physiology: tuple[str, ...] = ()
    """attributes of the wearer that networks are told, by class; released: height
    weight age. Nobody tells them when windows leave, and -1 stands for each"""
    filters: tuple[int, int] = (64, 128)
    """filters of the sanitizer's convolutions"""
    hidden: tuple[int, int] = (128, 64)
    """widths of its dense layers down to the bottleneck"""
    predictor_filters: tuple[int, ...] = (100, 100, 160, 160)
    """filters of the predictor's convolutions"""
    discriminator_filters: int = 64
    """filters of a discriminator's convolution"""
    judge_hidden: int = 64
    """width of the dense layer of predictor and discriminators"""

    def __post_init__(self):
        of_kinds(self)
        for name in ("filters", "hidden"):
            if len(getattr(self, name)) != 2:
                raise ValueError(f"{name} must be two, got {getattr(self, name)!r}.")
        if not self.predictor_filters:
            raise ValueError("predictor_filters must have one at least, got none.")
        names = ("batch", "inner_steps", "filters", "hidden", "predictor_filters")
        names += ("discriminator_filters", "judge_hidden")
        at_least(1, **{name: getattr(self, name) for name in names})
        finite(zero=True, alpha=self.alpha, lambda_=self.lambda_)
        finite(zero=False, step_size=self.step_size)
        one_of("errors", self.errors, ERRORS)
        one_of("goal", self.goal, GOALS)
        one_of("optimization", self.optimization, OPTIMIZATIONS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DySanConfig(SanitizerConfig):
    """DySan's settings; the weight of distortion is ``1 - alpha - lambda_``.

    Raises:
      Incompatible: if nothing is left for it.
    """

    lambda_: float = 0.3
    """weight of the public attribute's error; what both leave is that of distortion"""

    def __post_init__(self):
        super().__post_init__()
        if self.alpha + self.lambda_ > 1 - 1e-6:
            raise Incompatible(
                "alpha + lambda_ must be < 1, for the rest is the weight of "
                f"distortion, got {self.alpha:g} + {self.lambda_:g}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OlympusConfig(SanitizerConfig):
    """Olympus's settings, as DySan re-implements it: nothing is paid for distortion."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DySanGenConfig(SanitizerConfig):
    """GEN's settings, as DySan re-implements it: judges of raw windows, then frozen."""

    pretraining: int = 300
    """rounds in which predictor and discriminators learn and the sanitizer waits"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, pretraining=self.pretraining)
