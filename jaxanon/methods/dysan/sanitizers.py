"""The room of DySan and what it re-implements: a sanitizer, graded by its judges."""

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
from jaxanon.models.losses import from_chance

JUDGES = ("predictor", "discriminators")


def sanitizer(
    name: str,
    spec,
    config: Any,
    *,
    distortion: bool = True,
    pretraining: int | None = None,
) -> Method:
    """A method whose sanitizer is graded by a predictor and discriminators.

    A round is a step of the sanitizer on a batch, then ``config.inner_steps`` steps of
    the judges, predictor and discriminators, on sanitized batches of their own: the
    order of Algorithm 1. The sanitizer pays for

    - ``lambda_`` times the balanced error of the predictor,
    - ``alpha`` times, for each private attribute, the distance of a discriminator's
      balanced error from that of guessing (eq. 3's d_s),
    - ``1 - alpha - lambda_`` times, for each channel, the mean absolute change.

    Differences from the released program: batches are drawn with replacement; Adam's
    weight decay of 1e-10, which float32 does not resolve, is left out; nothing but the
    window goes in, unless ``config.physiology`` names what else, of which the change is
    paid for, too: classes, where the program has numbers, and not the activity, which
    it gives the sanitizer times 0.

    Args:
      name: the method's.
      spec: ``jaxanon.datasets.Spec``.
      config: ``SanitizerConfig``.
      distortion: whether change is paid for.
      pretraining: None, or rounds in which the judges learn on raw windows before they
        are frozen and the sanitizer begins.
    """
    nets = networks(spec, config)
    frozen = pretraining is not None
    sanitizers = _sanitizers(spec, nets, config, distortion, frozen)
    judges = _judges(spec, nets, config, raw=frozen)
    if frozen:
        late = lambda round_: round_ >= pretraining
        sanitizers = tuple(each._replace(when_fn=late) for each in sanitizers)
        judges = judges._replace(when_fn=lambda round_: round_ < pretraining)

    def init_fn(key):
        watched = {"watch": {group: early_stopping.watch() for group in JUDGES}}
        return nets.init(key) | (watched if config.early_stop else {})

    def draw_fn(key, data, copy):
        del copy
        batch = pool.draw(key, data, config.batch_size)
        return batch._replace(windows=seen(spec, config, batch.windows))

    def anonymize_fn(key, params, windows):
        windows = seen(spec, config, windows)
        safe, _ = nets.sanitize(key, nets.compose(params), windows)
        return seen(spec, config, safe, back=True)

    room = BatchSource(
        lambda clients: pool.pool(spec, clients),
        draw_fn,
        lambda data: pool.rounds_per_epoch(data, config.batch_size),
        config.batch_size,
    )
    return central(
        name,
        config,
        spec,
        room,
        init_fn=init_fn,
        players=(*sanitizers, judges),
        hyper={n: getattr(config, n) for n in ("alpha", "lambda_", "learning_rate")},
        anonymize_fn=anonymize_fn,
    )


