"""Networks, settings and batches of TimeGAN."""

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
from jaxanon.models.gan import Recurrent, append_classes
from jaxanon.models.layers import apply

EMBEDDER, RECOVERY, SUPERVISOR = "embedder", "recovery", "supervisor"

GENERATOR, CRITIC, RANGE = "generator", "critic", "range"

CLASSIFIERS = generator.CLASSIFIERS

PARTS = 3  # Batches per joint round: two for the generator, one for the discriminator.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGANConfig:
    """Settings of TimeGAN; the authors' values where they exist.

    The authors train each phase for 50,000 steps. Learning rates and weights are arrays
    in the state, so a sweep can vary them without recompiling.
    """

    categories: tuple[str, ...] = setting(
        (),
        help='categorical channels with values 0 and 1 ("door on", "* on") or 0 to K '
        '- 1 ("mode=4")',
    )
    classes_to_hide: tuple[str, ...] = setting((), help="public classes to conceal")
    learning_rate: float = setting(
        1e-3, above=0, help="learning rate of TimeGAN's networks"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="learning rate of Adam, for the raw-data classifiers"
    )
    batch_size: int = setting(
        128, at_least=1, help="windows per step; a joint round uses 3 batches"
    )
    features: tuple[int, ...] = setting(
        (24, 24, 24), at_least=1, min_length=2, help="widths of the recurrent layers"
    )
    embedding: int = setting(50, at_least=1, help="epochs of the embedding phase")
    supervising: int = setting(50, at_least=1, help="epochs of the supervisor's phase")
    joint: int = setting(
        100,
        at_least=1,
        help="epochs of joint training before fine-tuning with classes_to_hide; "
        "without hidden classes, joint training uses all remaining epochs",
    )
    gamma: float = setting(
        1.0,
        at_least=0,
        help="weight of the discriminator's loss on unsupervised windows",
    )
    finetune_learning_rate: float = setting(
        1e-4, above=0, help="learning rate in fine-tuning"
    )
    confidence_threshold: float = setting(
        0.5, at_least=0, below=1, help="G: minimum probability of the requested class"
    )
    margin: float = setting(0.2, at_least=0, help="margin of the triplet loss")
    replay: float = setting(
        1.0, at_least=0, help="weight of the joint loss in fine-tuning"
    )

    __post_init__ = check


class TimeGANNetworks(NamedTuple):
    """Networks of TimeGAN, for windows scaled to [0, 1] per channel."""

    spec: Any
    config: TimeGANConfig
    bits: AnalogBits  # for rounding only
    sizes: dict[str, int]  # number of classes of each attribute
    recurrent: dict[str, Recurrent]
    classifiers: dict[str, WindowClassifier]

    def init(self, key):
        """Returns all parameters; the range is [0, 1] until the first round."""
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
        """Returns the output of one of the five networks at every step."""
        return apply(self.recurrent[name], params[name], x)

    def discriminate(self, params, latent, classes):
        """Returns ``float[batch, time, 1]``, logits of being embedded real windows."""
        inputs = append_classes(latent, classes, self.sizes[self.spec.public])
        return self.run(params, CRITIC, inputs)

    def imagine(self, key, params, classes):
        """Returns the outputs of the generator, and of the supervisor applied to them.

        Both are ``float[batch, time, d]`` in the embedding space.
        """
        shape = (len(classes), self.spec.time, len(self.spec.channels))
        noise = portable.uniform(key, shape)
        inputs = append_classes(noise, classes, self.sizes[self.spec.public])
        first = self.run(params, GENERATOR, inputs)
        return first, self.run(params, SUPERVISOR, first)

    def make(self, key, params, classes):
        """Generates ``float[batch, time, channels]``, windows in (0, 1)."""
        return self.run(params, RECOVERY, self.imagine(key, params, classes)[1])


def networks(spec, config: TimeGANConfig) -> TimeGANNetworks:
    """Returns the networks for windows of ``spec``.

    Raises:
      ValueError: if the public attribute is a number, categories name no channel, or
        ``classes_to_hide`` names an unknown class or all classes.
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
    """Windows on the device, with the minimum and maximum of each channel."""

    pool: pool.Pool
    low: jax.Array  # float32[channels], standardised
    high: jax.Array


class Part(NamedTuple):
    """Windows in [0, 1] and their labels."""

    windows: jax.Array  # float32[batch, time, channels]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute


class TimeGANBatch(NamedTuple):
    """Three independent batches; most components use only the first."""

    parts: tuple[Part, ...]
    positives: Any = None  # Part, other windows of the first part's classes
    negatives: Any = None  # int32[batch], classes to hide

    @property
    def windows(self):
        """Windows of the first part."""
        return self.parts[0].windows

    @property
    def labels(self):
        """Labels of the first part."""
        return self.parts[0].labels


def batch_source(nets: TimeGANNetworks) -> BatchSource:
    """Returns a source of batches drawn with replacement from all clients' windows."""
    size, spec = nets.config.batch_size, nets.spec
    names = spec.classes[spec.public]
    hidden = [names.index(name) for name in nets.config.classes_to_hide]

    def prepare(clients):
        check_values(clients.windows[clients.mask], spec.channels, nets.bits.values)
        data = pool.pool(spec, clients)
        required = (2, pool.FOR_HIDING) if hidden else (1, pool.FOR_TELLING)
        pool.check_counts(spec, data.counts, *required)
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
    """Scales standardised windows to [0, 1]."""
    return (x - low[None, None]) / (high - low)[None, None]


def physical(nets: TimeGANNetworks, params, x):
    """Converts windows in [0, 1] to physical units; rounds categorical channels."""
    low, high = params[RANGE]["low"][None, None], params[RANGE]["high"][None, None]
    return generator.physical(nets, x * (high - low) + low)
