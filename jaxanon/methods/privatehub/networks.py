"""Networks of PrivateHub: a denoiser and classifiers of raw windows."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER, SCHEDULES
from jaxanon.methods.common.generator import (
    CLASSIFIERS,
    attributes_and_values,
    init_classifiers,
)
from jaxanon.methods.privatehub.config import PrivateHubConfig
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits, Condition, null_condition
from jaxanon.models.layers import apply
from jaxanon.models.unet import UNet, check_halved

STATISTICS = "statistics"


class PrivateHubNetworks(NamedTuple):
    """Networks of PrivateHub, for standardised windows encoded as bits."""

    spec: Any
    config: PrivateHubConfig
    bits: AnalogBits
    schedule: kernels.NoiseSchedule
    sizes: dict[str, int]  # number of classes of each attribute
    unet: UNet
    classifiers: dict[str, WindowClassifier]

    @property
    def num_features(self) -> int:
        """Number of statistics in a condition."""
        return 3 * self.bits.channels

    def init(self, key):
        """Returns all parameters; the statistics are zero until the first round."""
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        key, unet_key = jax.random.split(key)
        step, condition = jnp.ones(1, jnp.int32), self.nothing(1)
        denoiser = self.unet.init(unet_key, window, step, condition)["params"]
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
        """Returns the output of the U-Net, in the shape of ``x``."""
        return apply(self.unet, denoiser, x, t, condition)

    def nothing(self, batch: int) -> Condition:
        """Returns the null condition."""
        return null_condition(self.sizes, self.num_features, batch)


def networks(spec, config: PrivateHubConfig) -> PrivateHubNetworks:
    """Returns the networks for windows of ``spec``.

    Raises:
      ValueError: if the public attribute is a number, the window length cannot be
        halved, categories name no channel, or ``classes_to_hide`` names an unknown
        class or all classes.
    """
    sizes, values = attributes_and_values(spec, config)
    check_halved(spec.time, len(config.widths))
    classifier_args = tuple(config.classifier_filters), config.classifier_features
    return PrivateHubNetworks(
        spec=spec,
        config=config,
        bits=AnalogBits(values, tuple(spec.mean), tuple(spec.std)),
        schedule=SCHEDULES[config.schedule](config.num_train_timesteps),
        sizes=sizes,
        unet=UNet(
            tuple(sizes.items()),
            tuple(config.widths),
            config.blocks,
            config.heads,
            config.dtype,
        ),
        classifiers={
            name: WindowClassifier(n, *classifier_args) for name, n in sizes.items()
        },
    )
