"""GEN: a guardian that rewrites windows, graded by an estimator of raw ones."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.datasets.spec import attributes
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
from jaxanon.models.losses import off_chance, weighted_cross_entropy
from jaxanon.models.malekzadeh import LEAST, Estimator, Guardian

HYPER = ("utility", "confusion", "learning_rate")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GENConfig:
    """GEN's settings; those of the released program unless said otherwise.

    Weights and step size are defaults here and arrays in the state, which a sweep may
    vary without compiling anew.
    """

    utility: float = setting(1.0, at_least=0, help="weight of the public cross-entropy")
    confusion: float = setting(
        1.0, at_least=0, help="weight of private probabilities' distance from chance"
    )
    learning_rate: float = setting(1e-3, above=0, help="step size of both networks")
    batch_size: int = setting(64, at_least=1, help="windows per step")
    pretraining: int = setting(5, at_least=1, help="first epochs, of the estimator")
    filters: tuple[int, ...] = setting(
        (50, 40, 20), at_least=1, lengths=(3,), help="filters of the estimator"
    )
    estimator_hidden_sizes: int = setting(
        400, at_least=1, help="width of its dense layer"
    )
    hidden_sizes: tuple[int, ...] | None = setting(
        None, at_least=1, help="guardian's widths; default: halves down to 1/8 and back"
    )

    __post_init__ = check


@register("gen", config=GENConfig)
def gen(spec, config) -> Method:
    """Builds GEN, the original, for windows of ``spec``.

    An estimator of all attributes learns from raw windows and is frozen. Then a
    guardian, dense layers through a bottleneck, learns to rewrite windows so that the
    estimator's cross-entropy of the public attribute is least and its probabilities of
    private ones are those of a guess: ``CE + mean |0.5 - p|``. Nothing is paid for
    change. ``dysan_gen`` is the same idea by DySan's networks.

    Where the estimator is sure of a private class, the distance of a probability has
    next to no gradient: the longer it learns, the less is hidden.

    Of more classes than two, ``|1 / classes - p|`` is averaged over them, which of two
    is the published term. Batches are drawn with replacement; the activations between
    the estimator's layers are not known, and are ReLU.

    Args:
      spec: ``jaxanon.datasets.Spec``; published for 12 channels of 50 samples.
      **settings: fields of ``GENConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a window is too short.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> gen(load("smartwatch").spec).config.batch_size
      64

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Protecting Sensory Data against Sensitive
      Inferences, W-P2DS 2018, section 3.
    """
    spec.num_classes(spec.public)  # A number is refused.
    if spec.time < LEAST:
        raise ValueError(
            f"gen's windows must have at least {LEAST} samples for its three "
            f"convolutions, got {spec.time}; take longer windows."
        )
    classes = tuple((name, spec.num_classes(name)) for name in attributes(spec))
    estimator = Estimator(classes, tuple(config.filters), config.estimator_hidden_sizes)
    hidden = None if config.hidden_sizes is None else tuple(config.hidden_sizes)
    guardian = Guardian(hidden)

    def init_fn(key):
        keys = jax.random.split(key)
        windows = jnp.zeros((1, spec.time, len(spec.channels)))
        return {
            "estimator": estimator.init(keys[0], windows)["params"],
            "guardian": guardian.init(keys[1], windows)["params"],
        }

    def rewrite(params, windows):
        return guardian.apply({"params": params["guardian"]}, windows)

    def estimate(params, windows, key) -> Any:
        return estimator.apply({"params": params["estimator"]}, windows, key)

    def estimator_loss(key, params, hyper, batch, given):
        del hyper, given
        total = jnp.zeros(())
        for name, logits in estimate(params, batch.windows, key).items():
            total = total + _cross_entropy(logits, batch.labels[name])
        return total, ({"estimator": total}, {})

    def guardian_loss(key, params, hyper, batch, given):
        del given
        safe = rewrite(params, batch.windows)
        found, info = estimate(params, safe, key), {}
        off = jnp.zeros(())
        for name in spec.private:
            info[f"{name} off chance"] = off_chance(found[name])
            off = off + info[f"{name} off chance"]
        utility = _cross_entropy(found[spec.public], batch.labels[spec.public])
        total = hyper["utility"] * utility + hyper["confusion"] * off
        info |= {f"{spec.public} loss": utility, "guardian": total}
        return total, (info, {})

    room = BatchSource(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: pool.draw(key, data, config.batch_size),
        lambda data: pool.rounds_per_epoch(data, config.batch_size),
        config.batch_size,
    )
    adam = optax.scale_by_adam(eps=1e-7)

    def make(rounds):
        turns = (
            ("estimator", estimator_loss, during(rounds, 0, config.pretraining)),
            ("guardian", guardian_loss, during(rounds, config.pretraining)),
        )
        return central(
            "gen",
            config,
            spec,
            room,
            init_fn=init_fn,
            players=tuple(
                Component((group,), loss_fn, when_fn=when_fn, optimizer=adam)
                for group, loss_fn, when_fn in turns
            ),
            hyper={name: getattr(config, name) for name in HYPER},
            anonymize_fn=lambda key, params, windows: rewrite(params, windows),
        )

    return with_phases(
        by_epoch(make), min_epochs=config.pretraining + 1, phases=("pretraining",)
    )


def _cross_entropy(logits, labels):
    return weighted_cross_entropy(logits, labels, jnp.ones(len(labels)))
