"""GEN: a guardian trained against an estimator of raw windows."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.datasets.spec import attributes
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
from jaxanon.models.losses import distance_from_uniform, weighted_cross_entropy
from jaxanon.models.malekzadeh import MIN_TIME, Estimator, Guardian

HYPER = ("utility", "confusion", "learning_rate")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GENConfig:
    """GEN's settings, with the values of the authors' program by default.

    Loss weights and the learning rate are hyper-parameters: the state stores them as
    arrays, so sweeps do not recompile.
    """

    utility: float = setting(1.0, at_least=0, help="weight of the public cross-entropy")
    confusion: float = setting(
        1.0,
        at_least=0,
        help="weight of the private probabilities' distance from chance level",
    )
    learning_rate: float = setting(1e-3, above=0, help="learning rate of both networks")
    batch_size: int = setting(64, at_least=1, help="windows per step")
    pretraining: int = setting(
        5, at_least=1, help="initial epochs that train only the estimator"
    )
    filters: tuple[int, ...] = setting(
        (50, 40, 20), at_least=1, lengths=(3,), help="filters of the estimator"
    )
    estimator_hidden_sizes: int = setting(
        400, at_least=1, help="width of the estimator's dense layer"
    )
    hidden_sizes: tuple[int, ...] | None = setting(
        None,
        at_least=1,
        help="guardian's hidden layer widths; default: halves down to 1/8 and back",
    )

    __post_init__ = check


@register("gen", config=GENConfig, recipes=recipes.GEN)
def gen(spec, config) -> Method:
    """Builds the original GEN for windows of ``spec``.

    An estimator of all attributes trains on raw windows and is then frozen. A guardian,
    a dense network with a bottleneck, then trains to rewrite windows. Its loss ``CE +
    mean |0.5 - p|`` is the estimator's cross-entropy of the public attribute plus the
    distance of its private probabilities from chance level. It does not penalize
    changes of windows. ``dysan_gen`` uses DySan's networks instead.

    If the estimator is confident about a private class, the distance term has almost no
    gradient, so longer pretraining hides less.

    For more than two classes, ``|1 / classes - p|`` is averaged over the classes, which
    equals the published term for two. Batches are drawn with replacement. The paper
    does not specify the estimator's activations; this implementation uses ReLU.

    Args:
      spec: ``jaxanon.datasets.Spec``; published for 12 channels of 50 samples.
      **settings: fields of ``GENConfig``.

    Raises:
      ValueError: if a setting is out of range, or windows are too short.

    Example:
      >>> from jaxanon.datasets import load
      >>> gen(load("smartwatch").spec).config.batch_size
      64

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Protecting Sensory Data against Sensitive
      Inferences, W-P2DS 2018, section 3.
    """
    spec.num_classes(spec.public)  # Raises if the public attribute is numeric.
    if spec.time < MIN_TIME:
        raise ValueError(
            f"gen's windows must have at least {MIN_TIME} samples for its three "
            f"convolutions, got {spec.time}; use longer windows."
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
        logits, info = estimate(params, safe, key), {}
        distance = jnp.zeros(())
        for name in spec.private:
            info[f"{name} off chance"] = distance_from_uniform(logits[name])
            distance = distance + info[f"{name} off chance"]
        utility = _cross_entropy(logits[spec.public], batch.labels[spec.public])
        total = hyper["utility"] * utility + hyper["confusion"] * distance
        info |= {f"{spec.public} loss": utility, "guardian": total}
        return total, (info, {})

    source = BatchSource(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: pool.draw(key, data, config.batch_size),
        lambda data: pool.rounds_per_epoch(data, config.batch_size),
        config.batch_size,
    )
    adam = optax.flatten(optax.scale_by_adam(eps=1e-7))

    def make(rounds):
        stages = (
            ("estimator", estimator_loss, during(rounds, 0, config.pretraining)),
            ("guardian", guardian_loss, during(rounds, config.pretraining)),
        )
        return central(
            "gen",
            config,
            spec,
            source,
            init_fn=init_fn,
            components=tuple(
                Component((group,), loss_fn, when_fn=when_fn, optimizer=adam)
                for group, loss_fn, when_fn in stages
            ),
            hyper={name: getattr(config, name) for name in HYPER},
            anonymize_fn=lambda key, params, windows: rewrite(params, windows),
        )

    return with_phases(
        by_epoch(make), min_epochs=config.pretraining + 1, phases=("pretraining",)
    )


def _cross_entropy(logits, labels):
    return weighted_cross_entropy(logits, labels, jnp.ones(len(labels)))
