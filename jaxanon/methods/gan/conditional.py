"""Conditional GANs, baselines of PrivateHub: settings, components and methods."""

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
from jaxanon.methods.common import recipes
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
    """Settings of a conditional GAN; jaxanon's own, because none are published.

    Learning rates are arrays in the state, so a sweep can vary them without
    recompiling.
    """

    categories: tuple[str, ...] = setting(
        (),
        help='categorical channels with values 0 and 1 ("door on", "* on") or 0 to K '
        '- 1 ("mode=4")',
    )
    classes_to_hide: tuple[str, ...] = setting(
        (),
        help="public classes to conceal; the discriminator treats their real windows "
        "as synthetic",
    )
    learning_rate: float = setting(2e-4, above=0, help="learning rate of the generator")
    discriminator_learning_rate: float = setting(
        2e-4, above=0, help="learning rate of the discriminator"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="learning rate of Adam, for the raw-data classifiers"
    )
    batch_size: int = setting(64, at_least=1, help="windows per step")
    latent_dim: int = setting(
        32, at_least=1, help="size of the generator's noise input"
    )
    widths: tuple[int, ...] = setting(
        (128, 64),
        at_least=1,
        min_length=1,
        help="widths of the generator's blocks, each of which doubles the time axis",
    )

    __post_init__ = check


