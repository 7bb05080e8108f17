"""Conditional GANs that PrivateHub is compared with: settings, players, methods."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Generation, Method
from jaxanon.core.registry import register
from jaxanon.kernels import portable
from jaxanon.kernels.bounds import check, setting
from jaxanon.kernels.checks import typed_key
from jaxanon.methods.common import generator as common_generator
from jaxanon.methods.common.alternating import Component, central
from jaxanon.methods.common.generator import Judging, classify
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits
from jaxanon.models.gan import Critic, Generator
from jaxanon.models.layers import apply
from jaxanon.models.losses import weighted_cross_entropy

PRIVACY_LOSSES = ("confusion", "paper")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CGANConfig:
    """A conditional GAN's settings; none is published, these are our own.

    Step sizes are defaults here and arrays in the state, which a sweep may vary without
    compiling anew.
    """

    categories: tuple[str, ...] = setting(
        (),
        help='channels that hold 0 or 1 ("door on", "* on"), or 0 to K - 1 ("mode=4")',
    )
    classes_to_hide: tuple[str, ...] = setting(
        (), help="public classes to conceal: real windows of them count as made up"
    )
    learning_rate: float = setting(2e-4, above=0, help="step size of the generator")
    discriminator_learning_rate: float = setting(
        2e-4, above=0, help="step size of the critic"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="step size of Adam, for the classifiers of raw windows"
    )
    batch_size: int = setting(64, at_least=1, help="windows per step")
    latent_dim: int = setting(32, at_least=1, help="size of the noise behind a window")
    widths: tuple[int, ...] = setting(
        (128, 64), at_least=1, min_length=1, help="of generator blocks, doubling time"
    )

    __post_init__ = check


@dataclasses.dataclass(frozen=True, kw_only=True)
class OccupancyGANConfig(CGANConfig):
    """Occupancy-GAN's settings: those of a conditional GAN, and weights of losses."""

    utility: float = setting(1.0, at_least=0, help="weight of the public classifier")
    privacy: float = setting(1.0, at_least=0, help="weight of the hiding classifier")
    privacy_loss: str = setting(
        "confusion",
        choices=PRIVACY_LOSSES,
        help="confusion: windows of classes to hide lie as near to each other class; "
        "paper: the classifier's loss grows, without a bound",
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.classes_to_hide:
            raise ValueError(
                "classes_to_hide must name a class at least: without one there is "
                "nothing "
                "for "
                "occupancy_gan's second classifier; cgan conceals nothing."
            )


GENERATOR, CRITIC = "generator", "critic"

CLASSIFIERS = common_generator.CLASSIFIERS


class CGANNetworks(NamedTuple):
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
        noise, classes = jnp.zeros((1, self.config.latent_dim)), jnp.zeros(1, jnp.int32)
        return {
            GENERATOR: self.generator.init(keys[0], noise, classes)["params"],
            CRITIC: self.critic.init(keys[1], window, classes)["params"],
            CLASSIFIERS: common_generator.init_classifiers(
                self.classifiers, keys[2:], window
            ),
        }

    def make(self, key, generator, classes):
        """``float[batch, time, d]``, windows of public classes, from noise."""
        noise = portable.normal(key, (len(classes), self.config.latent_dim))
        return apply(self.generator, generator, noise, classes)

    def judge(self, critic, windows, classes):
        """``float[batch]``, logits of being real windows of those classes."""
        return apply(self.critic, critic, windows, classes)


def networks(spec, config: CGANConfig) -> CGANNetworks:
    """The networks for windows of ``spec``.

    Raises:
      ValueError: for a public attribute that is a number, categories that name no
        channel, classes to hide that there are not, or all of them.
    """
    sizes, values = common_generator.attributes_and_values(spec, config)
    bits = AnalogBits(values, tuple(spec.mean), tuple(spec.std))
    two_valued = tuple(
        count > 0 for count, width in zip(values, bits.widths, strict=True)
        for _ in range(width)
    )  # fmt: skip
    public, widths = sizes[spec.public], tuple(config.widths)
    return CGANNetworks(
        spec=spec,
        config=config,
        bits=bits,
        sizes=sizes,
        generator=Generator(spec.time, two_valued, public, widths),
        critic=Critic(public, widths[::-1]),
        classifiers={name: WindowClassifier(size) for name, size in sizes.items()},
    )


def sampler(nets: Judging, make_fn):
    """``Generation.sample`` of a method, without ``samples`` and ``avoid``.

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
        full = common_generator.every(nets, classes)
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
        class_key, make_key = portable.split(key)
        x = see_fn(state.params, windows)
        logits, _ = common_generator.classify(nets, state.params, nets.spec.public, x)
        found = jnp.argmax(logits, axis=-1)
        wanted, _ = common_generator.shown_classes(nets, class_key, found)
        return make_fn(make_key, state.params, wanted)

    return anonymize


HYPER = ("learning_rate", "discriminator_learning_rate", "classifier_learning_rate")

MOMENTUM = 0.5  # Radford, Metz, Chintala, ICLR 2016, section 3.


def build(
    name: str, nets: CGANNetworks, hyper, critic: Component, generator: Component
):
    """A ``Method``, the GAN of those two players."""
    make_fn = lambda *given: made(nets, *given)
    see_fn = lambda params, windows: nets.bits.encode(
        common_generator.standardised(nets, windows)
    )
    method = central(
        name,
        nets.config,
        nets.spec,
        common_generator.batch_source(nets, every_class=True),
        init_fn=nets.init,
        players=(critic, generator, common_generator.classifying(nets)),
        hyper={name: getattr(nets.config, name) for name in hyper},
    )
    return method._replace(
        anonymize=rewriter(nets, see_fn, make_fn),
        generate=Generation(sampler(nets, make_fn)),
        tokens=True,
    )


def made(nets: CGANNetworks, key, params, classes):
    """Windows of public classes, ``float32[n, time, channels]``, in physical units."""
    x = nets.make(key, params[GENERATOR], classes)
    return common_generator.physical(nets, nets.bits.decode(x))


def judging(nets: CGANNetworks, *, concealing: bool) -> Component:
    """The critic, by the cross-entropy of what is real.

    With ``concealing`` real windows of classes to hide count as made up.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch, given):
        del hyper, given
        labels = batch.labels[public]
        windows = nets.make(key, params[GENERATOR], labels)
        real = nets.judge(params[CRITIC], batch.windows, labels)
        made_up = nets.judge(params[CRITIC], windows, labels)
        secret = concealing & common_generator.is_hidden(nets)[labels]
        each = jax.nn.softplus(jnp.where(secret, real, -real))
        loss = jnp.mean(each) + jnp.mean(jax.nn.softplus(made_up))
        return loss, ({"critic": loss}, {})

    optimizer = optax.scale_by_adam(b1=MOMENTUM)
    return Component(
        (CRITIC,),
        loss_fn,
        learning_rate="discriminator_learning_rate",
        optimizer=optimizer,
    )


