"""Base of federated learners: network, loss, clients, method and settings."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.core.method import Federation, Method, Prediction, Schedule
from jaxanon.federated import FederatedAlgorithm, Population, Steps
from jaxanon.federated.engine.cohort import cohort_size
from jaxanon.kernels.bounds import check, setting
from jaxanon.models.predictors import KINDS, Predictor, add_embedding, predictor


def network_of(spec, config) -> Predictor:
    """Builds the network of a config for windows of ``spec``.

    Its outputs are logits of the public attribute, or one standardised value of a
    target.
    """
    network = predictor(
        config.model,
        spec.time,
        config.embedding if spec.tokens else len(spec.channels),
        1 if spec.target else spec.num_classes(spec.public),
        hidden=config.hidden_sizes,
        filters=config.filters,
        lstm_features=config.lstm_features,
    )
    return (
        add_embedding(network, spec.tokens, config.embedding)
        if spec.tokens
        else network
    )


def loss_of(network: Predictor, spec) -> Callable:
    """Returns the cross-entropy of every row, ``(layers, batch, key) -> float[B]``.

    For a target, returns the squared error of the standardised value.
    """

    def loss_fn(layers, batch, key):
        del key
        if spec.target:
            return jnp.square(network.apply(layers, batch["x"])[:, 0] - batch["y"])
        logits = network.apply(layers, batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])

    return loss_fn


def population_of(spec, clients, most: int | None = None) -> Population:
    """Returns the standardised windows of every subject of the spec, one client each.

    Targets are standardised as channels are, with mean and std of the training rows.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      clients: ``jaxanon.datasets.Clients``; subjects without windows have no rows.
      most: maximum number of rows per client.

    Raises:
      ValueError: if a client has more rows.
    """
    sizes = np.asarray(clients.mask).sum(axis=1)
    if most is not None and sizes.max() > most:
        raise ValueError(
            f"a client must have at most max_examples, {most}, windows, got "
            f"{sizes.max()}; set max_examples to {sizes.max()} or more."
        )
    num_clients = spec.num_classes("subject")
    subjects = np.asarray(clients.labels["subject"])[:, 0]
    scatter = lambda leaf: _scatter(np.asarray(leaf), subjects, num_clients)
    mean, std = np.float32(spec.mean), np.float32(spec.std)
    mask = scatter(clients.mask)
    x = (scatter(clients.windows) - mean) / std * mask[:, :, None, None]
    y = scatter(clients.labels[spec.public])
    if spec.target:
        y = (y - np.float32(spec.target.mean)) / np.float32(spec.target.std) * mask
    rows = {"x": x, "y": y}
    return Population(jax.tree.map(jnp.asarray, rows), jnp.asarray(mask))


def _scatter(leaf, subjects, num_clients):
    rows = np.zeros((num_clients, *leaf.shape[1:]), leaf.dtype)
    rows[subjects] = leaf
    return rows


def learner(
    name: str,
    spec,
    config,
    algorithm: FederatedAlgorithm,
    network: Predictor,
    hyper: tuple[str, ...],
    *,
    pooled: bool = False,
    guarantee: Any = None,
    hyper_values: dict | None = None,
) -> Method:
    """Returns the ``Method`` of a federated algorithm on windows of ``spec``.

    Args:
      name: name of the learner.
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      algorithm: algorithm over ``{"x": windows, "y": classes or standardised values}``.
      network: network of its parameters.
      hyper: names of the settings that are hyper-parameters.
      pooled: whether to pool all clients' windows into one client.
      guarantee: privacy guarantee of its noise.
      hyper_values: defaults of hyper-parameters that are not settings.
    """
    num_clients = spec.num_classes("subject")
    most = None if guarantee is None else guarantee.most_windows

    def prepare(clients):
        population = population_of(spec, clients, most)
        if not pooled:
            return population
        together = lambda leaf: leaf.reshape(1, -1, *leaf.shape[2:])
        return jax.tree.map(together, population)

    def init(key, **values):
        if guarantee is not None and guarantee.rests_on in values:
            raise ValueError(
                f"{guarantee.rests_on} follows from epsilon, delta and max_rounds and "
                "cannot be a hyper-parameter; set those instead."
            )
        settings = {each: getattr(config, each) for each in hyper}
        return algorithm.init(key, **settings | (hyper_values or {}) | values)

    def model(key, state, data, client):
        if algorithm.model is None:
            return state.params
        client = client * (not pooled)
        rows = jax.tree.map(lambda leaf: leaf[client], data.rows)
        return algorithm.model(key, state, client, rows, data.mask[client])

    return Method(
        name=name,
        config=config,
        spec=spec,
        prepare=prepare,
        init=init,
        update=algorithm.update,
        schedule=Schedule(
            lambda data: 1,
            lambda data: 1 if pooled else cohort_size(config, num_clients),
        ),
        predict=Prediction(model, network),
        federation=Federation(algorithm),
        guarantee=guarantee,
        tokens=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """Settings of every learner; an epoch is a round."""

    model: str = setting(
        "cnn",
        choices=KINDS,
        help="network; the resnets and vgg16 treat a window as an image",
    )
    hidden_sizes: tuple[int, ...] = setting(
        (64,),
        at_least=1,
        help="widths of dense layers before the last (not for resnet32 and vgg16); "
        "the Atlas chapter's lstm has two",
    )
    filters: tuple[int, ...] = setting(
        (16, 32, 32), at_least=1, help="filters of convolutions (model=cnn)"
    )
    lstm_features: tuple[int, ...] = setting(
        (32,) * 8, at_least=1, help="widths of LSTM layers (model=lstm)"
    )
    embedding: int = setting(
        16, at_least=1, help="embedding size for windows of events"
    )
    local_steps: int = setting(10, at_least=1, help="steps per client and round")
    batch_size: int = setting(16, at_least=1, help="windows per step")
    learning_rate: float = setting(0.05, above=0, help="client learning rate")
    client_fraction: float = setting(
        1.0, above=0, at_most=1, help="fraction of clients per round"
    )

    def __post_init__(self):
        check(self)
        used = {"cnn": "filters", "lstm": "lstm_features"}.get(self.model)
        if used and not getattr(self, used):
            raise ValueError(
                f"{used} must have at least one layer for {self.model}, got ()."
            )


STEP = ("learning_rate",)


def steps_of(config, num_steps: int | None = None) -> Steps:
    """Returns a client's steps per round.

    Args:
      config: ``LearnerConfig``.
      num_steps: number of steps; default: ``config.local_steps``.

    Example:
      >>> from jaxanon.learners.learner import LearnerConfig
      >>> steps_of(LearnerConfig(batch_size=8), 3)
      Steps(num_steps=3, num_epochs=None, batch_size=8, shuffle=True)
    """
    num_steps = config.local_steps if num_steps is None else num_steps
    return Steps(num_steps=num_steps, batch_size=config.batch_size)


def rounds_of(spec, config, weighting: str) -> dict:
    """Returns the options of a round: cohort size and weighting.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      weighting: weighting of ``RoundConfig``.

    Example:
      >>> from jaxanon.datasets import load
      >>> from jaxanon.learners.learner import LearnerConfig
      >>> spec = load("smartwatch").spec  # of ten people
      >>> rounds_of(spec, LearnerConfig(client_fraction=0.3), "rows")
      {'cohort_size': 3, 'weighting': 'rows'}
    """
    size = cohort_size(config, spec.num_classes("subject"))
    return {"cohort_size": size, "weighting": weighting}


def personal_learner(
    name: str, spec, config, make, hyper, *, weighting: str = "rows", **more
) -> Method:
    """Builds a learner from an algorithm whose clients keep a state.

    Args:
      name: name of the learner.
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      make: ``(init_fn, loss_fn, *, steps, num_clients, **options) -> algorithm``.
      hyper: names of the settings that are hyper-parameters.
      weighting: weighting of ``RoundConfig``.
      **more: further arguments of ``make``.

    Example:
      >>> from jaxanon import federated
      >>> from jaxanon.datasets import load
      >>> from jaxanon.learners.learner import LearnerConfig
      >>> spec = load("smartwatch").spec
      >>> make = federated.localized
      >>> personal_learner("alone", spec, LearnerConfig(filters=(4,)), make, STEP).name
      'alone'
    """
    network = network_of(spec, config)
    algorithm = make(
        network.init,
        loss_of(network, spec),
        steps=steps_of(config),
        num_clients=spec.num_classes("subject"),
        **rounds_of(spec, config, weighting),
        **more,
    )
    return learner(name, spec, config, algorithm, network, hyper)
