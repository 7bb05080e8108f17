"""The networks of conditional GANs, and how windows are made by them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import typed_key
from jaxanon.methods import hub_networks, hub_sampling, pool
from jaxanon.methods.central import Room
from jaxanon.methods.gan_config import CGANConfig
from jaxanon.methods.hub_networks import Judging
from jaxanon.models.analog_bits import AnalogBits, check_values
from jaxanon.models.gan import Critic, Generator
from jaxanon.models.traced import apply
from jaxanon.models.window_classifier import WindowClassifier

GENERATOR, CRITIC = "generator", "critic"
CLASSIFIERS = hub_networks.CLASSIFIERS


class Networks(NamedTuple):
    """What conditional GANs share; windows are standardised, their values as bits."""

    spec: Any
    config: CGANConfig
    bits: AnalogBits
    sizes: dict[str, int]  # number of classes of each attribute
    generator: Generator
    critic: Critic
    classifiers: dict[str, WindowClassifier]

    def init(self, key):
        """Parameters of all."""
        keys = jax.random.split(key, 2 + len(self.classifiers))
        window = jnp.zeros((1, self.spec.time, self.bits.channels))
        noise, classes = jnp.zeros((1, self.config.latent)), jnp.zeros(1, jnp.int32)
        return {
            GENERATOR: self.generator.init(keys[0], noise, classes)["params"],
            CRITIC: self.critic.init(keys[1], window, classes)["params"],
            CLASSIFIERS: hub_networks.init_classifiers(
                self.classifiers, keys[2:], window
            ),
        }

    def make(self, key, generator, classes):
        """``float[batch, time, d]``, windows of public classes, from noise."""
        noise = jax.random.normal(key, (len(classes), self.config.latent))
        return apply(self.generator, generator, noise, classes)

    def judge(self, critic, windows, classes):
        """``float[batch]``, logits of being real windows of those classes."""
        return apply(self.critic, critic, windows, classes)


def networks(spec, config: CGANConfig) -> Networks:
    """The networks for windows of ``spec``.

    Raises:
      ValueError: for a public attribute that is a number, categories that name no
        channel, classes to hide that there are not, or all of them.
    """
    sizes, values = hub_networks.attributes_and_values(spec, config)
    bits = AnalogBits(values, tuple(spec.mean), tuple(spec.std))
    two_valued = tuple(
        count > 0 for count, width in zip(values, bits.widths, strict=True)
        for _ in range(width)
    )  # fmt: skip
    public, widths = sizes[spec.public], tuple(config.widths)
    return Networks(
        spec=spec,
        config=config,
        bits=bits,
        sizes=sizes,
        generator=Generator(spec.time, two_valued, public, widths),
        critic=Critic(public, widths[::-1]),
        classifiers={name: WindowClassifier(size) for name, size in sizes.items()},
    )


class Batch(NamedTuple):
    """Windows as networks see them, and all that is known of them."""

    windows: jax.Array  # float32[batch, time, d]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute


def room(nets: Networks, *, every_class: bool = False) -> Room:
    """Batches drawn uniformly, with replacement, from all clients' windows.

    Args:
      nets: ``Networks``, or others with ``bits``.
      every_class: whether each public class must have windows.
    """
    size, spec = nets.config.batch, nets.spec

    def prepare(clients):
        check_values(clients.windows[clients.mask], spec.channels, nets.bits.values)
        found = pool.pool(spec, clients)
        if every_class:
            pool.check_counts(spec, found.counts, 1, pool.FOR_TELLING)
        return found

    def draw(key, data, copy):
        del copy
        drawn = pool.draw(key, data, size)
        return Batch(nets.bits.encode(drawn.windows), drawn.labels)

    return Room(prepare, draw, lambda data: pool.rounds_per_epoch(data, size), size)


def sampler(nets: Judging, make_fn):
    """Of a ``Method``, as ``Method.sample`` has it, but for ``samples`` and ``avoid``.

    Args:
      nets: with ``spec`` and ``sizes``.
      make_fn: ``(key, params, classes) -> windows`` of public classes, in physical
        units.
    """

    def sample(key, state, classes, samples=None, avoid=None):
        typed_key(key)
        if avoid is not None:
            raise ValueError(
                "a GAN is led away from nothing; leave avoid out, or train privatehub."
            )
        if samples not in (None, nets.spec.time):
            raise ValueError(
                f"a GAN makes windows of {nets.spec.time} samples, as it was trained "
                f"on, got {samples}; leave seconds out, or train privatehub."
            )
        others = sorted(set(classes) - {nets.spec.public})
        if others and not set(others) - set(nets.sizes):
            raise ValueError(
                f"a GAN is told {nets.spec.public!r} alone, got {others} as well; "
                "leave them out, or train privatehub."
            )
        full = hub_sampling.every(nets, classes)
        return make_fn(key, state.params, full[nets.spec.public])

    return sample


def rewriter(nets: Judging, see_fn, make_fn):
    """Of a ``Method``: ``(key, state, windows) -> windows``.

    Each window is made anew, of the class that the classifier tells it is of, or, where
    that is to be hidden, of another.

    Args:
      nets: with ``spec``, ``config`` and ``classifiers``.
      see_fn: ``(params, windows) -> x``, what classifiers see of windows in physical
        units.
      make_fn: as in ``sampler``.
    """

    def anonymize(key, state, windows):
        class_key, make_key = jax.random.split(key)
        x = see_fn(state.params, windows)
        logits, _ = hub_networks.classify(nets, state.params, nets.spec.public, x)
        found = jnp.argmax(logits, axis=-1)
        wanted, _ = hub_sampling.shown_classes(nets, class_key, found)
        return make_fn(make_key, state.params, wanted)

    return anonymize
