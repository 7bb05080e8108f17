"""The networks of TimeGAN, and what it trains on."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import generator, pool
from jaxanon.methods.common.alternating import BatchSource
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits, check_values
from jaxanon.models.gan import Recurrent, with_classes
from jaxanon.models.layers import apply

EMBEDDER, RECOVERY, SUPERVISOR = "embedder", "recovery", "supervisor"

GENERATOR, CRITIC, RANGE = "generator", "critic", "range"

CLASSIFIERS = generator.CLASSIFIERS

PARTS = 3  # Batches of a joint round: two of the generator's, one of the critic's.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGANConfig:
    """TimeGAN's settings, its authors' where they have them.

    Theirs are 50,000 steps of each phase. Step sizes and weights are defaults here and
    arrays in the state, which a sweep may vary without compiling anew.
    """

    categories: tuple[str, ...] = setting(
        (),
        help='channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")',
    )
    classes_to_hide: tuple[str, ...] = setting((), help="public classes to conceal")
    learning_rate: float = setting(1e-3, above=0, help="step size of all its networks")
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="step size of Adam, for the classifiers of raw windows"
    )
    batch_size: int = setting(
        128, at_least=1, help="windows per step; a joint round takes 3 batches"
    )
    features: tuple[int, ...] = setting(
        (24, 24, 24), at_least=1, min_length=2, help="widths of the recurrent layers"
    )
    embedding: int = setting(50, at_least=1, help="epochs of the embedding")
    supervising: int = setting(50, at_least=1, help="epochs of the supervisor")
    joint: int = setting(
        100,
        at_least=1,
        help="epochs in which all learn, before fine-tuning, if there are classes to "
        "hide; else all that are left",
    )
    gamma: float = setting(
        1.0, at_least=0, help="weight of the critic's loss on unsupervised windows"
    )
    finetune_learning_rate: float = setting(
        1e-4, above=0, help="step size in fine-tuning"
    )
    confidence_threshold: float = setting(
        0.5, at_least=0, below=1, help="G: least probability"
    )
    margin: float = setting(0.2, at_least=0, help="of the triplet loss")
    replay: float = setting(1.0, at_least=0, help="weight of the joint loss at the end")

    __post_init__ = check


class TimeGANNetworks(NamedTuple):
    """What TimeGAN is made of; windows are scaled to [0, 1], channel by channel."""

    spec: Any
    config: TimeGANConfig
    bits: AnalogBits  # for rounding only
    sizes: dict[str, int]  # number of classes of each attribute
    recurrent: dict[str, Recurrent]
    classifiers: dict[str, WindowClassifier]

    def init(self, key):
        """Parameters of all; the range is empty until there are data."""
        keys = jax.random.split(key, 5 + len(self.classifiers))
        time, channels = self.spec.time, len(self.spec.channels)
        width, classes = self.config.features[-1], self.sizes[self.spec.public]
        inputs = {
            EMBEDDER: channels,
            RECOVERY: width,
            SUPERVISOR: width,
            GENERATOR: channels + classes,
            CRITIC: width + classes,
        }
        params: dict[str, Any] = {
            name: self.recurrent[name].init(key, jnp.zeros((1, time, d)))["params"]
            for (name, d), key in zip(inputs.items(), keys[:5], strict=True)
        }
        window = jnp.zeros((1, time, channels))
        params[CLASSIFIERS] = generator.init_classifiers(
            self.classifiers, keys[5:], window
        )
        params[RANGE] = {"low": jnp.zeros(channels), "high": jnp.ones(channels)}
        return params

    def run(self, params, name: str, x):
        """What one of the five says at every step."""
        return apply(self.recurrent[name], params[name], x)

    def judge(self, params, latent, classes):
        """Logits of being embedded, not made up, ``float[batch, time, 1]``."""
        told = with_classes(latent, classes, self.sizes[self.spec.public])
        return self.run(params, CRITIC, told)

    def imagine(self, key, params, classes):
        """What the generator makes of noise, and what the supervisor makes of that.

        Both ``float[batch, time, d]``, as windows are embedded.
        """
        shape = (len(classes), self.spec.time, len(self.spec.channels))
        noise = portable.uniform(key, shape)
        told = with_classes(noise, classes, self.sizes[self.spec.public])
        first = self.run(params, GENERATOR, told)
        return first, self.run(params, SUPERVISOR, first)

    def make(self, key, params, classes):
        """``float[batch, time, channels]``, windows of public classes, in (0, 1)."""
        return self.run(params, RECOVERY, self.imagine(key, params, classes)[1])


def networks(spec, config: TimeGANConfig) -> TimeGANNetworks:
    """The networks for windows of ``spec``.

    Raises:
      ValueError: for a public attribute that is a number, categories that name no
        channel, classes to hide that there are not, or all of them.
    """
    sizes, values = generator.attributes_and_values(spec, config)
    features = tuple(config.features)
    width, channels = features[-1], len(spec.channels)
    return TimeGANNetworks(
        spec=spec,
        config=config,
        bits=AnalogBits(values, tuple(spec.mean), tuple(spec.std)),
        sizes=sizes,
        recurrent={
            EMBEDDER: Recurrent(features, width),
            RECOVERY: Recurrent(features, channels),
            SUPERVISOR: Recurrent(features[1:], width),
            GENERATOR: Recurrent(features, width),
            CRITIC: Recurrent(features, 1, sigmoid=False),
        },
        classifiers={name: WindowClassifier(size) for name, size in sizes.items()},
    )


class Prepared(NamedTuple):
    """Windows on the device, and the least and the largest of each channel."""

    pool: pool.Pool
    low: jax.Array  # float32[channels], standardised
    high: jax.Array


class Part(NamedTuple):
    """Windows in [0, 1] and their labels."""

    windows: jax.Array  # float32[batch, time, channels]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute


class TimeGANBatch(NamedTuple):
    """Three of them, of which the first is what most of training sees."""

    parts: tuple[Part, ...]
    positives: Any = None  # Part, others of the first one's classes
    negatives: Any = None  # int32[batch], classes to hide

    @property
    def windows(self):
        """Of the first part."""
        return self.parts[0].windows

    @property
    def labels(self):
        """Of the first part."""
        return self.parts[0].labels


def batch_source(nets: TimeGANNetworks) -> BatchSource:
    """Batches drawn uniformly, with replacement, from all clients' windows."""
    size, spec = nets.config.batch_size, nets.spec
    names = spec.classes[spec.public]
    hidden = [names.index(name) for name in nets.config.classes_to_hide]

    def prepare(clients):
        check_values(clients.windows[clients.mask], spec.channels, nets.bits.values)
        data = pool.pool(spec, clients)
        needed = (2, pool.FOR_HIDING) if hidden else (1, pool.FOR_TELLING)
        pool.check_counts(spec, data.counts, *needed)
        low, high = data.windows.min(axis=(0, 1)), data.windows.max(axis=(0, 1))
        return Prepared(data, low, jnp.where(high > low, high, low + 1))

    def part(key, data, public=None):
        drawn = pool.draw(key, data.pool, size, public)
        return Part(scaled(drawn.windows, data.low, data.high), drawn.labels)

    def draw(key, data, copy):
        del copy
        *keys, other_key, class_key = jax.random.split(key, PARTS + 2)
        batch = TimeGANBatch(tuple(part(key, data) for key in keys))
        if not hidden:
            return batch
        classes = jax.random.choice(class_key, jnp.array(hidden, jnp.int32), (size,))
        others = part(other_key, data, batch.labels[spec.public])
        return batch._replace(positives=others, negatives=classes)

    return BatchSource(
        prepare, draw, lambda data: pool.rounds_per_epoch(data.pool, size), size
    )


def scaled(x, low, high):
    """Standardised windows in [0, 1]."""
    return (x - low[None, None]) / (high - low)[None, None]


def physical(nets: TimeGANNetworks, params, x):
    """Windows in [0, 1] in physical units; values of categorical channels whole."""
    low, high = params[RANGE]["low"][None, None], params[RANGE]["high"][None, None]
    return generator.physical(nets, x * (high - low) + low)