def networks(spec, config) -> models.DySanNetworks:
    """The networks of a ``SanitizerConfig`` for windows of ``spec``.

    Raises:
      ValueError: for a ``physiology`` that the windows have no labels of, or which is
        to be kept or hidden, or of one class.
    """
    if missing := [name for name in config.physiology if name not in spec.classes]:
        raise ValueError(
            f"physiology must be attributes of {spec.name!r}, which has "
            f"{sorted(spec.classes)}, got {missing}."
        )
    for name in config.physiology:
        if name in (spec.public, *spec.private) or spec.num_classes(name) < 2:
            raise ValueError(
                f"physiology must be of two classes at least and neither kept nor "
                f"hidden, got {name!r}; leave it out."
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


def sides_of(spec, config, batch):
    """What networks are told beside windows, ``float[batch, sides]`` in [-1, 1]."""
    columns = [
        models.scaled(batch.labels[name], spec.num_classes(name))[:, None]
        for name in config.physiology
    ]
    return jnp.concatenate([jnp.zeros((len(batch.windows), 0)), *columns], axis=1)


def seen(spec, config, windows, *, back: bool = False):
    """Standardised windows as the networks see them, or those ``back`` again."""
    if config.standardized:
        return windows
    mean, std = (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
    return (windows - mean) / std if back else windows * std + mean


def _sanitizers(spec, nets, config, distortion, frozen):
    """The sanitizer as one player, or as one for each term of its loss in turn."""

    def terms(key, params, hyper, batch):
        noise_key, *keys = jax.random.split(key, 3)
        sides = sides_of(spec, config, batch)
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
        left = [
            from_chance(errors[name], spec.num_classes(name), signed=signed)
            for name in spec.private
        ]
        change = jnp.mean(jnp.abs(safe - batch.windows), axis=(0, 1))
        sides_change = jnp.mean(jnp.abs(safe_sides - sides), axis=0)
        weight = 1 - hyper["alpha"] - hyper["lambda_"]
        found = [hyper["lambda_"] * errors[spec.public]]
        found += [hyper["alpha"] * each for each in left]
        if distortion:
            found += [weight * each for each in (*change, *sides_change)]
        info = {f"{name} error": error for name, error in errors.items()}
        return found, info | {"change": jnp.mean(change)}

    def player(pick_fn):
        def loss_fn(key, params, hyper, batch, given):
            del given
            found, info = terms(key, params, hyper, batch)
            return pick_fn(found), (info | {"sanitizer": sum(found)}, {})

        return Component(("sanitizer",), loss_fn)

    if config.optimization == "sum":
        return (player(sum),)
    changed = len(spec.channels) + len(config.physiology)
    num_terms = 1 + len(spec.private) + distortion * changed
    pick = lambda index: lambda found: found[index]
    return tuple(player(pick(index)) for index in range(num_terms))


def _judges(spec, nets, config, raw):
    """Predictor and discriminators on the same windows, each by a loss of its own."""

    def losses(key, params, batch, given):
        noise_key, *keys = jax.random.split(key, 3)
        windows, sides = batch.windows, sides_of(spec, config, batch)
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

        return dict(zip(JUDGES, (predictor, discriminators), strict=True))

    def loss_fn(key, params, hyper, batch, given):
        del hyper
        total, told, averages, watches = 0.0, 0.0, {}, {}
        for group, one in losses(key, params, batch, given).items():
            if config.early_stop:
                loss, averages[group], watches[group] = early_stopping.unless_enough(
                    params["watch"][group],
                    config.inner_steps,
                    one,
                    params["averages"][group],
                )
                told = told + watches[group].last
            else:
                loss, averages[group] = one()
                told = told + loss
            total = total + loss
        kept = {"averages": averages} | ({"watch": watches} if watches else {})
        return total, ({"judges": told}, kept)

    adam = optax.scale_by_adam()
    return Component(
        JUDGES,
        loss_fn,
        steps=config.inner_steps,
        fresh=True,
        given_fn=None
        if raw
        else lambda key, params, hyper, batch: nets.compose(params),
        optimizer=early_stopping.at_rest(adam) if config.early_stop else adam,
    )


def _loss(nets, logits, batch, config):
    return sum(models.errors(nets, logits, batch.labels, config.errors).values())


OPTIMIZATIONS = ("sum", "vector")

GOALS = ("chance", "published")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SanitizerConfig:
    """Settings of a sanitizer against a predictor and discriminators.

    Those of the released program unless said otherwise. ``alpha``, ``lambda_`` and
    ``learning_rate`` are defaults here and arrays in the state, which a sweep may vary
    without compiling anew.
    """

    alpha: float = setting(0.6, at_least=0, help="weight of the private errors")
    lambda_: float = setting(0.4, at_least=0, help="weight of the public error")
    learning_rate: float = setting(
        5e-4, above=0, help="step size of all networks' Adam"
    )
    batch_size: int = setting(256, at_least=1, help="windows per step")
    inner_steps: int = setting(
        1,
        at_least=1,
        help="of predictor and discriminators per round, on fresh windows; released: "
        "50",
    )
    early_stop: bool = setting(False, help="released: fewer when losses are small")
    errors: str = setting(
        "balanced",
        choices=ERRORS,
        help="averaged over an attribute's own classes; released: over the private "
        "one's",
    )
    goal: str = setting(
        "chance",
        choices=GOALS,
        help="private errors as of guessing; published: the greater the better",
    )
    optimization: str = setting(
        "sum",
        choices=OPTIMIZATIONS,
        help="one step on the weighted sum; vector, as released: one step for each "
        "term",
    )
    standardized: bool = setting(
        True, help="networks see standardised channels; no, as released: physical units"
    )
    physiology: tuple[str, ...] = setting(
        (),
        help="attributes of the wearer that networks are told, by class; released: "
        "height weight age. Nobody tells them when windows leave, and -1 stands for "
        "each",
    )
    filters: tuple[int, int] = setting(
        (64, 128), at_least=1, lengths=(2,), help="filters of the sanitizer"
    )
    hidden_sizes: tuple[int, int] = setting(
        (128, 64), at_least=1, lengths=(2,), help="dense widths to the bottleneck"
    )
    predictor_filters: tuple[int, ...] = setting(
        (100, 100, 160, 160), at_least=1, min_length=1, help="of the predictor"
    )
    discriminator_filters: int = setting(64, at_least=1, help="of a discriminator")
    classifier_hidden_sizes: int = setting(
        64, at_least=1, help="width of the dense layer of predictor and discriminators"
    )

    __post_init__ = check


@dataclasses.dataclass(frozen=True, kw_only=True)
class DySanConfig(SanitizerConfig):
    """DySan's settings; the weight of distortion is ``1 - alpha - lambda_``.

    Raises:
      Incompatible: if nothing is left for it.
    """

    lambda_: float = setting(
        0.3, at_least=0, help="weight of the public error; the rest is distortion's"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.alpha + self.lambda_ > 1 - 1e-6:
            raise Incompatible(
                "alpha + lambda_ must be < 1, for the rest is the weight of "
                f"distortion, got {self.alpha:g} + {self.lambda_:g}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OlympusConfig(SanitizerConfig):
    """Olympus's settings, as DySan re-implements it: nothing is paid for distortion."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DySanGenConfig(SanitizerConfig):
    """GEN's settings, as DySan re-implements it: judges of raw windows, then frozen."""

    pretraining: int = setting(
        300, at_least=1, help="first rounds, of predictor and discriminators alone"
    )
