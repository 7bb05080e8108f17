"""A method of autoencoders, one for each public class or one for all."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.core.method import Method
from jaxanon.datasets.spec import attributes
from jaxanon.federated.engine.algorithm import State
from jaxanon.kernels import portable
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import pool, target_class
from jaxanon.methods.common.alternating import BatchSource, Component, central
from jaxanon.methods.common.target_class import ANONYMIZATIONS, FLIPS
from jaxanon.methods.obscurenet import class_means
from jaxanon.models.classifiers import Classifier
from jaxanon.models.conditional_autoencoder import (
    AutoencoderBatch,
    Rewriter,
    rewriter,
    rewriter_loss,
)
from jaxanon.models.layers import INITIALISATIONS
from jaxanon.models.losses import cross_entropy


class Design(NamedTuple):
    """What one system of the family differs in from another."""

    networks: Rewriter
    players: tuple[Component, ...]  # on ``AutoencoderBatch``
    hyper: dict[str, float]
    by_class: bool = True  # a model for each public class
    last_means: bool = False  # all models move latents by the last one's means


def networks(spec, config, **options) -> Rewriter:
    """The networks of one model; ``options`` as in ``rewriter``."""
    return rewriter(
        spec.time,
        len(spec.channels),
        [spec.num_classes(name) for name in spec.private],
        latent=config.latent_dim,
        hidden=config.hidden_sizes,
        initialization=config.initialization,
        **options,
    )


def model_player(nets: Rewriter, groups, weights_fn, variant: str) -> Component:
    """The player that learns ``groups`` by ``rewriter_loss``.

    ``weights_fn(hyper)`` are the weights of the KL divergence and of the readers' loss.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        beta, reading = weights_fn(hyper)
        loss, info = rewriter_loss(
            nets, params, batch, beta=beta, reading=reading, variant=variant
        )
        return loss, (info, {})

    return Component(groups, loss_fn)


