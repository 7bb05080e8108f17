"""MSDA and the anonymizing autoencoder: settings, players and methods."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.datasets.spec import attributes
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import pool
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

ADAM = optax.scale_by_adam(eps=1e-7)


def rebuilder(nets: MalekzadehNetworks, when_fn) -> Component:
    """The autoencoder by itself, which learns to leave windows as they are."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        _, safe, averages = nets.rewrite(params, batch.windows, train=True)
        change = jnp.mean((safe - batch.windows) ** 2)
        decay = losses.kernel_squares([params[group] for group in MODEL])
        kept = {"averages": params["averages"] | averages}
        return change + hyper["weight_decay"] * decay, ({"rebuilding": change}, kept)

    return Component(MODEL, loss_fn, when_fn=when_fn, optimizer=ADAM)


def anonymizing(
    nets: MalekzadehNetworks, spec, when_fn, *, variant: str = "chance", source_fn=None
) -> Component:
    """The autoencoder as its readers grade it.

    It pays for three terms, each with the weight of that name: the mean squared change
    (``distortion``); for every reader of a private attribute, of windows or latents,
    how far that is from guessing (``confusion``); and the public reader's cross-entropy
    (``utility``). Readers rest; their dropout does not, as in Keras.

    Args:
      nets: ``MalekzadehNetworks``.
      spec: ``jaxanon.datasets.Spec``.
      when_fn: as of ``Component``.
      variant: of ``models.losses.confusion``.
      source_fn: ``(params, windows) -> windows`` that it is given; None: as drawn.
    """
    source_fn = source_fn or (lambda params, windows: windows)

    def loss_fn(key, params, hyper, batch, given):
        del given
        source = source_fn(params, batch.windows)
        latents, safe, averages = nets.rewrite(params, source, train=True)
        change = jnp.mean((safe - source) ** 2)
        utility, confused, info = jnp.zeros(()), jnp.zeros(()), {"change": change}
        for name, logits in nets.read(params, latents, safe, key):
            if name == spec.public:
                real = jnp.float32(batch.weights[name] > 0)
                loss = losses.weighted_cross_entropy(logits, batch.labels[name], real)
                utility, info[f"{name} loss"] = utility + loss, loss
            else:
                loss = losses.confusion(logits, batch.labels[name], variant)
                confused = confused + loss
                told = f"{name} confusion"
                info[told] = info.get(told, 0.0) + loss
        decay = losses.kernel_squares([params[group] for group in MODEL])
        total = hyper["distortion"] * change + hyper["confusion"] * confused
        total = total + hyper["utility"] * utility
        info["anonymizer"] = total
        kept = {"averages": params["averages"] | averages}
        return total + hyper["weight_decay"] * decay, (info, kept)

    return Component(MODEL, loss_fn, when_fn=when_fn, optimizer=ADAM)


def reading(
    nets: MalekzadehNetworks, when_fn: Callable, *, raw: bool = False, source_fn=None
) -> Component:
    """The readers, by cross-entropy in which every class counts the same.

    Args:
      nets: ``MalekzadehNetworks``.
      when_fn: as of ``Component``.
      raw: whether they are shown windows before the autoencoder, not behind it.
      source_fn: as in ``anonymizing``.
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
        told = "readers, raw windows" if raw else "readers"
        return total + hyper["weight_decay"] * decay, ({told: total}, {})

    return Component(
        ("readers",),
        loss_fn,
        when_fn=when_fn,
        learning_rate="classifier_learning_rate",
        optimizer=ADAM,
    )


def anonymize_fn(nets: MalekzadehNetworks) -> Callable:
    """``(key, params, windows) -> windows``; nothing is random about them."""
    return lambda key, params, windows: nets.rewrite(params, windows)[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnonymizerConfig:
    """Settings of an autoencoder that readers of its windows regularise.

    Those of the released programs unless said otherwise. Weights and step sizes are
    defaults here and arrays in the state, which a sweep may vary without compiling
    anew.
    """

    distortion: float = setting(1.0, at_least=0, help="weight of windows' change")
    confusion: float = setting(1.0, at_least=0, help="weight of each private reader")
    utility: float = setting(2.0, at_least=0, help="weight of the public cross-entropy")
    weight_decay: float = setting(
        1e-3, at_least=0, help="weight decay of the wider kernels"
    )
    learning_rate: float = setting(1e-3, above=0, help="step size of the autoencoder")
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="step size of the readers'"
    )
    batch_size: int = setting(128, at_least=1, help="windows per step")
    filters: int = setting(64, at_least=1, help="filters of the autoencoder")
    classifier_filters: int = setting(32, at_least=1, help="filters of the readers")
    classifier_hidden_sizes: tuple[int, ...] = setting(
        (128, 32), at_least=1, help="widths of the dense layers that read windows"
    )

    __post_init__ = check


HYPER = (
    *("distortion", "confusion", "utility", "weight_decay"),
    *("learning_rate", "classifier_learning_rate"),
)


def hyper(config: AnonymizerConfig, *more: str) -> dict[str, float]:
    """The hyper-parameters of a config, with ``more`` fields of its own."""
    return {name: getattr(config, name) for name in (*HYPER, *more)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MSDAConfig(AnonymizerConfig):
    """MSDA's settings, of the version that hides who somebody is."""

    distortion: float = setting(0.01, at_least=0, help="weight of windows' change")
    filters: int = setting(100, at_least=1, help="filters of the autoencoder")
    latent_hidden_sizes: tuple[int, ...] = setting(
        (128, 32), at_least=1, help="widths of the dense layers that read latents"
    )
    classifier_hidden_sizes: tuple[int, ...] = setting(
        (256, 64), at_least=1, help="widths of the dense layers that read windows"
    )
    variant: str = setting(
        "chance",
        choices=CONFUSIONS,
        help="of confusion; released: least where the true class is excluded "
        "(models.confusion)",
    )
    warm_up: int = setting(1, at_least=0, help="first epochs, rebuilding; released: 32")
    turn: int = setting(
        0,
        at_least=0,
        help="epochs that readers, then autoencoder play in turn; 0: both in each "
        "round; released: 24, eight times over",
    )