@dataclasses.dataclass(frozen=True, kw_only=True)
class OccupancyGANConfig(CGANConfig):
    """Settings of Occupancy-GAN: a conditional GAN's and the weights of its losses."""

    utility: float = setting(
        1.0, at_least=0, help="weight of the public classifier's loss"
    )
    privacy: float = setting(
        1.0, at_least=0, help="weight of the hiding classifier's loss"
    )
    privacy_loss: str = setting(
        "confusion",
        choices=PRIVACY_LOSSES,
        help="confusion: make windows of hidden classes equally likely to be of any "
        "class; paper: maximise the classifier's loss, which has no bound",
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.classes_to_hide:
            raise ValueError(
                "classes_to_hide must name at least one class for occupancy_gan, got "
                "(); name one, or train cgan."
            )


GENERATOR, CRITIC = "generator", "critic"

CLASSIFIERS = common_generator.CLASSIFIERS


class CGANNetworks(NamedTuple):
    """Networks of a conditional GAN, for standardised windows encoded as bits."""

    spec: Any
    config: CGANConfig
    bits: AnalogBits
    sizes: dict[str, int]  # number of classes of each attribute
    generator: Generator
    critic: Critic
    classifiers: dict[str, WindowClassifier]

    def init(self, key):
        """Returns the parameters of all networks."""
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
        """Generates windows of public classes from noise, ``float[batch, time, d]``."""
        noise = portable.normal(key, (len(classes), self.config.latent_dim))
        return apply(self.generator, generator, noise, classes)

    def discriminate(self, critic, windows, classes):
        """Returns ``float[batch]``, logits of being real windows of those classes."""
        return apply(self.critic, critic, windows, classes)


def networks(spec, config: CGANConfig) -> CGANNetworks:
    """Returns the networks for windows of ``spec``.

    Raises:
      ValueError: if the public attribute is a number, categories name no channel, or
        ``classes_to_hide`` names an unknown class or all classes.
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
    """Returns ``Generation.sample`` of a GAN, which rejects ``samples`` and ``avoid``.

    Args:
      nets: networks with ``spec`` and ``sizes``.
      make_fn: ``(key, params, classes) -> windows`` of public classes, in physical
        units.
    """

    def sample(key, state, classes, samples=None, avoid=None):
        typed_key(key)
        if avoid is not None:
            raise ValueError(
                "avoid must be None for a GAN, which has no guidance; omit avoid, or "
                "train privatehub."
            )
        if samples not in (None, nets.spec.time):
            raise ValueError(
                f"samples must be {nets.spec.time} for a GAN, the length of its "
                f"training windows, got {samples}; omit seconds, or train privatehub."
            )
        others = sorted(set(classes) - {nets.spec.public})
        if others and not set(others) - set(nets.sizes):
            raise ValueError(
                f"classes of a GAN must be of {nets.spec.public!r} only, got {others}; "
                "omit them, or train privatehub."
            )
        full = common_generator.every(nets, classes)
        return make_fn(key, state.params, full[nets.spec.public])

    return sample


def rewriter(nets: Judging, see_fn, make_fn):
    """Returns ``anonymize`` of a GAN: ``(key, state, windows) -> windows``.

    The GAN generates a new window in place of each window. The new window has the class
    that the classifier predicts or, if that class is hidden, another class.

    Args:
      nets: networks with ``spec``, ``config`` and ``classifiers``.
      see_fn: ``(params, windows) -> x``, the classifiers' input for windows in physical
        units.
      make_fn: as in ``sampler``.
    """

    def anonymize(key, state, windows):
        class_key, make_key = portable.split(key)
        x = see_fn(state.params, windows)
        logits, _ = common_generator.classify(nets, state.params, nets.spec.public, x)
        predicted = jnp.argmax(logits, axis=-1)
        classes, _ = common_generator.shown_classes(nets, class_key, predicted)
        return make_fn(make_key, state.params, classes)

    return anonymize


HYPER = ("learning_rate", "discriminator_learning_rate", "classifier_learning_rate")

MOMENTUM = 0.5  # Radford, Metz, Chintala, ICLR 2016, section 3.


def build(
    name: str, nets: CGANNetworks, hyper, critic: Component, generator: Component
):
    """Returns the ``Method`` of a GAN with these two components."""
    make_fn = lambda *args: generate_windows(nets, *args)
    see_fn = lambda params, windows: nets.bits.encode(
        common_generator.standardised(nets, windows)
    )
    method = central(
        name,
        nets.config,
        nets.spec,
        common_generator.batch_source(nets, every_class=True),
        init_fn=nets.init,
        components=(critic, generator, common_generator.classifying(nets)),
        hyper={name: getattr(nets.config, name) for name in hyper},
    )
    return method._replace(
        anonymize=rewriter(nets, see_fn, make_fn),
        generate=Generation(sampler(nets, make_fn)),
        tokens=True,
    )


def generate_windows(nets: CGANNetworks, key, params, classes):
    """Generates ``float32[n, time, channels]``, windows in physical units."""
    x = nets.make(key, params[GENERATOR], classes)
    return common_generator.physical(nets, nets.bits.decode(x))


def judging(nets: CGANNetworks, *, concealing: bool) -> Component:
    """Returns the component of the discriminator, with a cross-entropy loss.

    With ``concealing``, real windows of hidden classes count as synthetic.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch, given):
        del hyper, given
        labels = batch.labels[public]
        windows = nets.make(key, params[GENERATOR], labels)
        real = nets.discriminate(params[CRITIC], batch.windows, labels)
        synthetic = nets.discriminate(params[CRITIC], windows, labels)
        hidden = concealing & common_generator.is_hidden(nets)[labels]
        each = jax.nn.softplus(jnp.where(hidden, real, -real))
        loss = jnp.mean(each) + jnp.mean(jax.nn.softplus(synthetic))
        return loss, ({"critic": loss}, {})

    optimizer = optax.flatten(optax.scale_by_adam(b1=MOMENTUM))
    return Component(
        (CRITIC,),
        loss_fn,
        learning_rate="discriminator_learning_rate",
        optimizer=optimizer,
    )