def autoencoders(name: str, spec, config, design: Design) -> Method:
    """Ties a design, the classifiers it relies on and the data into a method.

    Models train side by side, each on batches of its own public class; one that has
    them all trains on batches of the whole pool. A window is anonymized by the model of
    its predicted public class. All models see all windows and one result of each is
    kept: a window's own copy of 0.6 million weights would cost more to read than the
    other models' products cost to compute, from two windows on.

    Args:
      name: of the method.
      spec: ``jaxanon.datasets.Spec``.
      config: ``AutoencoderConfig`` whose sizes are known.
      design: ``Design``.

    Returns:
      ``Method``. Its parameters are ``classifiers`` and, with a leading axis of models,
      the networks' groups. Where the decoder is not told private classes, the latent
      moves between them by ``means``, the ``offsets`` of ``class_means``: exact for the
      parameters at the end of every epoch, and 0 before the first has ended.

    Raises:
      ValueError: for ``anonymization="vector"`` where the decoder is told no class.
    """
    nets, by_class = design.networks, design.by_class
    moved = not nets.told
    if moved and config.anonymization == "vector":
        raise ValueError(
            f"anonymization must be one of {list(target_class.ANONYMIZATIONS)} for "
            f"{name}, whose decoder is told no class, got 'vector'."
        )
    copies = spec.num_classes(spec.public) if by_class else 1
    hyper = {
        "learning_rate": config.learning_rate,
        "classifier_learning_rate": config.classifier_learning_rate,
    }
    hyper |= design.hyper

    def windows_of(data):
        """First and number of each model's windows in ``data.order``, ``int32[]``."""
        if by_class:
            return data.starts, data.counts
        return jnp.zeros(1, jnp.int32), jnp.sum(data.counts, keepdims=True)

    def rounds_of(data):
        most = jnp.max(windows_of(data)[1])
        return jnp.maximum(1, (2 * most + config.batch_size) // (2 * config.batch_size))

    def draw_fn(key, data, copy):
        rows_key, noise_key = jax.random.split(key)
        public = copy if by_class else None
        drawn = pool.draw(rows_key, data, config.batch_size, public)
        noise = jax.random.normal(noise_key, (config.batch_size, config.latent_dim))
        return AutoencoderBatch(drawn.windows, _one_hots(spec, drawn.labels), noise)

    def init_fn(key):
        params = nets.init(key)
        if moved:
            classes = sum(spec.num_classes(private) for private in spec.private)
            rows = 1 if by_class else spec.num_classes(spec.public)
            params["means"] = jnp.zeros((rows, classes, config.latent_dim))
        return params

    def finish_fn(key, state, data):
        del key

        def one(model):
            params, start, count = model
            mean_fn = lambda windows: nets.encode(params, windows)[0]
            return class_means.offsets(
                mean_fn, spec, data, start, count, split_public=not by_class
            )

        renew = lambda: jax.lax.map(one, (state.params, *windows_of(data)))
        old = state.params["means"]
        return {
            "means": class_means.at_epoch_end(state.round, rounds_of(data), renew, old)
        }

    def classes_of(key, seen):
        return {
            private: target_class.shown_class(
                portable.fold_in(key, index),
                config.anonymization,
                seen[private],
                spec.num_classes(private),
                config.flip_probability,
                config.flip_direction,
            )
            for index, private in enumerate(spec.private)
        }

    def vectors_of(key, count):
        return tuple(
            target_class.shown_vector(
                portable.fold_in(key, index), count, spec.num_classes(private)
            )
            for index, private in enumerate(spec.private)
        )

    def anonymize_fn(key, params, windows):
        noise_key, class_key = portable.split(key)
        seen = predict(spec, params, windows)
        if config.anonymization == "vector":
            show, told = {}, vectors_of(class_key, len(windows))
        else:
            show = classes_of(class_key, seen)
            told = _one_hots(spec, show)
        noise = portable.normal(noise_key, (len(windows), config.latent_dim))
        public, none = seen[spec.public], jnp.zeros(len(windows), jnp.int32)

        def rewritten(params):
            z = nets.draw(params, windows, noise)
            if moved:
                row = none if by_class else public
                z = z + class_means.transfer(spec, params["means"], row, seen, show)
            return nets.decode(params, z, told)

        models = {group: params[group] for group in params if group != GROUP}
        if design.last_means:
            means = models["means"]
            models["means"] = jnp.broadcast_to(means[-1:], means.shape)
        which = public if by_class else none
        if len(windows) == 1:  # By the one model whose turn it is.
            take = lambda number: jax.tree.map(lambda leaf: leaf[number], models)
            count = len(jax.tree.leaves(models)[0])
            turns = [functools.partial(rewritten, take(n)) for n in range(count)]
            return _branch(which[0], turns)
        every = jax.vmap(rewritten)(models)
        return jnp.take_along_axis(every, which[None, :, None, None], axis=0)[0]

    room = BatchSource(
        lambda clients: pool.pool(spec, clients, by_class=by_class),
        draw_fn,
        lambda data: int(rounds_of(data)),
        copies * config.batch_size,
        copies,
    )
    models = central(
        name,
        config,
        spec,
        room,
        init_fn=init_fn,
        players=design.players,
        hyper=hyper,
        anonymize_fn=anonymize_fn,
        finish_fn=finish_fn if moved else None,
    )
    return train_jointly(models, judges(spec, config.classifier_batch_size, hyper))


def _branch(index, branches):
    """``jax.lax.switch`` by halves: an exported graph knows two branches at a time."""
    if len(branches) == 1:
        return branches[0]()
    half = len(branches) // 2
    later = lambda: _branch(index - half, branches[half:])
    return jax.lax.cond(index >= half, later, lambda: _branch(index, branches[:half]))


def _one_hots(spec, labels):
    return tuple(
        jax.nn.one_hot(labels[name], spec.num_classes(name)) for name in spec.private
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AutoencoderConfig:
    """Settings of an autoencoder that is trained in one place.

    Numbers in them, but for ``flip_probability``, are defaults of hyper-parameters,
    arrays in the state that a sweep may vary without compiling anew.
    """

    latent_dim: int | None = setting(
        None, at_least=1, help="size of the latent; default: as published, or 10"
    )
    hidden_sizes: tuple[int, ...] | None = setting(
        None, at_least=1, help="encoder's widths; default: as published"
    )
    batch_size: int = setting(512, at_least=1, help="windows per model and round")
    learning_rate: float = setting(1e-3, above=0, help="step size of Adam")
    initialization: str = setting(
        "official",
        choices=INITIALISATIONS,
        help="of all layers; lecun: variance 1 / fan-in, quicker to learn",
    )
    classifier_batch_size: int = setting(
        256, at_least=1, help="the classifiers' windows"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="step size of their Adam"
    )
    anonymization: str = setting(
        "stochastic",
        choices=(*ANONYMIZATIONS, "vector"),
        help="stochastic: a random private class; deterministic: the one next to the "
        "predicted; probabilistic: that one or the predicted; vector, of a decoder "
        "that is told classes: random weights of them, as the released programs have "
        "it; a trained state serves all",
    )
    flip_direction: str = setting(
        "next",
        choices=FLIPS,
        help="the class shown instead of the predicted: the one after it, by number; "
        "previous, as released for MobiAct's weight: the one before it",
    )
    flip_probability: float = setting(
        0.5, at_least=0, at_most=1, help="probabilistic: how often"
    )

    __post_init__ = check


def sized(config: Any, spec, published: dict) -> Any:
    """``config`` with the sizes that it leaves open.

    Args:
      config: ``AutoencoderConfig``.
      spec: the windows' ``Spec``; its name chooses.
      published: name of a data set, or ``""`` for all others, to latent and hidden.

    Example:
      >>> from jaxanon.datasets import load
      >>> table = {"": (10, (512, 128))}
      >>> spec = load("smartwatch").spec
      >>> config = sized(AutoencoderConfig(latent_dim=4), spec, table)
      >>> config.latent_dim, config.hidden_sizes
      (4, (512, 128))
    """
    latent, hidden = published.get(spec.name, published[""])
    return dataclasses.replace(
        config,
        latent_dim=latent if config.latent_dim is None else config.latent_dim,
        hidden_sizes=hidden if config.hidden_sizes is None else config.hidden_sizes,
    )


GROUP = "classifiers"

DROPOUT = 0.3


def judges(
    spec, size: int, hyper: dict, learning_rate: str = "classifier_learning_rate"
) -> Method:
    """A method that learns a classifier of each attribute on raw training windows.

    Args:
      spec: the windows' ``Spec``.
      size: windows of a batch, drawn from the whole pool.
      hyper: as in ``central``; must have ``learning_rate``.
      learning_rate: name of the hyper-parameter.

    Returns:
      ``Method`` whose one group is ``classifiers``; it anonymizes nothing.
    """
    nets = _networks(spec)

    def init_fn(key):
        window = jnp.zeros((1, spec.time, len(spec.channels)))
        keys = jax.random.split(key, len(nets))
        pairs = zip(nets.items(), keys, strict=True)
        return {GROUP: {n: net.init(one, window)["params"] for (n, net), one in pairs}}

    def loss_fn(key, params, hyper, batch, given):
        del hyper, given
        info, total = {}, 0.0
        for index, (name, net) in enumerate(nets.items()):
            dropout_key = jax.random.fold_in(key, index)
            own = {"params": params[GROUP][name]}
            logits = net.apply(own, batch.windows, dropout_key, DROPOUT)
            targets = jax.nn.one_hot(batch.labels[name], net.num_classes)
            loss = cross_entropy(logits, targets, jnp.ones(size))
            info[f"{name} classifier"] = loss
            total = total + loss
        return total, (info, {})

    room = BatchSource(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: pool.draw(key, data, size),
        lambda data: pool.rounds_per_epoch(data, size),
        size,
    )
    return central(
        "judges",
        None,
        spec,
        room,
        init_fn=init_fn,
        players=(Component((GROUP,), loss_fn, learning_rate=learning_rate),),
        hyper=hyper,
        anonymize_fn=lambda key, params, windows: windows,
    )


def predict(spec, params, windows) -> dict[str, jax.Array]:
    """``int32[N]``, the class of each attribute, of standardised windows."""
    found = {}
    for name, net in _networks(spec).items():
        logits: Any = net.apply({"params": params[GROUP][name]}, windows)
        found[name] = jnp.argmax(logits, axis=-1)
    return found


def train_jointly(models: Method, others: Method) -> Method:
    """``models`` with the judges ``others`` learned in the same rounds, in one state.

    Models that have a leading axis of copies share one set of classifiers this way.
    Both must take the same data and the same hyper-parameters; all else is that of
    ``models``, whose ``anonymize`` finds the classifiers among its parameters.
    """

    def init(key, **values):
        model_key, judge_key = jax.random.split(key)
        return _joined(
            models.init(model_key, **values), others.init(judge_key, **values)
        )

    def update(key, state, data):
        model_key, judge_key = jax.random.split(jax.random.fold_in(key, state.round))
        model, info = models.update(model_key, _part(state, False), data)
        judge, more = others.update(judge_key, _part(state, True), data)
        return _joined(model, judge), info | more

    return models._replace(init=init, update=update)


def _networks(spec):
    names = attributes(spec)
    return {name: Classifier(num_classes=spec.num_classes(name)) for name in names}


def _part(state: State, judging: bool) -> State:
    keep = lambda groups: {g: v for g, v in groups.items() if (g == GROUP) == judging}
    return state._replace(params=keep(state.params), opt_state=keep(state.opt_state))


def _joined(one: State, other: State) -> State:
    return one._replace(
        params=one.params | other.params, opt_state=one.opt_state | other.opt_state
    )