@register("msda", config=MSDAConfig)
def msda(spec, config) -> Method:
    """Builds MSDA, the anonymizing autoencoder of identity, for windows of ``spec``.

    A convolutional autoencoder of windows, first of magnitudes, learns to rebuild them;
    then readers of each private attribute learn from its latents (EncID) and from its
    windows (DecID), a reader of the public one from its windows (ActID), and the
    autoencoder to please the last, to confuse the others and to change little: section
    4's regularised loss, with the released weights ``0.01 MSE + EncID + DecID + 2
    ActID``. ``dysan_msda`` is the same idea by DySan's networks and losses; ``aae`` is
    the version that hides gender.

    Differences from the released program: batches are drawn with replacement; all play
    in every round (``turn``), and nothing stops early.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``MSDAConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> msda(load("smartwatch").spec).config.distortion
      0.01

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 4; the released program.
    """
    nets = _networks(spec, config)

    def make(rounds):
        after = during(rounds, config.warm_up)

        def turns(second):
            if not config.turn:
                return after
            length, start = config.turn * rounds, config.warm_up * rounds
            own = lambda number: (number - start) // length % 2 == second
            return lambda number: after(number) & own(number)

        players = (
            rebuilder(nets, during(rounds, 0, config.warm_up)),
            reading(nets, turns(0)),
            anonymizing(nets, spec, turns(1), variant=config.variant),
        )
        return central(
            "msda",
            config,
            spec,
            pool.batch_source(spec, config.batch_size),
            init_fn=nets.init,
            players=players,
            hyper=hyper(config),
            anonymize_fn=anonymize_fn(nets),
        )

    begins = config.warm_up + config.turn  # The autoencoder's play against readers.
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
    """AAE's settings, of the version that hides gender."""

    pretraining: int = setting(
        5, at_least=0, help="epochs of readers on raw windows; released: 50 at most"
    )
    frozen: bool = setting(True, help="readers rest after that")

    def __post_init__(self):
        super().__post_init__()
        if self.frozen and not self.pretraining:
            raise ValueError(
                "pretraining must be >= 1 where readers are frozen, got 0: they would "
                "never learn; give it an epoch, or frozen=False."
            )


@register("aae", config=AAEConfig)
def aae(spec, config) -> Method:
    """Builds AAE, the anonymizing autoencoder of gender, for windows of ``spec``.

    The baseline of Hajihassani et al. and of Blinder. Readers of all attributes learn
    from raw windows; then they are frozen, and a convolutional autoencoder learns to
    please the reader of the public attribute, to leave those of private ones at even
    odds, and to change little: ``1 MSE + 1 binary cross-entropy against 0.5 + 2
    cross-entropy``. Nothing reads its latents. Frozen readers are fooled more easily
    than confused: with ``frozen=False`` they learn on, as ``msda``'s do.

    Differences from the released program: it rewrites windows as they are, not behind
    the replacement autoencoder (that is ``rae_aae``); batches are drawn with
    replacement; nothing stops early.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``AAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> aae(load("smartwatch").spec, utility=1.0).config.utility
      1.0

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 4; the released program's version for gender; Yang and Ardakanian,
      Blinder, ACM TOSN 2023, section 7, baseline 1; Hajihassani, Ardakanian, Khazaei,
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
            players=players(nets, spec, config, rounds),
            hyper=hyper(config),
            anonymize_fn=anonymize_fn(nets),
        )

    return with_phases(
        by_epoch(make), min_epochs=config.pretraining + 1, phases=("pretraining",)
    )


def networks(spec, config, classes: dict[str, int]) -> malekzadeh.MalekzadehNetworks:
    """The gender version's networks, with readers of attributes of so many classes."""
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


def players(nets, spec, config, rounds: int, start: int = 0, source_fn=None) -> tuple:
    """Readers of raw windows, then autoencoder, and readers again unless frozen.

    Args:
      nets: ``MalekzadehNetworks``.
      spec: ``jaxanon.datasets.Spec``.
      config: ``AAEConfig``.
      rounds: of an epoch.
      start: epoch in which the readers begin.
      source_fn: as in ``anonymizing``.
    """
    begin = start + config.pretraining
    early, late = during(rounds, start, begin), during(rounds, begin)
    found = (reading(nets, early, raw=True, source_fn=source_fn),)
    if not config.frozen:
        found += (reading(nets, late, source_fn=source_fn),)
    return (*found, anonymizing(nets, spec, late, source_fn=source_fn))
