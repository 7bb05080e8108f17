"""The networks of PrivateHub: a denoiser of windows and classifiers of raw ones."""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.methods.diffusion_config import SCHEDULES
from jaxanon.methods.draws import attributes
from jaxanon.methods.privatehub_config import PrivateHubConfig
from jaxanon.models.analog_bits import AnalogBits, values_of
from jaxanon.models.conditions import Condition, nothing
from jaxanon.models.traced import apply
from jaxanon.models.unet import UNet, check_halved
from jaxanon.models.window_classifier import WindowClassifier

DENOISER, CLASSIFIERS = "denoiser", "classifiers"
AVERAGE, STATISTICS = "average", "statistics"


class Judging(Protocol):
    """Networks that have classifiers of their spec's attributes among them."""

    @property
    def spec(self) -> Any: ...
    @property
    def config(self) -> Any: ...  # with ``hide``
    @property
    def bits(self) -> AnalogBits: ...
    @property
    def sizes(self) -> dict[str, int]: ...
    @property
    def classifiers(self) -> dict[str, WindowClassifier]: ...


class Networks(NamedTuple):
    """What all of PrivateHub shares; windows are standardised, their values as bits."""

    spec: Any
    config: PrivateHubConfig
    bits: AnalogBits
    schedule: kernels.NoiseSchedule
    sizes: dict[str, int]  # number of classes of each attribute
    unet: UNet
    classifiers: dict[str, WindowClassifier]

    @property
    def num_features(self) -> int:
        """Of the statistics that a condition has."""
        return 3 * self.bits.channels

    def init(self, key):
        """Parameters of both; the statistics are empty until there are data."""
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        key, unet_key = jax.random.split(key)
        step, told = jnp.ones(1, jnp.int32), self.nothing(1)
        denoiser = self.unet.init(unet_key, window, step, told)["params"]
        keys = jax.random.split(key, len(self.classifiers))
        classes, d = self.sizes[self.spec.public], self.bits.channels
        measured = len(self.bits.values)
        return {
            DENOISER: denoiser,
            CLASSIFIERS: init_classifiers(self.classifiers, keys, window),
            AVERAGE: jax.tree.map(jnp.copy, denoiser),
            STATISTICS: {
                "center": jnp.zeros((classes, d)),
                "spread": jnp.zeros((classes, d)),
                "mean": jnp.zeros((classes, 2 * d)),
                "root": jnp.zeros((classes, 2 * d, 2 * d)),
                "roughness": jnp.zeros((classes, measured)),
            },
        }

    def denoise(self, denoiser, x, t, condition):
        """What the U-Net of those parameters predicts, in the shape of ``x``."""
        return apply(self.unet, denoiser, x, t, condition)

    def nothing(self, batch: int) -> Condition:
        """The condition that says nothing."""
        return nothing(self.sizes, self.num_features, batch)


def networks(spec, config: PrivateHubConfig) -> Networks:
    """The networks for windows of ``spec``.

    Raises:
      ValueError: for a public attribute that is a number, a window that cannot be
        halved, categories that name no channel, classes to hide that there are not, or
        all of them.
    """
    sizes, values = attributes_and_values(spec, config)
    check_halved(spec.time, len(config.widths))
    read = tuple(config.classifier_filters), config.classifier_features
    return Networks(
        spec=spec,
        config=config,
        bits=AnalogBits(values, tuple(spec.mean), tuple(spec.std)),
        schedule=SCHEDULES[config.schedule](config.num_steps),
        sizes=sizes,
        unet=UNet(
            tuple(sizes.items()),
            tuple(config.widths),
            config.blocks,
            config.heads,
            config.dtype,
        ),
        classifiers={name: WindowClassifier(n, *read) for name, n in sizes.items()},
    )


def init_classifiers(classifiers, keys, window) -> dict:
    """Parameters of each classifier, by its attribute's name.

    Args:
      classifiers: a network of each attribute.
      keys: typed PRNG keys, one of each.
      window: what they see, ``float[1, time, d]``.
    """
    pairs = zip(classifiers.items(), keys, strict=True)
    return {name: net.init(key, window)["params"] for (name, net), key in pairs}


def classify(nets: Judging, params, name: str, x, key=None, dropout=0.0):
    """Logits and features of an attribute, by its classifier.

    Args:
      nets: with ``classifiers``.
      params: with theirs.
      name: of the attribute.
      x: ``float[batch, time, d]``, as the networks see windows.
      key, dropout: of ``WindowClassifier``.

    Returns:
      ``float[batch, classes]`` and ``float[batch, features]``.
    """
    own = params[CLASSIFIERS][name]
    return apply(nets.classifiers[name], own, x, key, dropout)


def attributes_and_values(spec, config):
    """Classes of each attribute, and how many values each channel has.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      config: with ``categories`` and ``hide``.

    Returns:
      A dict of ints, and a tuple of them, 0 of a channel that is measured.

    Raises:
      ValueError: for a public attribute that is a number, categories that name no
        channel, classes to hide that there are not, one of them twice, or all.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    unknown = [name for name in config.hide if name not in spec.classes[spec.public]]
    if unknown:
        raise ValueError(
            f"hide must name classes of {spec.public!r}, of "
            f"{spec.classes[spec.public]}, a word each (--hide A B), got {unknown}."
        )
    if len(set(config.hide)) < len(config.hide):
        raise ValueError(f"hide names a class twice, got {list(config.hide)}.")
    if len(config.hide) == sizes[spec.public]:
        raise ValueError(
            f"hide names every class of {spec.public!r}, {config.hide}; leave one to "
            "be shown."
        )
    return sizes, values


def sizes_and_values(spec, categories):
    """The same where nothing is hidden.

    Raises:
      ValueError: for a public attribute that is a number, or categories that name no
        channel.
    """
    sizes = {name: spec.num_classes(name) for name in attributes(spec)}
    if spec.tokens:
        return sizes, (spec.tokens,)
    return sizes, values_of(spec.channels, categories)
