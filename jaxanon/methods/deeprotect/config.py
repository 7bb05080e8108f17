"""Settings of DEEProtect: what it learns, and what its noise protects."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxanon.core.method import Incompatible
from jaxanon.kernels.bounds import check, setting
from jaxanon.models.deeprotect import CURVES

TRAININGS = ("greedy", "joint", "fine-tuned")

INFERENCES = ("ridge", "logistic", "network")

MODES = ("everything", "named")

FEATURES = ("autoencoder", "pca", "dct", "dft", "haar", "dictionary", "window")

MECHANISMS = ("laplace", "grid", "l2", "linf", "privunit", "span", "none")

SENSITIVITIES = ("corrected", "published")

# Public ranges by unit, of a phone or a watch on a body: from minus this to this.
REACH = {"g": 2.0, "m/s^2": 20.0, "rad/s": 10.0, "rad": 3.2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DEEProtectConfig:
    """DEEProtect's settings.

    The paper's are ``curve="sigmoid", training="greedy", inference="ridge",
    optimizer="sgd", learning_rate=0.1, mechanism="laplace", sensitivity="published",
    radius=None``: two flat curves a layer leave of a window some hundredths of how much
    it varies, and little of it is learned or rebuilt. ``mu``, ``beta``,
    ``weight_decay``, ``delta``, ``rho`` and ``learning_rate`` are defaults here and
    arrays in the state.

    Raises:
      Incompatible: for a mechanism that the mode or the sensitivity has no use for.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    hidden_sizes: tuple[int, ...] = setting(
        (15, 7), at_least=1, min_length=1, help="features of each layer"
    )
    features: str = setting(
        "autoencoder",
        choices=FEATURES,
        help="who finds features: autoencoder, taught by the useful attributes; pca, "
        "dct, dft, haar, dictionary, which know no classes; window: its own numbers, a "
        "baseline",
    )
    curve: str = setting("linear", choices=CURVES, help="linear, or sigmoid layers")
    training: str = setting(
        "joint",
        choices=TRAININGS,
        help="joint: all layers at once; greedy, as published: one after another, each "
        "on what those before it make; fine-tuned: greedy, then all at once",
    )
    epochs_per_layer: int = setting(
        10, at_least=1, help="greedy and fine-tuned: epochs of a layer's turn"
    )
    inference: str = setting(
        "network", choices=INFERENCES, help="classifier that teaches the features"
    )
    extra_public: tuple[str, ...] = setting(
        (), help="further attributes that are useful"
    )
    mu: float = setting(10.0, at_least=0, help="weight of the useful attributes")
    beta: float = setting(1e-3, at_least=0, help="weight decay of the classifiers")
    weight_decay: float = setting(
        1e-4, at_least=0, help="weight decay of the autoencoder"
    )
    delta: float = setting(
        0.0, at_least=0, help="weight of the sparsity of features; curve sigmoid alone"
    )
    rho: float = setting(0.1, above=0, below=1, help="target mean of sparse features")
    optimizer: str = setting(
        "adam", choices=("sgd", "adam"), help="sgd: plain descent, as published"
    )
    learning_rate: float = setting(0.003, above=0, help="step size of the optimizer")
    batch_size: int = setting(256, at_least=1, help="windows per step")
    low: tuple[float, ...] | None = setting(
        None,
        help="lower ends of the public range, to which windows are clipped, one per "
        "channel in its unit; default: by unit, such as -2 g",
    )
    high: tuple[float, ...] | None = setting(None, help="upper ends of the range")
    epsilon: float = setting(
        5.0, above=0, help="privacy budget of a window: the smaller, the more noise"
    )
    mode: str = setting(
        "everything",
        choices=MODES,
        help="everything: no two windows are told apart, whatever the private "
        "attributes; named: only how far windows lie along what tells the private "
        "attributes linearly",
    )
    mechanism: str = setting(
        "privunit",
        choices=MECHANISMS,
        help='noise. "privunit": least of all, needs a radius; laplace, l2, linf: '
        "added; grid: as laplace, and private in floating point, too; span: mode named "
        "alone, noise only where neighbours differ (idealised arithmetic, no guarantee "
        "in floating point); none: no noise and no guarantee",
    )
    sensitivity: str = setting(
        "corrected",
        choices=SENSITIVITIES,
        help="how far features of neighbours are taken to be apart: corrected, or "
        "published, which is many times as far",
    )
    radius: float | None = setting(
        0.5,
        above=0,
        help="features further than this from the mean window's are brought to that "
        "distance; None: left where they are, with more noise",
    )

    def __post_init__(self):
        check(self)
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high must both be given, or neither.")
        self._fit_together()

    def _fit_together(self):
        if self.mode == "named" and self.mechanism == "grid":
            raise Incompatible(
                "mechanism 'grid' must know the sensitivity before it is compiled, and "
                "mode 'named' learns it; take laplace, l2, linf or span."
            )
        if self.mode == "named" and self.mechanism == "privunit" and not self.radius:
            raise Incompatible(
                "mechanism 'privunit' hides where a vector lies in a ball, and mode "
                "'named' has none without a radius; give one, or take span."
            )
        if self.features != "autoencoder" and self.curve != "linear":
            raise Incompatible(
                f"features {self.features!r} are linear in the window; take curve "
                f"linear, got {self.curve!r}."
            )
        if self.mechanism == "span":
            self._fit_span()
        norms = ("l2", "linf", "privunit", "grid", "span")
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
                    f"{getattr(self, name)!r}; set {name} to {value}."
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


def in_range(spec, config, windows):
    """Standardised windows as numbers of the public range, clipped to it.

    Args:
      spec, config: of the method, ``config`` with its range.
      windows: ``float32[batch, time, channels]``, standardised.

    Returns:
      ``float32[batch, time * channels]`` in [0, 1].
    """
    low, high, mean, std = (
        jnp.asarray(ends, jnp.float32)[None, None]
        for ends in (config.low, config.high, spec.mean, spec.std)
    )
    unit = (windows * std + mean - low) / (high - low)
    return jnp.clip(unit, 0, 1).reshape(len(windows), -1)


def out_of_range(spec, config, unit, shape):
    """The inverse of ``in_range``, but for what was clipped.

    Args:
      spec, config: as ``in_range`` was given them.
      unit: ``float32[batch, time * channels]``, numbers of the public range.
      shape: of the windows, ``(batch, time, channels)``.

    Returns:
      ``float32[batch, time, channels]``, standardised.
    """
    low, high, mean, std = (
        np.asarray(ends, np.float32)[None, None]
        for ends in (config.low, config.high, spec.mean, spec.std)
    )
    return (unit.reshape(shape) * (high - low) + low - mean) / std


def outside(config, windows) -> tuple[int, int]:
    """How much of some windows lies outside the public range, and will be clipped.

    Args:
      config: of the method, with its range.
      windows: ``float[N, time, channels]`` in physical units.

    Returns:
      ``(numbers, windows)``: how many numbers, and in how many windows.

    Example:
      >>> from jaxanon.methods.deeprotect.config import DEEProtectConfig
      >>> config = DEEProtectConfig(low=(-1.0,), high=(1.0,))
      >>> outside(config, np.array([[[0.5], [3.0]], [[0.0], [1.0]]]))
      (1, 1)
    """
    low, high = (
        np.asarray(ends, np.float32)[None, None] for ends in (config.low, config.high)
    )
    beyond = (windows < low) | (windows > high)
    return int(beyond.sum()), int(beyond.any(axis=(1, 2)).sum())
