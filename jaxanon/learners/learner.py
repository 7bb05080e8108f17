"""Federated learners: methods whose clients learn to predict the public attribute."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.core.method import Federation, Method, Prediction, Schedule
from jaxanon.federated import CohortConfig, FederatedAlgorithm, Population, Steps
from jaxanon.federated.engine.cohort import cohort_size
from jaxanon.kernels.bounds import check, setting
from jaxanon.models.predictors import KINDS, Predictor, embedded, predictor


def network_of(spec, config) -> Predictor:
    """The network that a config asks for, of windows of ``spec``.

    It makes logits of the public attribute; of a target one number, standardised.
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
    return embedded(network, spec.tokens, config.embedding) if spec.tokens else network


def loss_of(network: Predictor, spec) -> Callable:
    """Cross-entropy of every row, ``(layers, batch, key) -> float[B]``.

    Of a target it is the squared error in units of the target's deviation.
    """

    def loss_fn(layers, batch, key):
        del key
        if spec.target:
            return jnp.square(network.apply(layers, batch["x"])[:, 0] - batch["y"])
        logits = network.apply(layers, batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])

    return loss_fn


def population_of(spec, clients, most: int | None = None) -> Population:
    """Windows of every subject of the spec, standardised, one client each.

    Targets are standardised like channels, by mean and deviation of all training rows.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      clients: ``jaxanon.datasets.Clients``; subjects that it lacks have no row.
      most: rows that no client may have more of.

    Raises:
      ValueError: if one has.
    """
    sizes = np.asarray(clients.mask).sum(axis=1)
    if most is not None and sizes.max() > most:
        raise ValueError(
            f"a client has {sizes.max()} windows, and what its noise hides was counted "
            f"for {most} at most; set records to {sizes.max()} or more."
        )
    num_clients = spec.num_classes("subject")
    subjects = np.asarray(clients.labels["subject"])[:, 0]
    place = lambda leaf: _placed(np.asarray(leaf), subjects, num_clients)
    mean, std = np.float32(spec.mean), np.float32(spec.std)
    mask = place(clients.mask)
    x = (place(clients.windows) - mean) / std * mask[:, :, None, None]
    y = place(clients.labels[spec.public])
    if spec.target:
        y = (y - np.float32(spec.target.mean)) / np.float32(spec.target.std) * mask
    rows = {"x": x, "y": y}
    return Population(jax.tree.map(jnp.asarray, rows), jnp.asarray(mask))


def _placed(leaf, subjects, num_clients):
    placed = np.zeros((num_clients, *leaf.shape[1:]), leaf.dtype)
    placed[subjects] = leaf
    return placed


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
    """Ties a federated algorithm to a data set's windows.

    Args:
      name: of the learner.
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      algorithm: over ``{"x": windows, "y": classes, or standardised numbers}``.
      network: of its parameters.
      hyper: settings that are its hyper-parameters.
      pooled: all clients' windows are one client's.
      guarantee: of its noise.
      hyper_values: hyper-parameters that are no settings, and their defaults.
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
                f"{guarantee.rests_on} follows from epsilon, delta and rounds, and "
                "what is guaranteed from it; set those."
            )
        given = {each: getattr(config, each) for each in hyper}
        return algorithm.init(key, **given | (hyper_values or {}) | values)

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
    """What every learner has. An epoch is a round."""

    model: str = setting("cnn", choices=KINDS, help="network; resnets are of images")
    hidden_sizes: tuple[int, ...] = setting(
        (64,),
        at_least=1,
        help="widths of its dense layers before the last (not of resnet32 and vgg16); "
        "the Atlas chapter's lstm has two",
    )
    filters: tuple[int, ...] = setting(
        (16, 32, 32), at_least=1, help="filters of its convolutions (model=cnn)"
    )
    lstm_features: tuple[int, ...] = setting(
        (32,) * 8, at_least=1, help="widths of its layers of LSTM (model=lstm)"
    )
    embedding: int = setting(
        16, at_least=1, help="size of an event's embedding, where windows hold events"
    )
    local_steps: int = setting(10, at_least=1, help="steps of a client in a round")
    batch_size: int = setting(16, at_least=1, help="windows of a step")
    learning_rate: float = setting(
        0.05, above=0, help="step size of the clients' descent"
    )
    client_fraction: float = setting(
        1.0, above=0, at_most=1, help="share of the clients that take part in a round"
    )

    def __post_init__(self):
        check(self)
        used = {"cnn": "filters", "lstm": "lstm_features"}.get(self.model)
        if used and not getattr(self, used):
            raise ValueError(f"{used} must name a layer at least for {self.model}.")


STEP = ("learning_rate",)


def steps_of(config, num_steps: int | None = None) -> Steps:
    """A client's steps in a round, as a config has them.

    Args:
      config: ``LearnerConfig``.
      num_steps: in place of its ``local_steps``.

    Example:
      >>> from jaxanon.learners.learner import LearnerConfig
      >>> steps_of(LearnerConfig(batch_size=8), 3)
      Steps(num_steps=3, batch_size=8, shuffle=True)
    """
    num_steps = config.local_steps if num_steps is None else num_steps
    return Steps(num_steps=num_steps, batch_size=config.batch_size)


def rounds_of(spec, config, weighting: str) -> CohortConfig:
    """Who takes part in a round, as a config has it.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      weighting: as ``CohortConfig`` takes it.

    Example:
      >>> from jaxanon.datasets import load
      >>> from jaxanon.learners.learner import LearnerConfig
      >>> spec = load("smartwatch").spec  # of ten people
      >>> rounds_of(spec, LearnerConfig(client_fraction=0.3), "rows").cohort_size
      3
    """
    size = cohort_size(config, spec.num_classes("subject"))
    return CohortConfig(cohort_size=size, weighting=weighting)


def personal_learner(
    name: str, spec, config, make, hyper, *, weighting: str = "rows", **more
) -> Method:
    """A learner of one of the federated functions whose clients keep something.

    Args:
      name: of the learner.
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      make: ``(init_fn, loss_fn, steps, *, num_clients, rounds, **more) -> algorithm``.
      hyper: settings that are its hyper-parameters.
      weighting: as ``CohortConfig`` takes it.
      **more: of ``make``.

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
        steps_of(config),
        num_clients=spec.num_classes("subject"),
        rounds=rounds_of(spec, config, weighting),
        **more,
    )
    return learner(name, spec, config, algorithm, network, hyper)
