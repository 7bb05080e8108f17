"""MSDA and AAE, the anonymizing autoencoders."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.datasets.spec import attributes
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import pool, recipes
from jaxanon.methods.common.alternating import (
    Component,
    by_epoch,
    central,
    during,
    with_phases,
)
from jaxanon.models import losses, malekzadeh
from jaxanon.models.losses import CONFUSIONS
from jaxanon.models.malekzadeh import MalekzadehNetworks

MODEL = ("encoder", "decoder")

ADAM = optax.flatten(optax.scale_by_adam(eps=1e-7))


def reconstruction_component(nets: MalekzadehNetworks, when_fn) -> Component:
    """Returns the component that trains the autoencoder to reconstruct windows."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        _, safe, averages = nets.rewrite(params, batch.windows, train=True)
        change = jnp.mean((safe - batch.windows) ** 2)
        decay = losses.kernel_squares([params[group] for group in MODEL])
        aux = {"averages": params["averages"] | averages}
        return change + hyper["weight_decay"] * decay, ({"reconstruction": change}, aux)

    return Component(MODEL, loss_fn, when_fn=when_fn, optimizer=ADAM)


def anonymizing(
    nets: MalekzadehNetworks, spec, when_fn, *, variant: str = "chance", source_fn=None
) -> Component:
    """Returns the component that trains the autoencoder against the classifiers.

    The loss has three weighted terms: the mean squared change of windows
    (``distortion``), the distance of each private classifier from chance level
    (``confusion``), and the public classifier's cross-entropy (``utility``). The
    classifiers are not updated, but their dropout is active, as in Keras.

    Args:
      nets: ``MalekzadehNetworks``.
      spec: ``jaxanon.datasets.Spec``.
      when_fn: field of ``Component``.
      variant: argument of ``models.losses.confusion``.
      source_fn: ``(params, windows) -> windows``, applied to the autoencoder's input;
        None uses the windows unchanged.
    """
    source_fn = source_fn or (lambda params, windows: windows)

    def loss_fn(key, params, hyper, batch, given):
        del given
        source = source_fn(params, batch.windows)
        latents, safe, averages = nets.rewrite(params, source, train=True)
        change = jnp.mean((safe - source) ** 2)
        utility, confusion, info = jnp.zeros(()), jnp.zeros(()), {"change": change}
        for name, logits in nets.read(params, latents, safe, key):
            if name == spec.public:
                real = jnp.float32(batch.weights[name] > 0)
                loss = losses.weighted_cross_entropy(logits, batch.labels[name], real)
                utility, info[f"{name} loss"] = utility + loss, loss
            else:
                loss = losses.confusion(logits, batch.labels[name], variant)
                confusion = confusion + loss
                label = f"{name} confusion"
                info[label] = info.get(label, 0.0) + loss
        decay = losses.kernel_squares([params[group] for group in MODEL])
        total = hyper["distortion"] * change + hyper["confusion"] * confusion
        total = total + hyper["utility"] * utility
        info["anonymizer"] = total
        aux = {"averages": params["averages"] | averages}
        return total + hyper["weight_decay"] * decay, (info, aux)

    return Component(MODEL, loss_fn, when_fn=when_fn, optimizer=ADAM)


def classifier_component(
    nets: MalekzadehNetworks, when_fn: Callable, *, raw: bool = False, source_fn=None
) -> Component:
    """Returns the component that trains the classifiers with equal class weights.

    Args:
      nets: ``MalekzadehNetworks``.
      when_fn: field of ``Component``.
      raw: whether to train on the autoencoder's inputs instead of its outputs.
      source_fn: argument of ``anonymizing``.
    """
    source_fn = source_fn or (lambda params, windows: windows)

    def loss_fn(key, params, hyper, batch, given):
        del given
        safe, latents = source_fn(params, batch.windows), None
        if not raw:
            latents, safe, _ = nets.rewrite(params, safe)
            latents, safe = jax.lax.stop_gradient((latents, safe))
        total = jnp.zeros(())
        for name, logits in nets.read(params, latents, safe, key):
            total = total + losses.weighted_cross_entropy(
                logits, batch.labels[name], batch.weights[name]
            )
        decay = losses.kernel_squares(params["readers"])
        label = "classifiers, raw windows" if raw else "classifiers"
        return total + hyper["weight_decay"] * decay, ({label: total}, {})

    return Component(
        ("readers",),
        loss_fn,
        when_fn=when_fn,
        learning_rate="classifier_learning_rate",
        optimizer=ADAM,
    )