def generating(nets: CGANNetworks, more_fn=None) -> Component:
    """The generator, by how sure the critic is that its windows are none.

    ``more_fn(params, windows, labels, hyper) -> (float[], info)`` is added.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch, given):
        del given
        labels = batch.labels[public]
        windows = nets.make(key, params[GENERATOR], labels)
        made_up = nets.judge(params[CRITIC], windows, labels)
        loss = jnp.mean(jax.nn.softplus(-made_up))
        info = {"generator": loss}
        if more_fn is not None:
            more, told = more_fn(params, windows, labels, hyper)
            loss, info = loss + more, info | told
        return loss, (info, {})

    return Component((GENERATOR,), loss_fn, optimizer=optax.scale_by_adam(b1=MOMENTUM))


@register("cgan", config=CGANConfig)
def cgan(spec, config) -> Method:
    """Builds a conditional GAN for windows of ``spec``, a baseline of PrivateHub's.

    The critic learns to tell real windows from made ones, both with their public class
    beside them, and the generator to be taken for real. Where there are classes in
    ``classes_to_hide``, the critic learns that their real windows are made up as well,
    so that the generator gains nothing by windows like those; so does the chapter
    conceal them.

    ``sample`` makes windows of classes that one names. ``anonymize`` makes each window
    anew, of its class as a classifier of raw windows tells it, or of another class if
    that is to be hidden.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CGANConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, or ``classes_to_hide`` names no class,
        or all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> cgan(load("smartwatch").spec, latent_dim=8).config.latent_dim
      8

    References:
      Mirza and Osindero, Conditional generative adversarial nets, 2014; chapter 4 of
      the dissertation in which Atlas is chapter 3, section 4.4.2.
    """
    nets = networks(spec, config)
    players = judging(nets, concealing=True), generating(nets)
    return build("cgan", nets, HYPER, *players)


@register("occupancy_gan", config=OccupancyGANConfig)
def occupancy_gan(spec, config) -> Method:
    """Builds Occupancy-GAN for windows of ``spec``, a baseline of PrivateHub's.

    A conditional GAN whose generator also learns by two losses of a classifier of raw
    windows: that of windows made of classes to show, which it lowers, and that of
    windows made of classes in ``classes_to_hide``, which it raises. The latter has no
    bound in the published form (``privacy_loss="paper"``), so that it soon outweighs
    all else; here each such window is to look as much of one class as of any other.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``OccupancyGANConfig``.

    Returns:
      ``Method``, with ``sample``; the rest is as in ``cgan``.

    Raises:
      ValueError: if a setting is out of range, or ``classes_to_hide`` names no class,
        or all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> occupancy_gan(spec, classes_to_hide=(spec.classes[spec.public][0],)).name
      'occupancy_gan'

    References:
      Chapter 4 of the dissertation in which Atlas is chapter 3, section 4.4.2, and its
      reference [92], for the two classifiers.
    """
    nets = networks(spec, config)
    more_fn = functools.partial(told_by_classifiers, nets, variant=config.privacy_loss)
    hyper = (*HYPER, "utility", "privacy")
    players = (
        judging(nets, concealing=False),
        generating(nets, more_fn),
    )
    return build("occupancy_gan", nets, hyper, *players)


def told_by_classifiers(nets: CGANNetworks, params, windows, labels, hyper, variant):
    """What the two classifiers add to a generator's loss, and both parts of it.

    Args:
      nets: ``CGANNetworks``.
      params: with the classifiers'.
      windows: ``float[batch, time, d]``, made.
      labels: ``int32[batch]``, of which public classes they are.
      hyper: with ``utility`` and ``privacy``.
      variant: of ``PRIVACY_LOSSES``.

    Returns:
      ``float[]``, and a dict of two.
    """
    logits, _ = classify(nets, params, nets.spec.public, windows)
    secret = common_generator.is_hidden(nets)[labels].astype(jnp.float32)
    shown = weighted_cross_entropy(logits, labels, 1 - secret)
    chances = jax.nn.log_softmax(logits)
    if variant == "paper":
        # Lowered as it falls: the classifier's loss grows.
        each = jnp.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
    else:
        each = -jnp.mean(chances, axis=-1)
    concealed = jnp.sum(secret * each) / jnp.maximum(jnp.sum(secret), 1)
    info = {"shown": shown, "concealed": concealed}
    return hyper["utility"] * shown + hyper["privacy"] * concealed, info
