"""Anonymizers built from autoencoders, one per public class or one for all."""

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
    ConditionalAutoencoder,
    autoencoder_loss,
    conditional_autoencoder,
)
from jaxanon.models.layers import INITIALIZATIONS
from jaxanon.models.losses import cross_entropy


class Design(NamedTuple):
    """Properties in which the systems of this family differ."""

    networks: ConditionalAutoencoder
    components: tuple[Component, ...]  # trained on ``AutoencoderBatch``
    hyper: dict[str, float]
    by_class: bool = True  # one model per public class
    last_means: bool = False  # all models use the last model's class means


def networks(spec, config, **options) -> ConditionalAutoencoder:
    """Builds one model's networks; ``options`` are ``conditional_autoencoder``'s."""
    return conditional_autoencoder(
        spec.time,
        len(spec.channels),
        [spec.num_classes(name) for name in spec.private],
        latent=config.latent_dim,
        hidden=config.hidden_sizes,
        initialization=config.initialization,
        **options,
    )


def model_component(
    nets: ConditionalAutoencoder, groups, weights_fn, variant: str
) -> Component:
    """Returns the component that trains ``groups`` with ``autoencoder_loss``.

    ``weights_fn(hyper)`` returns the weights of the KL divergence and of the latent
    classifiers' loss.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        beta, classifier_weight = weights_fn(hyper)
        loss, info = autoencoder_loss(
            nets,
            params,
            batch,
            beta=beta,
            classifier_weight=classifier_weight,
            variant=variant,
        )
        return loss, (info, {})

    return Component(groups, loss_fn)


def autoencoders(name: str, spec, config, design: Design) -> Method:
    """Builds a method from a design and its attribute classifiers.

    With one model per public class, the models train in parallel on batches of their
    class; a single model trains on the whole pool. The model of the predicted public
    class anonymizes each window. For two or more windows, all models process all
    windows and one result per window is selected. This is cheaper than gathering a
    model's weights for each window.

    Args:
      name: name of the method.
      spec: ``jaxanon.datasets.Spec``.
      config: ``AutoencoderConfig`` with sizes set.
      design: ``Design``.

    Returns:
      ``Method``. Its parameters are ``classifiers`` and the networks' groups, which
      have a leading axis of models. If the decoder has no private classes as input, the
      parameters include ``means``, the ``offsets`` of ``class_means`` that shift
      latents between classes. They are 0 in the first epoch and recomputed at the end
      of each epoch.

    Raises:
      ValueError: if ``anonymization="vector"`` and the decoder has no class input.
    """
    nets, by_class = design.networks, design.by_class
    moved = not nets.decoder_classes
    if moved and config.anonymization == "vector":
        raise ValueError(
            f"anonymization must be one of {list(target_class.ANONYMIZATIONS)} for "
            f"{name}, whose decoder has no class input, got 'vector'."
        )
    copies = spec.num_classes(spec.public) if by_class else 1
    hyper = {
        "learning_rate": config.learning_rate,
        "classifier_learning_rate": config.classifier_learning_rate,
    }
    hyper |= design.hyper

    def windows_of(data):
        """Returns the start and count of each model's windows in ``data.order``."""
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

    def classes_of(key, predicted):
        return {
            private: target_class.shown_class(
                portable.fold_in(key, index),
                config.anonymization,
                predicted[private],
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
        predicted = predict(spec, params, windows)
        if config.anonymization == "vector":
            show, condition = {}, vectors_of(class_key, len(windows))
        else:
            show = classes_of(class_key, predicted)
            condition = _one_hots(spec, show)
        noise = portable.normal(noise_key, (len(windows), config.latent_dim))
        public, zeros = predicted[spec.public], jnp.zeros(len(windows), jnp.int32)

        def rewritten(params):
            z = nets.draw(params, windows, noise)
            if moved:
                row = zeros if by_class else public
                z = z + class_means.transfer(
                    spec, params["means"], row, predicted, show
                )
            return nets.decode(params, z, condition)

        models = {group: params[group] for group in params if group != GROUP}
        if design.last_means:
            means = models["means"]
            models["means"] = jnp.broadcast_to(means[-1:], means.shape)
        which = public if by_class else zeros
        if len(windows) == 1:  # Runs only the selected model.
            take = lambda number: jax.tree.map(lambda leaf: leaf[number], models)
            count = len(jax.tree.leaves(models)[0])
            turns = [functools.partial(rewritten, take(n)) for n in range(count)]
            return _branch(which[0], turns)
        every = jax.vmap(rewritten)(models)
        return jnp.take_along_axis(every, which[None, :, None, None], axis=0)[0]

    source = BatchSource(
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
        source,
        init_fn=init_fn,
        components=design.components,
        hyper=hyper,
        anonymize_fn=anonymize_fn,
        finish_fn=finish_fn if moved else None,
    )
    return train_jointly(
        models, attribute_classifiers(spec, config.classifier_batch_size, hyper)
    )


def _branch(index, branches):
    """Replaces ``jax.lax.switch``, because exports support two-way branches only."""
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
    """Settings shared by the centrally trained autoencoders.

    Loss weights and learning rates are hyper-parameters: the state stores them as
    arrays, so sweeps do not recompile.
    """

    latent_dim: int | None = setting(
        None, at_least=1, help="size of the latent; default: as published, or 10"
    )
    hidden_sizes: tuple[int, ...] | None = setting(
        None, at_least=1, help="encoder layer widths; default: as published"
    )
    batch_size: int = setting(512, at_least=1, help="windows per model and round")
    learning_rate: float = setting(1e-3, above=0, help="learning rate (Adam)")
    initialization: str = setting(
        "official",
        choices=INITIALIZATIONS,
        help="initialization of all layers; lecun: variance 1 / fan-in, trains faster",
    )
    classifier_batch_size: int = setting(
        256, at_least=1, help="classifiers: windows per round"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="classifiers: learning rate (Adam)"
    )
    anonymization: str = setting(
        "stochastic",
        choices=(*ANONYMIZATIONS, "vector"),
        help="target private class: stochastic: random; deterministic: the class next "
        "to the predicted one; probabilistic: that class or the predicted one; vector, "
        "for decoders with class inputs: random class weights, as in the authors' "
        "programs; may change after training",
    )
    flip_direction: str = setting(
        "next",
        choices=FLIPS,
        help="shift from the predicted class: next or previous index; the authors' "
        "program uses previous for MobiAct's weight",
    )
    flip_probability: float = setting(
        0.5, at_least=0, at_most=1, help="probabilistic: flip probability"
    )

    __post_init__ = check


def sized(config: Any, spec, published: dict) -> Any:
    """Fills in the sizes that ``config`` leaves as None.

    Args:
      config: ``AutoencoderConfig``.
      spec: the windows' ``Spec``; its name selects the sizes.
      published: ``(latent_dim, hidden_sizes)`` by dataset name; ``""`` is the default.

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


def attribute_classifiers(
    spec, size: int, hyper: dict, learning_rate: str = "classifier_learning_rate"
) -> Method:
    """Builds a method that trains a classifier per attribute on raw windows.

    Args:
      spec: the windows' ``Spec``.
      size: batch size; batches are drawn from the whole pool.
      hyper: hyper-parameters as in ``central``, including ``learning_rate``.
      learning_rate: name of the learning-rate hyper-parameter.

    Returns:
      ``Method`` with the parameter group ``classifiers``; it returns windows unchanged.
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
            variables = {"params": params[GROUP][name]}
            logits = net.apply(variables, batch.windows, dropout_key, DROPOUT)
            targets = jax.nn.one_hot(batch.labels[name], net.num_classes)
            loss = cross_entropy(logits, targets, jnp.ones(size))
            info[f"{name} classifier"] = loss
            total = total + loss
        return total, (info, {})

    source = BatchSource(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: pool.draw(key, data, size),
        lambda data: pool.rounds_per_epoch(data, size),
        size,
    )
    return central(
        "attribute_classifiers",
        None,
        spec,
        source,
        init_fn=init_fn,
        components=(Component((GROUP,), loss_fn, learning_rate=learning_rate),),
        hyper=hyper,
        anonymize_fn=lambda key, params, windows: windows,
    )


def predict(spec, params, windows) -> dict[str, jax.Array]:
    """Predicts each attribute's class (``int32[N]``) from standardised windows."""
    classes = {}
    for name, net in _networks(spec).items():
        logits: Any = net.apply({"params": params[GROUP][name]}, windows)
        classes[name] = jnp.argmax(logits, axis=-1)
    return classes


def train_jointly(models: Method, others: Method) -> Method:
    """Combines ``models`` and the classifiers of ``others`` in one state.

    This lets models with a leading axis of copies share one set of classifiers. Both
    methods must use the same data and hyper-parameters. The result is ``models`` with
    the classifiers added to its parameters.
    """

    def init(key, **values):
        model_key, classifier_key = jax.random.split(key)
        return _joined(
            models.init(model_key, **values), others.init(classifier_key, **values)
        )

    def update(key, state, data):
        model_key, classifier_key = jax.random.split(
            jax.random.fold_in(key, state.round)
        )
        model, info = models.update(model_key, _part(state, False), data)
        classifiers, more = others.update(classifier_key, _part(state, True), data)
        return _joined(model, classifiers), info | more

    return models._replace(init=init, update=update)


def _networks(spec):
    names = attributes(spec)
    return {name: Classifier(num_classes=spec.num_classes(name)) for name in names}


def _part(state: State, is_classifier: bool) -> State:
    keep = lambda groups: {
        g: v for g, v in groups.items() if (g == GROUP) == is_classifier
    }
    return state._replace(params=keep(state.params), opt_state=keep(state.opt_state))


def _joined(one: State, other: State) -> State:
    return one._replace(
        params=one.params | other.params, opt_state=one.opt_state | other.opt_state
    )
