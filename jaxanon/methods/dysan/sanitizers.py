"""Training of DySan and its variants: a sanitizer against classifiers."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Incompatible, Method
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import early_stopping, pool
from jaxanon.methods.common.alternating import BatchSource, Component, central
from jaxanon.models import dysan as models
from jaxanon.models.dysan import ERRORS
from jaxanon.models.losses import distance_from_chance

CLASSIFIERS = ("predictor", "discriminators")


def sanitizer(
    name: str,
    spec,
    config: Any,
    *,
    distortion: bool = True,
    pretraining: int | None = None,
) -> Method:
    """Builds a method that trains a sanitizer against a predictor and discriminators.

    A round is one sanitizer step, then ``config.inner_steps`` classifier steps on newly
    drawn, sanitized batches (Algorithm 1). The sanitizer's loss is the sum of

    - ``lambda_`` times the balanced error of the predictor,
    - ``alpha`` times, for each private attribute, the distance of a discriminator's
      balanced error from that of a random guess (eq. 3's d_s),
    - ``1 - alpha - lambda_`` times, for each channel, the mean absolute change.

    Differences from the official program:

    - Batches are drawn with replacement.
    - Adam has no weight decay; the program's 1e-10 is below float32 resolution.
    - The networks see only the window, unless ``config.physiology`` names attributes.
      These are classes, where the program uses numbers, and their change is part of the
      loss. The program also gives the sanitizer the activity, multiplied by 0.

    Args:
      name: name of the method.
      spec: ``jaxanon.datasets.Spec``.
      config: ``SanitizerConfig``.
      distortion: whether the loss includes the change of the window.
      pretraining: number of rounds in which the classifiers train on raw windows before
        they are frozen and the sanitizer starts; None for alternating training.
    """
    nets = networks(spec, config)
    frozen = pretraining is not None
    sanitizers = _sanitizers(spec, nets, config, distortion, frozen)
    classifiers = _classifiers(spec, nets, config, raw=frozen)
    if frozen:
        late = lambda round_: round_ >= pretraining
        sanitizers = tuple(each._replace(when_fn=late) for each in sanitizers)
        classifiers = classifiers._replace(when_fn=lambda round_: round_ < pretraining)

    def init_fn(key):
        watched = {"watch": {group: early_stopping.watch() for group in CLASSIFIERS}}
        return nets.init(key) | (watched if config.early_stop else {})

    def draw_fn(key, data, copy):
        del copy
        batch = pool.draw(key, data, config.batch_size)
        return batch._replace(windows=scale_windows(spec, config, batch.windows))

    def anonymize_fn(key, params, windows):
        windows = scale_windows(spec, config, windows)
        safe, _ = nets.sanitize(key, nets.compose(params), windows)
        return scale_windows(spec, config, safe, back=True)

    source = BatchSource(
        lambda clients: pool.pool(spec, clients),
        draw_fn,
        lambda data: pool.rounds_per_epoch(data, config.batch_size),
        config.batch_size,
    )
    return central(
        name,
        config,
        spec,
        source,
        init_fn=init_fn,
        components=(*sanitizers, classifiers),
        hyper={n: getattr(config, n) for n in ("alpha", "lambda_", "learning_rate")},
        anonymize_fn=anonymize_fn,
    )


def networks(spec, config) -> models.DySanNetworks:
    """Builds the networks of a ``SanitizerConfig`` for windows of ``spec``.

    Raises:
      ValueError: if a ``physiology`` attribute has no labels, is public or private, or
        has fewer than two classes.
    """
    if missing := [name for name in config.physiology if name not in spec.classes]:
        raise ValueError(
            f"physiology must be attributes of {spec.name!r} "
            f"({sorted(spec.classes)}), got {missing}."
        )
    for name in config.physiology:
        if name in (spec.public, *spec.private) or spec.num_classes(name) < 2:
            raise ValueError(
                f"physiology attributes must have at least two classes and be neither "
                f"public nor private, got {name!r}; remove it."
            )
    widths = {each: getattr(config, each) for each in models.Widths._fields}
    return models.networks(
        spec.time,
        len(spec.channels),
        (spec.public, spec.num_classes(spec.public)),
        {name: spec.num_classes(name) for name in spec.private},
        models.Widths(**widths),
        len(config.physiology),
    )


def side_inputs(spec, config, batch):
    """Returns the networks' inputs in addition to windows, ``float[batch, sides]``.

    Values are in [-1, 1].
    """
    columns = [
        models.scale_classes(batch.labels[name], spec.num_classes(name))[:, None]
        for name in config.physiology
    ]
    return jnp.concatenate([jnp.zeros((len(batch.windows), 0)), *columns], axis=1)


def scale_windows(spec, config, windows, *, back: bool = False):
    """Scales standardised windows for the networks; ``back`` inverts the scaling."""
    if config.standardized:
        return windows
    mean, std = (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
    return (windows - mean) / std if back else windows * std + mean


def _sanitizers(spec, nets, config, distortion, frozen):
    """Returns one component for the sanitizer, or one for each term of its loss."""

    def terms(key, params, hyper, batch):
        noise_key, *keys = jax.random.split(key, 3)
        sides = side_inputs(spec, config, batch)
        safe, safe_sides = nets.sanitize(
            noise_key, nets.compose(params), batch.windows, sides
        )
        public = batch.labels[spec.public]
        predictor_key, discriminator_key = (None, None) if frozen else keys
        logits, _ = nets.predict(params, safe, safe_sides, predictor_key)
        others, _ = nets.discriminate(
            params, safe, public, safe_sides, discriminator_key
        )
        logits = {spec.public: logits, **others}
        errors = models.errors(nets, logits, batch.labels, config.errors)
        signed = config.goal == "published"
        leaks = [
            distance_from_chance(errors[name], spec.num_classes(name), signed=signed)
            for name in spec.private
        ]
        change = jnp.mean(jnp.abs(safe - batch.windows), axis=(0, 1))
        sides_change = jnp.mean(jnp.abs(safe_sides - sides), axis=0)
        weight = 1 - hyper["alpha"] - hyper["lambda_"]
        losses = [hyper["lambda_"] * errors[spec.public]]
        losses += [hyper["alpha"] * leak for leak in leaks]
        if distortion:
            losses += [weight * term for term in (*change, *sides_change)]
        info = {f"{name} error": error for name, error in errors.items()}
        return losses, info | {"change": jnp.mean(change)}

    def component(pick_fn):
        def loss_fn(key, params, hyper, batch, given):
            del given
            losses, info = terms(key, params, hyper, batch)
            return pick_fn(losses), (info | {"sanitizer": sum(losses)}, {})

        return Component(("sanitizer",), loss_fn)

    if config.optimization == "sum":
        return (component(sum),)
    changed = len(spec.channels) + len(config.physiology)
    num_terms = 1 + len(spec.private) + distortion * changed
    pick = lambda index: lambda losses: losses[index]
    return tuple(component(pick(index)) for index in range(num_terms))


def _classifiers(spec, nets, config, raw):
    """Returns the component of predictor and discriminators, which share batches."""

    def losses(key, params, batch, given):
        noise_key, *keys = jax.random.split(key, 3)
        windows, sides = batch.windows, side_inputs(spec, config, batch)
        if not raw:
            windows, sides = nets.sanitize(noise_key, given, windows, sides)
        public = batch.labels[spec.public]

        def predictor():
            logits, averages = nets.predict(params, windows, sides, keys[0])
            return _loss(nets, {spec.public: logits}, batch, config), averages

        def discriminators():
            logits, averages = nets.discriminate(
                params, windows, public, sides, keys[1]
            )
            return _loss(nets, logits, batch, config), averages

        return dict(zip(CLASSIFIERS, (predictor, discriminators), strict=True))

    def loss_fn(key, params, hyper, batch, given):
        del hyper
        total, reported, averages, watches = 0.0, 0.0, {}, {}
        for group, one in losses(key, params, batch, given).items():
            if config.early_stop:
                loss, averages[group], watches[group] = early_stopping.unless_enough(
                    params["watch"][group],
                    config.inner_steps,
                    one,
                    params["averages"][group],
                )
                reported = reported + watches[group].last
            else:
                loss, averages[group] = one()
                reported = reported + loss
            total = total + loss
        aux = {"averages": averages} | ({"watch": watches} if watches else {})
        return total, ({"classifiers": reported}, aux)

    adam = optax.scale_by_adam()
    if config.early_stop:
        adam = early_stopping.at_rest(adam)
    return Component(
        CLASSIFIERS,
        loss_fn,
        steps=config.inner_steps,
        fresh=True,
        given_fn=None
        if raw
        else lambda key, params, hyper, batch: nets.compose(params),
        optimizer=optax.flatten(adam),
    )


def _loss(nets, logits, batch, config):
    return sum(models.errors(nets, logits, batch.labels, config.errors).values())


OPTIMIZATIONS = ("sum", "vector")

GOALS = ("chance", "published")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SanitizerConfig:
    """Settings of a sanitizer that trains against a predictor and discriminators.

    Defaults are the official program's unless a help text says otherwise. ``alpha``,
    ``lambda_`` and ``learning_rate`` are arrays in the state, so a sweep can vary them
    without recompiling.
    """

    alpha: float = setting(
        0.6, at_least=0, help="weight of the private attributes' errors"
    )
    lambda_: float = setting(
        0.4, at_least=0, help="weight of the public attribute's error"
    )
    learning_rate: float = setting(
        5e-4, above=0, help="learning rate of Adam, for all networks"
    )
    batch_size: int = setting(256, at_least=1, help="windows per step")
    inner_steps: int = setting(
        1,
        at_least=1,
        help="predictor and discriminator steps per round, each on a new batch; "
        "official: 50",
    )
    early_stop: bool = setting(
        False, help="skip classifier steps once their losses are small; official: true"
    )
    errors: str = setting(
        "balanced",
        choices=ERRORS,
        help="balanced: average each error over the attribute's own classes; "
        "official: over the private attribute's classes",
    )
    goal: str = setting(
        "chance",
        choices=GOALS,
        help="chance: bring private errors to chance level; published: maximise them",
    )
    optimization: str = setting(
        "sum",
        choices=OPTIMIZATIONS,
        help="sum: one step on the weighted sum of losses; vector (official): one "
        "step per loss term",
    )
    standardized: bool = setting(
        True,
        help="feed standardised channels to the networks; official: false (physical "
        "units)",
    )
    physiology: tuple[str, ...] = setting(
        (),
        help="attributes of the wearer that condition the networks, as classes; "
        "official: height weight age. Anonymization has no labels and uses -1 "
        "for each",
    )
    filters: tuple[int, int] = setting(
        (64, 128), at_least=1, lengths=(2,), help="filters of the sanitizer's layers"
    )
    hidden_sizes: tuple[int, int] = setting(
        (128, 64),
        at_least=1,
        lengths=(2,),
        help="dense widths of the sanitizer down to its bottleneck",
    )
    predictor_filters: tuple[int, ...] = setting(
        (100, 100, 160, 160),
        at_least=1,
        min_length=1,
        help="filters of the predictor's layers",
    )
    discriminator_filters: int = setting(
        64, at_least=1, help="filters of each discriminator"
    )
    classifier_hidden_sizes: int = setting(
        64, at_least=1, help="width of the dense layer of predictor and discriminators"
    )

    __post_init__ = check


@dataclasses.dataclass(frozen=True, kw_only=True)
class DySanConfig(SanitizerConfig):
    """Settings of DySan; the weight of distortion is ``1 - alpha - lambda_``.

    Raises:
      Incompatible: if the weight of distortion is not positive.
    """

    lambda_: float = setting(
        0.3,
        at_least=0,
        help="weight of the public attribute's error; distortion has weight 1 - "
        "alpha - lambda_",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.alpha + self.lambda_ > 1 - 1e-6:
            raise Incompatible(
                "alpha + lambda_ must be < 1, because the weight of distortion is the "
                f"remainder, got {self.alpha:g} + {self.lambda_:g}; lower one of them."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OlympusConfig(SanitizerConfig):
    """Settings of DySan's version of Olympus, whose loss has no distortion term."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DySanGenConfig(SanitizerConfig):
    """Settings of DySan's version of GEN, which freezes classifiers of raw windows."""

    pretraining: int = setting(
        300,
        at_least=1,
        help="number of initial rounds that train only predictor and discriminators",
    )
