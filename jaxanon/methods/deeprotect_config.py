"""Settings of DEEProtect: what it learns, and what its noise protects."""

import dataclasses
from typing import Any

from jaxanon.kernels.checks import one_of
from jaxanon.methods.method import Incompatible
from jaxanon.methods.setting_checks import finite, whole
from jaxanon.models.tied import CURVES

TRAININGS = ("greedy", "joint", "fine-tuned")
INFERENCES = ("ridge", "logistic", "network")
MODES = ("everything", "named")
FEATURES = ("autoencoder", "pca", "dct", "dft", "haar", "dictionary", "window")
MECHANISMS = ("laplace", "grid", "l2", "linf", "priv unit", "span", "none")
SENSITIVITIES = ("corrected", "published")
# Public ranges by unit, of a phone or a watch on a body: from minus this to this.
REACH = {"g": 2.0, "m/s^2": 20.0, "rad/s": 10.0, "rad": 3.2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DEEProtectConfig:
    """DEEProtect's settings.

    The paper's are ``curve="sigmoid", training="greedy", inference="ridge",
    optimizer="sgd", step_size=0.1, mechanism="laplace", sensitivity="published",
    radius=None``: two flat curves a layer leave of a window some hundredths of how much
    it varies, and little of it is learned or rebuilt. ``mu``, ``beta``, ``decay``,
    ``delta``, ``rho`` and ``step_size`` are defaults here and arrays in the state.

    Raises:
      ValueError: for a setting out of its range.
      Incompatible: for a mechanism that the mode or the sensitivity has no use for.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    hidden: tuple[int, ...] = (15, 7)
    """features of each layer, the last of which leave"""
    features: str = "autoencoder"
    """what finds them; pca, dct, dft, haar, dictionary: without regard to classes, as
    many as the last of ``hidden``; window: its numbers themselves, for a baseline"""
    curve: str = "linear"
    """features are linear in the window; sigmoid, as published: behind each layer"""
    training: str = "joint"
    """all layers at once; greedy, as published: one after another, each on what those
    before it make; fine-tuned: all at once after that"""
    epochs_per_layer: int = 10
    """greedy: epochs before the next layer's turn"""
    inference: str = "network"
    """what reads useful classes off rebuilt windows: ridge, logistic or network"""
    also: tuple[str, ...] = ()
    """attributes that are useful beside the public one"""
    mu: float = 10.0
    """weight of the useful inferences"""
    beta: float = 1e-3
    """of the squares of what reads them"""
    decay: float = 1e-4
    """of the squares of the autoencoder's weights"""
    delta: float = 0.0
    """of the sparsity of its features"""
    rho: float = 0.1
    """their mean, as sparsity wants it"""
    optimizer: str = "adam"
    """or sgd, plain gradient descent"""
    step_size: float = 0.003
    """its step size"""
    batch: int = 256
    """windows per step"""
    low: tuple[float, ...] | None = None
    """public range of each channel, in its unit; default: by unit"""
    high: tuple[float, ...] | None = None
    """its upper ends"""
    epsilon: float = 5.0
    """privacy budget of a window"""
    mode: str = "everything"
    """neighbours differ in any way; named: along what tells the private attributes"""
    mechanism: str = "priv unit"
    """what noise: priv unit, laplace, grid, l2, linf, none; span: mode named alone, as
    priv unit (l2 without a radius) along what neighbours differ by, nowhere else"""
    sensitivity: str = "corrected"
    """its scale; published: as the paper has it, far too large where it is right"""
    radius: float | None = 0.5
    """features are brought this near to the middle window's; None: as they are"""

    def __post_init__(self):
        whole(1, hidden=self.hidden, batch=self.batch)
        whole(1, epochs_per_layer=self.epochs_per_layer)
        if not self.hidden:
            raise ValueError("hidden must have one layer at least, got none.")
        weights = ("mu", "beta", "decay", "delta")
        finite(zero=True, **{name: getattr(self, name) for name in weights})
        finite(zero=False, step_size=self.step_size, epsilon=self.epsilon)
        finite(zero=False, rho=self.rho)
        if self.rho >= 1:
            raise ValueError(f"rho must be below 1, got {self.rho!r}.")
        if self.radius is not None:
            finite(zero=False, radius=self.radius)
        choices = {
            "features": FEATURES,
            "curve": tuple(CURVES),
            "training": TRAININGS,
            "inference": INFERENCES,
            "optimizer": ("sgd", "adam"),
            "mode": MODES,
            "mechanism": MECHANISMS,
            "sensitivity": SENSITIVITIES,
        }
        for name, known in choices.items():
            one_of(name, getattr(self, name), known)
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high must both be given, or neither.")
        self._fit_together()

    def _fit_together(self):
        if self.mode == "named" and self.mechanism == "grid":
            raise Incompatible(
                "mechanism 'grid' must know the sensitivity before it is compiled, and "
                "mode 'named' learns it; take laplace, l2, linf or span."
            )
        if self.mode == "named" and self.mechanism == "priv unit" and not self.radius:
            raise Incompatible(
                "mechanism 'priv unit' hides where a vector lies in a ball, and mode "
                "'named' has none without a radius; give one, or take span."
            )
        if self.features != "autoencoder" and self.curve != "linear":
            raise Incompatible(
                f"features {self.features!r} are linear in the window; take curve "
                f"linear, got {self.curve!r}."
            )
        if self.mechanism == "span":
            self._fit_span()
        norms = ("l2", "linf", "priv unit", "grid", "span")
        if self.sensitivity == "published" and self.mechanism in norms:
            raise Incompatible(
                "sensitivity 'published' is the paper's, of Laplace noise alone; take "
                f"mechanism laplace, got {self.mechanism!r}."
            )
        if self.sensitivity == "published" and self.radius is not None:
            raise Incompatible(
                "sensitivity 'published' knows of no radius; take radius=None, got "
                f"{self.radius!r}."
            )

    def _fit_span(self):
        """Only what is linear keeps neighbours on the line that they differ along."""
        wanted = {"mode": "named", "curve": "linear"}
        for name, value in wanted.items():
            if getattr(self, name) != value:
                raise Incompatible(
                    "mechanism 'span' adds noise where named neighbours' features "
                    f"differ and nowhere else, which holds for {name}={value!r}, got "
                    f"{getattr(self, name)!r}."
                )


def with_range(config: Any, spec) -> Any:
    """``config`` with the public range of every channel.

    Args:
      config: ``DEEProtectConfig``.
      spec: ``jaxanon.datasets.Spec``.

    Raises:
      ValueError: if a range is not one number for each channel, low below high, or if
        a channel's unit has no default.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch", preset="acc10").spec
      >>> with_range(DEEProtectConfig(), spec).high
      (2.0, 2.0, 2.0)
    """
    if config.low is None:
        unknown = sorted({unit for unit in spec.units if unit not in REACH})
        if unknown:
            raise ValueError(
                f"the unit {unknown[0]!r} has no public range of its own; give low and "
                f"high, a number for each of the channels {list(spec.channels)}."
            )
        high = tuple(REACH[unit] for unit in spec.units)
        return dataclasses.replace(config, low=tuple(-x for x in high), high=high)
    for name in ("low", "high"):
        ends = getattr(config, name)
        if len(ends) != len(spec.channels):
            raise ValueError(
                f"{name} must be a number for each of the {len(spec.channels)} "
                f"channels {list(spec.channels)}, got {ends!r}."
            )
    for low, high in zip(config.low, config.high, strict=True):
        if not -float("inf") < low < high < float("inf"):
            raise ValueError(
                f"low must be below high and both finite, got {low!r} and {high!r}."
            )
    return config