def anonymize_fn(nets: MalekzadehNetworks) -> Callable:
    """Returns ``(key, params, windows) -> windows``; the result ignores the key."""
    return lambda key, params, windows: nets.rewrite(params, windows)[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnonymizerConfig:
    """Settings of an autoencoder that is trained against classifiers.

    Defaults are the values of the authors' programs. Loss weights and learning rates
    are hyper-parameters: the state stores them as arrays, so sweeps do not recompile.
    """

    distortion: float = setting(1.0, at_least=0, help="weight of the change of windows")
    confusion: float = setting(
        1.0, at_least=0, help="weight of the confusion of each private classifier"
    )
    utility: float = setting(2.0, at_least=0, help="weight of the public cross-entropy")
    weight_decay: float = setting(
        1e-3, at_least=0, help="weight decay of kernels with more than one output"
    )
    learning_rate: float = setting(1e-3, above=0, help="autoencoder learning rate")
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="classifier learning rate"
    )
    batch_size: int = setting(128, at_least=1, help="windows per step")
    filters: int = setting(64, at_least=1, help="filters of the autoencoder")
    classifier_filters: int = setting(32, at_least=1, help="filters of the classifiers")
    classifier_hidden_sizes: tuple[int, ...] = setting(
        (128, 32), at_least=1, help="hidden layer widths of the window classifiers"
    )

    __post_init__ = check


HYPER = (
    *("distortion", "confusion", "utility", "weight_decay"),
    *("learning_rate", "classifier_learning_rate"),
)


