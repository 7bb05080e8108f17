"""Settings of DEEProtect and the public range of its input."""

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

# Public ranges by unit, for a phone or watch on a body: from -value to value.
REACH = {"g": 2.0, "m/s^2": 20.0, "rad/s": 10.0, "rad": 3.2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DEEProtectConfig:
    """Settings of DEEProtect.

    The paper uses ``curve="sigmoid", training="greedy", inference="ridge",
    optimizer="sgd", learning_rate=0.1, mechanism="laplace", sensitivity="published",
    radius=None``. These settings learn little: each sigmoid layer is nearly flat, so
    that only a few percent of a window's variation survives two layers. ``mu``,
    ``beta``, ``weight_decay``, ``delta``, ``rho`` and ``learning_rate`` are arrays in
    the state.

    Raises:
      Incompatible: if the mode or the sensitivity does not support the mechanism.
      TypeError: if a setting has the wrong type.
    """

    hidden_sizes: tuple[int, ...] = setting(
        (15, 7), at_least=1, min_length=1, help="features of each layer"
    )
    features: str = setting(
        "autoencoder",
        choices=FEATURES,
        help="feature extractor: autoencoder, trained on the public attributes; pca, "
        "dct, dft, haar, dictionary, which use no labels; window: the window "
        "itself, a baseline",
    )
    curve: str = setting("linear", choices=CURVES, help="activation of the layers")
    training: str = setting(
        "joint",
        choices=TRAININGS,
        help="joint: train all layers together; greedy, as published: one layer "
        "after another, each on the output of the layers before; fine-tuned: "
        "greedy, then joint",
    )
    epochs_per_layer: int = setting(
        10, at_least=1, help="epochs per layer in greedy and fine-tuned training"
    )
    inference: str = setting(
        "network", choices=INFERENCES, help="classifier whose loss trains the features"
    )
    extra_public: tuple[str, ...] = setting((), help="further attributes to preserve")
    mu: float = setting(
        10.0, at_least=0, help="weight of the public attributes' losses"
    )
    beta: float = setting(1e-3, at_least=0, help="weight decay of the classifiers")
    weight_decay: float = setting(
        1e-4, at_least=0, help="weight decay of the autoencoder"
    )
    delta: float = setting(
        0.0,
        at_least=0,
        help="weight of the features' sparsity; used only by curve sigmoid",
    )
    rho: float = setting(0.1, above=0, below=1, help="target mean of sparse features")
    optimizer: str = setting(
        "adam",
        choices=("sgd", "adam"),
        help="sgd: plain gradient descent, as published",
    )
    learning_rate: float = setting(
        0.003, above=0, help="learning rate of the optimizer"
    )
    batch_size: int = setting(256, at_least=1, help="windows per step")
    low: tuple[float, ...] | None = setting(
        None,
        help="lower ends of the public range to which windows are clipped, one per "
        "channel in its unit; default: by unit, such as -2 g",
    )
    high: tuple[float, ...] | None = setting(
        None, help="upper ends of the public range"
    )
    epsilon: float = setting(
        5.0, above=0, help="privacy budget per window; smaller means more noise"
    )
    mode: str = setting(
        "everything",
        choices=MODES,
        help="everything: hide all differences between two windows; named: hide only "
        "how far a window lies along the directions that predict the private "
        "attributes linearly",
    )
    mechanism: str = setting(
        "privunit",
        choices=MECHANISMS,
        help='noise mechanism. "privunit": least noise, needs a radius; laplace, l2, '
        "linf: additive; grid: Laplace noise that is private in floating point, "
        "too; span: for mode named, adds noise only in the directions where "
        "neighbours differ (idealised arithmetic, no guarantee in floating "
        "point); none: no noise, no guarantee",
    )
    sensitivity: str = setting(
        "corrected",
        choices=SENSITIVITIES,
        help="bound on the distance between neighbours' features: corrected, or "
        "published, which is many times larger",
    )
    radius: float | None = setting(
        0.5,
        above=0,
        help="maximum distance of features from those of the mean window; larger "
        "distances are clipped. None: no clipping and more noise",
    )

    def __post_init__(self):
        check(self)
        if (self.low is None) != (self.high is None):
            missing = "low" if self.low is None else "high"
            raise ValueError(
                "low and high must both be given, or neither, got None for "
                f"{missing}; set both."
            )
        self._check_combination()

    def _check_combination(self):
        if self.mode == "named" and self.mechanism == "grid":
            raise Incompatible(
                "mechanism 'grid' needs the sensitivity at compile time, but mode "
                "'named' learns it; use laplace, l2, linf or span."
            )
        if self.mode == "named" and self.mechanism == "privunit" and not self.radius:
            raise Incompatible(
                "mechanism 'privunit' needs a radius in mode 'named', got "
                f"radius={self.radius!r}; set radius, or use mechanism span."
            )
        if self.features != "autoencoder" and self.curve != "linear":
            raise Incompatible(
                f"curve must be 'linear' for features {self.features!r}, got "
                f"{self.curve!r}; set curve to linear."
            )
        if self.mechanism == "span":
            self._check_span()
        norms = ("l2", "linf", "privunit", "grid", "span")
        if self.sensitivity == "published" and self.mechanism in norms:
            raise Incompatible(
                "sensitivity 'published' applies only to Laplace noise, got mechanism "
                f"{self.mechanism!r}; use laplace."
            )
        if self.sensitivity == "published" and self.radius is not None:
            raise Incompatible(
                "radius must be None for sensitivity 'published', got "
                f"{self.radius!r}; set radius to None."
            )

    def _check_span(self):
        required = {"mode": "named", "curve": "linear"}
        for name, value in required.items():
            if getattr(self, name) != value:
                raise Incompatible(
                    f"mechanism 'span' requires {name}={value!r}, got "
                    f"{getattr(self, name)!r}; set {name} to {value}."
                )


def with_range(config: Any, spec) -> Any:
    """Returns ``config`` with the public range of every channel.

    Args:
      config: ``DEEProtectConfig``.
      spec: ``jaxanon.datasets.Spec``.

    Raises:
      ValueError: if a range does not have one value per channel, if low is not below
        high, or if the unit of a channel has no default range.

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
                f"the unit {unknown[0]!r} has no default public range; set low and "
                f"high to one value for each of the channels {list(spec.channels)}."
            )
        high = tuple(REACH[unit] for unit in spec.units)
        return dataclasses.replace(config, low=tuple(-x for x in high), high=high)
    for name in ("low", "high"):
        ends = getattr(config, name)
        if len(ends) != len(spec.channels):
            raise ValueError(
                f"{name} must have one value for each of the {len(spec.channels)} "
                f"channels {list(spec.channels)}, got {ends!r}."
            )
    for low, high in zip(config.low, config.high, strict=True):
        if not -float("inf") < low < high < float("inf"):
            raise ValueError(
                f"low must be below high and both finite, got {low!r} and {high!r}."
            )
    return config


def in_range(spec, config, windows):
    """Clips standardised windows to the public range and scales them to [0, 1].

    Args:
      spec: spec of the method.
      config: config of the method, with its range.
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
    """Inverts ``in_range``, except for clipping.

    Args:
      spec: spec of the method.
      config: config of the method, with its range.
      unit: ``float32[batch, time * channels]``, values from ``in_range``.
      shape: shape of the windows, ``(batch, time, channels)``.

    Returns:
      ``float32[batch, time, channels]``, standardised.
    """
    low, high, mean, std = (
        np.asarray(ends, np.float32)[None, None]
        for ends in (config.low, config.high, spec.mean, spec.std)
    )
    return (unit.reshape(shape) * (high - low) + low - mean) / std


def outside(config, windows) -> tuple[int, int]:
    """Counts the values and windows outside the public range.

    Args:
      config: config of the method, with its range.
      windows: ``float[N, time, channels]`` in physical units.

    Returns:
      ``(num_values, num_windows)``, the values outside the range and the windows that
      contain one. ``in_range`` clips these values.

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
