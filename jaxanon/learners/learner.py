"""What a federated learner is: a method's functions, and models in place of windows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.federated import FederatedAlgorithm, Population
from jaxanon.learners.atlas_guarantee import AtlasGuarantee
from jaxanon.learners.guarantee import Guarantee, PerWeight
from jaxanon.methods.blinder import cohort_size
from jaxanon.models.predictors import Predictor, predictor
from jaxanon.models.tokens import embedded


class Learner(NamedTuple):
    """Clients that learn to predict the public attribute of their windows together.

    Up to ``work`` as in ``jaxanon.methods.method.Method``. ``model(key, state, data,
    client) -> layers`` is what client number ``client`` predicts with, given what
    ``prepare`` made of training windows, and ``network.apply(layers, standardised)``
    its logits, or the number itself, standardised. ``guarantee`` says what its noise is
    worth, None where there is none. ``algorithm`` is what it trains by, and ``sent``
    that algorithm's, for ``federated.observed``.
    """

    name: str
    config: Any
    spec: Any
    prepare: Callable
    init: Callable
    update: Callable
    rounds_per_epoch: Callable
    work_per_round: Callable
    work: str
    model: Callable
    network: Predictor
    guarantee: Guarantee | AtlasGuarantee | PerWeight | None = None
    sent: Callable | None = None
    algorithm: FederatedAlgorithm | None = None

    @property
    def acts(self):
        """As ``Method.acts``."""
        return None if self.algorithm is None else self.algorithm.acts


def network_of(spec, config) -> Predictor:
    """The network that a config asks for, of windows of ``spec``.

    It makes logits of the public attribute; of a target one number, standardised.
    """
    network = predictor(
        config.model,
        spec.time,
        config.embedding if spec.tokens else len(spec.channels),
        1 if spec.target else spec.num_classes(spec.public),
        hidden=config.hidden,
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
    guarantee: Guarantee | AtlasGuarantee | PerWeight | None = None,
    hyper_values: dict | None = None,
) -> Learner:
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

    return Learner(
        name=name,
        config=config,
        spec=spec,
        prepare=prepare,
        init=init,
        update=algorithm.update,
        rounds_per_epoch=lambda data: 1,
        work_per_round=lambda data: 1 if pooled else cohort_size(config, num_clients),
        work="client updates",
        model=model,
        network=network,
        guarantee=guarantee,
        sent=algorithm.sent,
        algorithm=algorithm,
    )
