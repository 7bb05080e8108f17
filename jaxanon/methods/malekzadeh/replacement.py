"""RAE, the replacement autoencoder, and RAE + AAE."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import pool, recipes
from jaxanon.methods.common.alternating import (
    BatchSource,
    Component,
    by_epoch,
    central,
    during,
    with_phases,
)
from jaxanon.methods.malekzadeh import anonymizing
from jaxanon.methods.malekzadeh.anonymizing import (
    AAEConfig,
    aae_components,
    hyper,
    networks,
)
from jaxanon.models.losses import kernel_squares
from jaxanon.models.malekzadeh import Replacement, Replacer

PUBLISHED = {
    "motion_sense": (
        ("jog",),
        ("std", "wlk"),
    ),  # Uses the first gray class that exists.
    "mobi_act": (("JOG",), ("STD",)),
}

TARGETS = ("fresh", "kept")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplacementConfig:
    """Settings of a replacement autoencoder.

    Defaults are the values of the authors' program for MotionSense. The learning rate
    and weight decay are hyper-parameters: the state stores them as arrays.
    """

    black: tuple[str, ...] | None = setting(
        None, help="public classes to replace; default: jogging, if the data has it"
    )
    gray: tuple[str, ...] | None = setting(
        None,
        help="neutral public classes whose windows replace them; default: standing, or "
        "walking if the data has no standing",
    )
    targets: str = setting(
        "fresh",
        choices=TARGETS,
        help="fresh: draw new neutral windows in each batch; kept: assign one to each "
        "window, as in the paper, which the network can only memorize",
    )
    batch_size: int = setting(128, at_least=1, help="windows per step")
    replacer_filters: tuple[int, ...] = setting(
        (64, 32),
        at_least=1,
        help="filters of the replacer's convolutions, outermost first",
    )
    replacer_hidden_sizes: tuple[int, ...] | None = setting(
        None,
        at_least=1,
        help="dense layer widths of the replacer; default: window size and half of it",
    )
    replacer_weight_decay: float = setting(
        1e-4, at_least=0, help="weight decay of the replacer"
    )
    replacer_learning_rate: float = setting(
        1e-3, above=0, help="learning rate of the replacer (Adam)"
    )

    __post_init__ = check


HYPER = ("replacer_learning_rate", "replacer_weight_decay")


class Classes(NamedTuple):
    """Indices of the public classes by role."""

    black: tuple[int, ...]
    gray: tuple[int, ...]
    white: tuple[int, ...]  # all others


class Paired(NamedTuple):
    """Windows on the device with their replacement targets."""

    weighed: pool.Weighed
    black: jax.Array  # bool[N], windows to replace
    gray: jax.Array  # int32[M], indices of the neutral windows
    fixed: jax.Array  # int32[N], fixed targets; the window itself unless black


class ReplacementBatch(NamedTuple):
    """``pool.PoolBatch`` with target windows."""

    windows: jax.Array
    labels: dict[str, jax.Array]
    weights: dict[str, jax.Array]
    targets: jax.Array  # float32[batch, time, channels]


def with_classes(name: str, config: Any, spec) -> tuple[Any, Classes]:
    """Fills in the default classes of ``config`` and returns all class indices.

    Args:
      name: name of the method, for errors.
      config: ``ReplacementConfig``.
      spec: ``jaxanon.datasets.Spec``.

    Raises:
      ValueError: if the dataset has no default, a class is unknown or in both lists, or
        a list is empty.
    """
    spec.num_classes(spec.public)  # Raises if the public attribute is numeric.
    names = spec.classes[spec.public]
    black, gray = PUBLISHED.get(spec.name, ((), ()))
    roles = {
        "black": tuple(one for one in black if one in names),
        "gray": tuple(one for one in gray if one in names)[:1],
    }
    for side in roles:
        given = getattr(config, side)
        roles[side] = roles[side] if given is None else tuple(given)
        unknown = [one for one in roles[side] if one not in names]
        if not roles[side] or unknown:
            raise ValueError(
                f"{side} must name classes of {spec.public!r} for {name}, got "
                f"{roles[side]!r}; choose black (classes to replace) and gray "
                f"(neutral replacements) from {list(names)} of {spec.name!r}."
            )
    both = sorted(set(roles["black"]) & set(roles["gray"]))
    if both:
        raise ValueError(f"black and gray must not share classes, got {both} in both.")
    index = lambda chosen: tuple(names.index(one) for one in chosen)
    black, gray = index(roles["black"]), index(roles["gray"])
    white = tuple(c for c in range(len(names)) if c not in (*black, *gray))
    return dataclasses.replace(config, **roles), Classes(black, gray, white)


def replacement_networks(spec, config) -> Replacement:
    """Builds the network of a ``ReplacementConfig`` for windows of ``spec``."""
    hidden = config.replacer_hidden_sizes
    net = Replacer(
        tuple(config.replacer_filters), None if hidden is None else tuple(hidden)
    )
    return Replacement(spec.time, len(spec.channels), net)


def pair(spec, clients, classes: Classes, kept: tuple[int, ...] | None = None):
    """Pools stacked clients' windows and pairs black windows with neutral ones.

    Fixed targets use each neutral window once before repeating any. Their order
    separates neighboring windows, which come from the same person.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      clients: ``jaxanon.datasets.Clients`` of the training windows.
      classes: ``Classes``.
      kept: argument of ``pool.weigh``.

    Raises:
      ValueError: if there are no black or no gray windows.
    """
    data = pool.weigh(spec, clients, kept)
    public = np.asarray(data.pool.labels[spec.public])
    rows = {
        "black": np.flatnonzero(np.isin(public, classes.black)),
        "gray": np.flatnonzero(np.isin(public, classes.gray)),
    }
    for side, indices in rows.items():
        if not len(indices):
            chosen = getattr(classes, side)
            names = [spec.classes[spec.public][index] for index in chosen]
            raise ValueError(
                f"{side} classes must have training windows, got none for {names}; "
                "choose other classes or data."
            )
    black, gray = rows["black"], rows["gray"]
    golden = (np.arange(len(gray)) * (5**0.5 - 1) / 2) % 1
    order = np.argsort(golden)[np.arange(len(black)) % len(gray)]
    targets = np.arange(len(public))
    targets[black] = gray[order]
    ints = lambda x: jnp.asarray(x, jnp.int32)
    return Paired(
        data, jnp.asarray(np.isin(public, classes.black)), ints(gray), ints(targets)
    )


def draw(key, data: Paired, size: int, targets: str = "fresh") -> ReplacementBatch:
    """Draws ``size`` windows uniformly with replacement, and their targets."""
    rows_key, gray_key = jax.random.split(key)
    batch = pool.draw_weighed(rows_key, data.weighed, size)
    target = data.fixed[batch.index]
    if targets == "fresh":
        place = jax.random.randint(gray_key, (size,), 0, len(data.gray))
        target = jnp.where(data.black[batch.index], data.gray[place], batch.index)
    target_windows = data.weighed.pool.windows[target]
    return ReplacementBatch(batch.windows, batch.labels, batch.weights, target_windows)


def replacement_source(
    spec, config, classes: Classes, kept: tuple[int, ...] | None = None
) -> BatchSource:
    """Returns a source of ``ReplacementBatch``; arguments as in ``pair``."""
    return BatchSource(
        lambda clients: pair(spec, clients, classes, kept),
        lambda key, data, copy: draw(key, data, config.batch_size, config.targets),
        lambda data: pool.rounds_per_epoch(data.weighed.pool, config.batch_size),
        config.batch_size,
    )


def replacing(nets: Replacement, when_fn=None) -> Component:
    """Returns the replacer's component, trained by mean squared error."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        rewritten, averages = nets.rewrite(params, batch.windows, train=True)
        error = jnp.mean((rewritten - batch.targets) ** 2)
        decay = kernel_squares(params["replacer"])
        aux = {"averages": params["averages"] | {"replacer": averages}}
        loss = error + hyper["replacer_weight_decay"] * decay
        return loss, ({"replacement": error}, aux)

    return Component(
        ("replacer",),
        loss_fn,
        when_fn=when_fn,
        learning_rate="replacer_learning_rate",
        optimizer=optax.flatten(optax.scale_by_adam(eps=1e-7)),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAEConfig(ReplacementConfig):
    """RAE's settings."""


@register("rae", config=RAEConfig, recipes=recipes.RAE)
def rae(spec, config) -> Method:
    """Builds RAE, the replacement autoencoder, for windows of ``spec``.

    RAE does not use private attributes. It divides the *public* classes into sensitive
    (``black``), neutral (``gray``) and preserved (white) classes. An autoencoder learns
    to turn windows of black classes into windows of gray classes and to reconstruct all
    others, without class labels as input. Preserved windows still leak private
    attributes.

    Differences from the paper: the network, batch size and optimizer are those of the
    authors' program for MotionSense, and each batch draws new neutral windows
    (``targets``).

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``RAEConfig``.

    Raises:
      ValueError: if a setting is out of range, or ``black`` or ``gray`` is missing,
        empty, unknown or overlapping; in ``prepare``, if one of them has no windows.

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
        components=(replacing(nets),),
        hyper={name: getattr(config, name) for name in HYPER},
        anonymize_fn=lambda key, params, windows: nets.rewrite(params, windows)[0],
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAEAAEConfig(AAEConfig, ReplacementConfig):
    """Settings of RAE + AAE; both use the same ``batch_size``."""

    replacing: int = setting(
        5, at_least=1, help="initial epochs that train only the replacer"
    )


@register("rae_aae", config=RAEAAEConfig, recipes=recipes.RAE_AAE)
def rae_aae(spec, config) -> Method:
    """Builds RAE followed by AAE for windows of ``spec``.

    ``rae``'s autoencoder trains first, to turn windows of the sensitive (``black``)
    public classes into neutral windows. ``aae``'s classifiers and then its autoencoder
    train on the output. The public classifier distinguishes the white classes only and
    ignores windows of the others; MotionSense has three white classes of five.
    Anonymization applies both autoencoders.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``RAEAAEConfig``.

    Raises:
      ValueError: if ``rae`` raises, or fewer than two classes are white.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> first, second = spec.classes[spec.public][:2]
      >>> rae_aae(spec, black=(first,), gray=(second,)).config.replacing
      5

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 5; the authors' program for gender.
    """
    config, classes = with_classes("rae_aae", config, spec)
    white = classes.white
    if len(white) < 2:
        raise ValueError(
            f"black and gray must leave at least two classes of {spec.public!r} for "
            f"rae_aae, got black={config.black!r} and gray={config.gray!r}, which "
            f"leave {len(white)}; list fewer classes."
        )
    private = {name: spec.num_classes(name) for name in spec.private}
    nets = networks(spec, config, {spec.public: len(white)} | private)
    replacement = replacement_networks(spec, config)
    white_index = [
        white.index(c) if c in white else 0 for c in range(len(_names(spec)))
    ]

    def init_fn(key):
        keys = jax.random.split(key)
        first, second = replacement.init(keys[0]), nets.init(keys[1])
        averages = first["averages"] | second["averages"]
        return first | second | {"averages": averages}

    source = replacement_source(spec, config, classes, kept=white)

    def draw_fn(key, data, copy):
        batch = source.draw_fn(key, data, copy)
        public = jnp.asarray(white_index)[
            batch.labels[spec.public]
        ]  # Index in ``white``.
        return batch._replace(labels=batch.labels | {spec.public: public})

    replaced = lambda params, windows: replacement.rewrite(params, windows)[0]
    rewritten = anonymizing.anonymize_fn(nets)

    def make(rounds):
        first = replacing(replacement, during(rounds, 0, config.replacing))
        rest = aae_components(nets, spec, config, rounds, config.replacing, replaced)
        return central(
            "rae_aae",
            config,
            spec,
            source._replace(draw_fn=draw_fn),
            init_fn=init_fn,
            components=(first, *rest),
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