def generating(nets: CGANNetworks, more_fn=None) -> Component:
    """Returns the component of the generator, with the non-saturating GAN loss.

    ``more_fn(params, windows, labels, hyper) -> (float[], info)`` adds to the loss.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch, given):
        del given
        labels = batch.labels[public]
        windows = nets.make(key, params[GENERATOR], labels)
        synthetic = nets.discriminate(params[CRITIC], windows, labels)
        loss = jnp.mean(jax.nn.softplus(-synthetic))
        info = {"generator": loss}
        if more_fn is not None:
            more, more_info = more_fn(params, windows, labels, hyper)
            loss, info = loss + more, info | more_info
        return loss, (info, {})

    optimizer = optax.flatten(optax.scale_by_adam(b1=MOMENTUM))
    return Component((GENERATOR,), loss_fn, optimizer=optimizer)


@register("cgan", config=CGANConfig, recipes=recipes.CGAN)
def cgan(spec, config) -> Method:
    """Builds a conditional GAN for windows of ``spec``, a baseline of PrivateHub.

    The discriminator learns to distinguish real from synthetic windows, and the
    generator learns to fool it. Both are conditioned on the public class. The
    discriminator treats real windows of ``classes_to_hide`` as synthetic, so that the
    generator has no reason to imitate them. This is how the chapter conceals classes.

    ``sample`` generates windows of the requested classes. ``anonymize`` replaces each
    window by a generated one. Its class is the one that a raw-data classifier predicts
    or, if that class is hidden, another.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CGANConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, or ``classes_to_hide`` names an unknown
        class or all classes.

    Example:
      >>> from jaxanon.datasets import load
      >>> cgan(load("smartwatch").spec, latent_dim=8).config.latent_dim
      8

    References:
      Mirza and Osindero, Conditional generative adversarial nets, 2014; chapter 4 of
      the dissertation in which Atlas is chapter 3, section 4.4.2.
    """
    nets = networks(spec, config)
    components = judging(nets, concealing=True), generating(nets)
    return build("cgan", nets, HYPER, *components)


@register("occupancy_gan", config=OccupancyGANConfig, recipes=recipes.OCCUPANCY_GAN)
def occupancy_gan(spec, config) -> Method:
    """Builds Occupancy-GAN for windows of ``spec``, a baseline of PrivateHub.

    A conditional GAN whose generator has two more losses, from a classifier of raw
    windows. It lowers the classifier's loss on generated windows of other classes and
    raises it on generated windows of ``classes_to_hide``. The published form of the
    second loss (``privacy_loss="paper"``) has no bound and soon outweighs all others.
    By default, such a window should instead look equally like every class.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``OccupancyGANConfig``.

    Returns:
      ``Method``, with ``sample``; otherwise as ``cgan``.

    Raises:
      ValueError: if a setting is out of range, or ``classes_to_hide`` names no class,
        an unknown class or all classes.

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
    more_fn = functools.partial(classifier_losses, nets, variant=config.privacy_loss)
    hyper = (*HYPER, "utility", "privacy")
    components = judging(nets, concealing=False), generating(nets, more_fn)
    return build("occupancy_gan", nets, hyper, *components)


def classifier_losses(nets: CGANNetworks, params, windows, labels, hyper, variant):
    """Returns the two classifier losses of the generator: their weighted sum, and both.

    Args:
      nets: ``CGANNetworks``.
      params: parameters, with the classifiers'.
      windows: ``float[batch, time, d]``, generated.
      labels: ``int32[batch]``, public classes of the windows.
      hyper: hyper-parameters with ``utility`` and ``privacy``.
      variant: one of ``PRIVACY_LOSSES``.

    Returns:
      ``float[]``, and a dict of two losses.
    """
    logits, _ = classify(nets, params, nets.spec.public, windows)
    hidden = common_generator.is_hidden(nets)[labels].astype(jnp.float32)
    shown = weighted_cross_entropy(logits, labels, 1 - hidden)
    log_probabilities = jax.nn.log_softmax(logits)
    if variant == "paper":
        # The negative cross-entropy: minimising it raises the classifier's loss.
        each = jnp.take_along_axis(log_probabilities, labels[:, None], axis=1)[:, 0]
    else:
        each = -jnp.mean(log_probabilities, axis=-1)
    concealed = jnp.sum(hidden * each) / jnp.maximum(jnp.sum(hidden), 1)
    info = {"shown": shown, "concealed": concealed}
    return hyper["utility"] * shown + hyper["privacy"] * concealed, info
