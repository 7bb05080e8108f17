"""Replacement autoencoders, alone (RAE) and before an anonymizing one (RAE + AAE)."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import (
    BatchSource,
    Component,
    by_epoch,
    central,
    during,
    with_phases,
)
from jaxanon.methods.malekzadeh import anonymizing
from jaxanon.methods.malekzadeh.anonymizing import AAEConfig, hyper, networks, players
from jaxanon.models.losses import kernel_squares
from jaxanon.models.malekzadeh import Replacement, Replacer

PUBLISHED = {
    "motion_sense": (("jog",), ("std", "wlk")),  # The first that there is is neutral.
    "mobi_act": (("JOG",), ("STD",)),
}

TARGETS = ("fresh", "kept")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplacementConfig:
    """Settings of a replacement autoencoder.

    Those of the released program for MotionSense unless said otherwise; step size and
    decay are defaults here and arrays in the state.
    """

    black: tuple[str, ...] | None = setting(
        None, help="public classes to replace; default: jogging, where it is known"
    )
    gray: tuple[str, ...] | None = setting(
        None,
        help="neutral public classes, whose windows replace them; default: standing, "
        "or walking where a data set is without it",
    )
    targets: str = setting(
        "fresh",
        choices=TARGETS,
        help="neutral windows drawn anew for every batch; kept, as published: each "
        "window has its own for good, which a network can but learn by heart",
    )
    batch_size: int = setting(128, at_least=1, help="windows per step")
    replacer_filters: tuple[int, ...] = setting(
        (64, 32), at_least=1, help="filters of its convolutions, outermost first"
    )
    replacer_hidden_sizes: tuple[int, ...] | None = setting(
        None, at_least=1, help="its dense widths; default: a window and half of it"
    )
    replacer_weight_decay: float = setting(1e-4, at_least=0, help="its weight decay")
    replacer_learning_rate: float = setting(1e-3, above=0, help="step size of its Adam")

    __post_init__ = check


HYPER = ("replacer_learning_rate", "replacer_weight_decay")


class Classes(NamedTuple):
    """Numbers of public classes."""

    black: tuple[int, ...]
    gray: tuple[int, ...]
    white: tuple[int, ...]  # all others


class Paired(NamedTuple):
    """Windows on the device, and what is to become of each."""

    weighed: pool.Weighed
    black: jax.Array  # bool[N], whether a window is replaced
    gray: jax.Array  # int32[M], the neutral windows
    kept: jax.Array  # int32[N], a neutral window for each black one, itself for others


class ReplacementBatch(NamedTuple):
    """``pool.PoolBatch`` with what its windows are to become."""

    windows: jax.Array
    labels: dict[str, jax.Array]
    weights: dict[str, jax.Array]
    targets: jax.Array  # float32[batch, time, channels]


def with_classes(name: str, config: Any, spec) -> tuple[Any, Classes]:
    """``config`` with the classes that it leaves open, and the numbers of all.

    Args:
      name: of the method, for errors.
      config: ``ReplacementConfig``.
      spec: ``jaxanon.datasets.Spec``.

    Raises:
      ValueError: if there is no default, a class is unknown or in both lists, or a list
        is empty.
    """
    spec.num_classes(spec.public)  # A number is refused.
    names = spec.classes[spec.public]
    black, gray = PUBLISHED.get(spec.name, ((), ()))
    found = {
        "black": tuple(one for one in black if one in names),
        "gray": tuple(one for one in gray if one in names)[:1],
    }
    for side in found:
        given = getattr(config, side)
        found[side] = found[side] if given is None else tuple(given)
        unknown = [one for one in found[side] if one not in names]
        if not found[side] or unknown:
            raise ValueError(
                f"{name} needs black, classes of {spec.public!r} to replace, and gray, "
                f"neutral ones in their place, out of {list(names)} of {spec.name!r}; "
                f"got {side}={found[side]!r}."
            )
    both = sorted(set(found["black"]) & set(found["gray"]))
    if both:
        raise ValueError(f"black and gray must be different classes, both have {both}.")
    index = lambda chosen: tuple(names.index(one) for one in chosen)
    black, gray = index(found["black"]), index(found["gray"])
    white = tuple(c for c in range(len(names)) if c not in (*black, *gray))
    return dataclasses.replace(config, **found), Classes(black, gray, white)


def replacement_networks(spec, config) -> Replacement:
    """The network of a ``ReplacementConfig`` for windows of ``spec``."""
    hidden = config.replacer_hidden_sizes
    net = Replacer(
        tuple(config.replacer_filters), None if hidden is None else tuple(hidden)
    )
    return Replacement(spec.time, len(spec.channels), net)


def pair(spec, clients, classes: Classes, kept: tuple[int, ...] | None = None):
    """Stacked clients' windows on the device, as ``Paired``.

    Each black window's own neutral one is taken without replacement, until all are: in
    an order in which neighbours, of one person, lie far apart.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      classes: ``Classes``.
      kept: as in ``pool.weigh``.

    Raises:
      ValueError: if no window is black, or none gray.
    """
    data = pool.weigh(spec, clients, kept)
    public = np.asarray(data.pool.labels[spec.public])
    rows = {
        "black": np.flatnonzero(np.isin(public, classes.black)),
        "gray": np.flatnonzero(np.isin(public, classes.gray)),
    }
    for side, found in rows.items():
        if not len(found):
            chosen = getattr(classes, side)
            names = [spec.classes[spec.public][number] for number in chosen]
            raise ValueError(
                f"{side} must have training windows, {names} have none; choose "
                "other classes, or other data."
            )
    black, gray = rows["black"], rows["gray"]
    golden = (np.arange(len(gray)) * (5**0.5 - 1) / 2) % 1
    order = np.argsort(golden)[np.arange(len(black)) % len(gray)]
    own = np.arange(len(public))
    own[black] = gray[order]
    ints = lambda x: jnp.asarray(x, jnp.int32)
    return Paired(
        data, jnp.asarray(np.isin(public, classes.black)), ints(gray), ints(own)
    )


def draw(key, data: Paired, size: int, targets: str = "fresh") -> ReplacementBatch:
    """``size`` windows drawn uniformly with replacement, and their targets."""
    rows_key, gray_key = jax.random.split(key)
    batch = pool.draw_weighed(rows_key, data.weighed, size)
    goal = data.kept[batch.index]
    if targets == "fresh":
        place = jax.random.randint(gray_key, (size,), 0, len(data.gray))
        goal = jnp.where(data.black[batch.index], data.gray[place], batch.index)
    goals = data.weighed.pool.windows[goal]
    return ReplacementBatch(batch.windows, batch.labels, batch.weights, goals)


def replacement_source(
    spec, config, classes: Classes, kept: tuple[int, ...] | None = None
) -> BatchSource:
    """Where a system trains on batches of pairs; arguments as of ``pair``."""
    return BatchSource(
        lambda clients: pair(spec, clients, classes, kept),
        lambda key, data, copy: draw(key, data, config.batch_size, config.targets),
        lambda data: pool.rounds_per_epoch(data.weighed.pool, config.batch_size),
        config.batch_size,
    )


def replacing(nets: Replacement, when_fn=None) -> Component:
    """The replacement autoencoder, by the mean squared error against its targets."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        made, averages = nets.rewrite(params, batch.windows, train=True)
        error = jnp.mean((made - batch.targets) ** 2)
        decay = kernel_squares(params["replacer"])
        kept = {"averages": params["averages"] | {"replacer": averages}}
        loss = error + hyper["replacer_weight_decay"] * decay
        return loss, ({"replacement": error}, kept)

    return Component(
        ("replacer",),
        loss_fn,
        when_fn=when_fn,
        learning_rate="replacer_learning_rate",
        optimizer=optax.scale_by_adam(eps=1e-7),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAEConfig(ReplacementConfig):
    """RAE's settings."""


@register("rae", config=RAEConfig)
def rae(spec, config) -> Method:
    """Builds RAE, the replacement autoencoder, for windows of ``spec``.

    It knows no private attribute: of the *public* classes some are sensitive
    themselves (``black``), some neutral (``gray``), all others to be kept (white). An
    autoencoder learns to make windows of neutral classes of the black ones, and to
    leave the rest as they are; which is which it has to see by itself. What the kept
    windows tell of a wearer they go on telling.

    Differences from the original: the network, batch and optimizer of the program for
    MotionSense; neutral windows drawn anew for every batch (``targets``).

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``RAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a list of classes is missing, empty,
        unknown, or in part the other; when data come, if one has no windows.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> first, second = spec.classes[spec.public][:2]
      >>> rae(spec, black=(first,), gray=(second,)).name
      'rae'

    References:
      Malekzadeh, Clegg, Haddadi, Replacement AutoEncoder: A Privacy-Preserving
      Algorithm for Sensory Data Analysis, IoTDI 2018, section 4.
    """
    config, classes = with_classes("rae", config, spec)
    nets = replacement_networks(spec, config)
    return central(
        "rae",
        config,
        spec,
        replacement_source(spec, config, classes),
        init_fn=nets.init,
        players=(replacing(nets),),
        hyper={name: getattr(config, name) for name in HYPER},
        anonymize_fn=lambda key, params, windows: nets.rewrite(params, windows)[0],
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAEAAEConfig(AAEConfig, ReplacementConfig):
    """Settings of both; ``batch_size`` is one for all."""

    replacing: int = setting(5, at_least=1, help="first epochs, of the replacement")


@register("rae_aae", config=RAEAAEConfig)
def rae_aae(spec, config) -> Method:
    """Builds RAE + AAE, one autoencoder behind the other, for windows of ``spec``.

    First ``rae``'s autoencoder learns to make neutral windows of the sensitive
    (``black``) public classes; then ``aae``'s readers learn from what comes out of it,
    and last its autoencoder to rewrite that. The public attribute's reader tells the
    white classes alone, and windows of others do not count for it: of MotionSense's
    five there are three. At run time windows go through both.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``RAEAAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: as ``rae``, and if fewer than two classes are white.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> first, second = spec.classes[spec.public][:2]
      >>> rae_aae(spec, black=(first,), gray=(second,)).config.replacing
      5

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 5; the released program's version for gender.
    """
    config, classes = with_classes("rae_aae", config, spec)
    white = classes.white
    if len(white) < 2:
        raise ValueError(
            f"rae_aae must leave two classes of {spec.public!r} at least, neither "
            f"black nor gray, that a reader can tell apart; black={config.black!r} and "
            f"gray={config.gray!r} leave {len(white)}."
        )
    private = {name: spec.num_classes(name) for name in spec.private}
    nets = networks(spec, config, {spec.public: len(white)} | private)
    replacement = replacement_networks(spec, config)
    number = [white.index(c) if c in white else 0 for c in range(len(_names(spec)))]

    def init_fn(key):
        keys = jax.random.split(key)
        first, second = replacement.init(keys[0]), nets.init(keys[1])
        averages = first["averages"] | second["averages"]
        return first | second | {"averages": averages}

    room = replacement_source(spec, config, classes, kept=white)

    def draw_fn(key, data, copy):
        batch = room.draw_fn(key, data, copy)
        public = jnp.asarray(number)[batch.labels[spec.public]]  # Among the white.
        return batch._replace(labels=batch.labels | {spec.public: public})

    replaced = lambda params, windows: replacement.rewrite(params, windows)[0]
    rewritten = anonymizing.anonymize_fn(nets)

    def make(rounds):
        first = replacing(replacement, during(rounds, 0, config.replacing))
        rest = players(nets, spec, config, rounds, config.replacing, replaced)
        return central(
            "rae_aae",
            config,
            spec,
            room._replace(draw_fn=draw_fn),
            init_fn=init_fn,
            players=(first, *rest),
            hyper=hyper(config, *HYPER),
            anonymize_fn=lambda key, params, windows: rewritten(
                key, params, replaced(params, windows)
            ),
        )

    before = config.replacing + config.pretraining
    return with_phases(
        by_epoch(make), min_epochs=before + 1, phases=("replacing", "pretraining")
    )


def _names(spec):
    return spec.classes[spec.public]