def hyper(config: AnonymizerConfig, *more: str) -> dict[str, float]:
    """Returns the hyper-parameters of a config, including the fields ``more``."""
    return {name: getattr(config, name) for name in (*HYPER, *more)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MSDAConfig(AnonymizerConfig):
    """Settings of MSDA, the version that hides identity."""

    distortion: float = setting(
        0.01, at_least=0, help="weight of the change of windows"
    )
    filters: int = setting(100, at_least=1, help="filters of the autoencoder")
    latent_hidden_sizes: tuple[int, ...] = setting(
        (128, 32), at_least=1, help="hidden layer widths of the latent classifiers"
    )
    classifier_hidden_sizes: tuple[int, ...] = setting(
        (256, 64), at_least=1, help="hidden layer widths of the window classifiers"
    )
    variant: str = setting(
        "chance",
        choices=CONFUSIONS,
        help="confusion loss; official: lowest if the true class is excluded",
    )
    warm_up: int = setting(
        1, at_least=0, help="initial epochs of reconstruction only; official: 32"
    )
    turn: int = setting(
        0,
        at_least=0,
        help="epochs per phase of alternating classifier and autoencoder training; 0: "
        "both in each round; official: 24, eight phases",
    )


@register("msda", config=MSDAConfig, recipes=recipes.MSDA)
def msda(spec, config) -> Method:
    """Builds MSDA, the anonymizing autoencoder of identity, for windows of ``spec``.

    A convolutional autoencoder first learns to reconstruct windows. Then classifiers of
    each private attribute train on its latents (EncID) and outputs (DecID), and a
    classifier of the public attribute trains on its outputs (ActID). The autoencoder
    trains to keep the public attribute, confuse the private classifiers, and change
    windows little. Its loss is that of section 4 with the authors' weights, ``0.01 MSE
    + EncID + DecID + 2 ActID``. ``dysan_msda`` uses DySan's networks and losses
    instead; ``aae`` is the version that hides gender.

    Differences from the authors' program: batches are drawn with replacement, all
    networks train in each round (``turn``), and there is no early stopping.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``MSDAConfig``.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> msda(load("smartwatch").spec).config.distortion
      0.01

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 4; the authors' program.
    """
    nets = _networks(spec, config)

    def make(rounds):
        after = during(rounds, config.warm_up)

        def turns(second):
            if not config.turn:
                return after
            length, start = config.turn * rounds, config.warm_up * rounds
            in_phase = lambda number: (number - start) // length % 2 == second
            return lambda number: after(number) & in_phase(number)

        components = (
            reconstruction_component(nets, during(rounds, 0, config.warm_up)),
            classifier_component(nets, turns(0)),
            anonymizing(nets, spec, turns(1), variant=config.variant),
        )
        return central(
            "msda",
            config,
            spec,
            pool.batch_source(spec, config.batch_size),
            init_fn=nets.init,
            components=components,
            hyper=hyper(config),
            anonymize_fn=anonymize_fn(nets),
        )

    begins = config.warm_up + config.turn  # First epoch of adversarial training.
    phases = ("warm_up", "turn")
    return with_phases(by_epoch(make), min_epochs=begins + 1, phases=phases)


def _networks(spec, config):
    size, reach = spec.num_classes, (1, 3)
    read = lambda name, hidden, pooled: malekzadeh.Reader(
        size(name), config.classifier_filters, tuple(hidden), pooled
    )
    return malekzadeh.MalekzadehNetworks(
        spec.time,
        len(spec.channels),
        malekzadeh.Encoder(config.filters, reach, deeper=True),
        malekzadeh.Decoder(spec.time, config.filters, reach, deeper=True),
        {
            name: read(name, config.classifier_hidden_sizes, malekzadeh.POOLED_OUTPUT)
            for name in attributes(spec)
        },
        {
            name: read(name, config.latent_hidden_sizes, malekzadeh.POOLED_LATENT)
            for name in spec.private
        },
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AAEConfig(AnonymizerConfig):
    """Settings of AAE, the version that hides gender."""

    pretraining: int = setting(
        5, at_least=0, help="epochs of classifiers on raw windows; official: up to 50"
    )
    frozen: bool = setting(True, help="freeze the classifiers after pretraining")

    def __post_init__(self):
        super().__post_init__()
        if self.frozen and not self.pretraining:
            raise ValueError(
                "pretraining must be >= 1 if frozen is True, got 0; otherwise the "
                "classifiers never train. Raise it, or set frozen=False."
            )


@register("aae", config=AAEConfig, recipes=recipes.AAE)
def aae(spec, config) -> Method:
    """Builds AAE, the anonymizing autoencoder of gender, for windows of ``spec``.

    This is the baseline of Hajihassani et al. and of Blinder. Classifiers of all
    attributes train on raw windows and are then frozen. A convolutional autoencoder
    trains to keep the public attribute, to bring private classifiers to even odds, and
    to change windows little: ``1 MSE + 1 binary cross-entropy against 0.5 + 2
    cross-entropy``. No classifier uses its latents. Frozen classifiers are easy to
    fool; with ``frozen=False`` they keep training, as in ``msda``.

    Differences from the authors' program: the autoencoder rewrites original windows,
    not the output of the replacement autoencoder (see ``rae_aae``). Batches are drawn
    with replacement, and there is no early stopping.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``AAEConfig``.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> aae(load("smartwatch").spec, utility=1.0).config.utility
      1.0

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 4; the authors' program for gender; Yang and Ardakanian, Blinder,
      ACM TOSN 2023, section 7, baseline 1; Hajihassani, Ardakanian, Khazaei,
      Anonymizing Sensor Data on the Edge, 2021, sections 6.3 and 7.3.
    """
    classes = {name: spec.num_classes(name) for name in attributes(spec)}
    nets = networks(spec, config, classes)

    def make(rounds):
        return central(
            "aae",
            config,
            spec,
            pool.batch_source(spec, config.batch_size),
            init_fn=nets.init,
            components=aae_components(nets, spec, config, rounds),
            hyper=hyper(config),
            anonymize_fn=anonymize_fn(nets),
        )

    return with_phases(
        by_epoch(make), min_epochs=config.pretraining + 1, phases=("pretraining",)
    )


def networks(spec, config, classes: dict[str, int]) -> malekzadeh.MalekzadehNetworks:
    """Builds AAE's networks; ``classes`` maps attributes to class counts."""
    return malekzadeh.MalekzadehNetworks(
        spec.time,
        len(spec.channels),
        malekzadeh.Encoder(config.filters),
        malekzadeh.Decoder(spec.time, config.filters),
        {
            name: malekzadeh.Reader(
                num, config.classifier_filters, tuple(config.classifier_hidden_sizes)
            )
            for name, num in classes.items()
        },
        {},
    )


def aae_components(
    nets, spec, config, rounds: int, start: int = 0, source_fn=None
) -> tuple:
    """Returns the components of AAE: classifiers, then autoencoder.

    Args:
      nets: ``MalekzadehNetworks``.
      spec: ``jaxanon.datasets.Spec``.
      config: ``AAEConfig``.
      rounds: rounds per epoch.
      start: first epoch of classifier training.
      source_fn: argument of ``anonymizing``.
    """
    begin = start + config.pretraining
    early, late = during(rounds, start, begin), during(rounds, begin)
    classifiers = (classifier_component(nets, early, raw=True, source_fn=source_fn),)
    if not config.frozen:
        classifiers += (classifier_component(nets, late, source_fn=source_fn),)
    return (*classifiers, anonymizing(nets, spec, late, source_fn=source_fn))
