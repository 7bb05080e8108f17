"""Hierarchical averaging: groups average often, and the cloud averages groups."""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import PersonalState, Reply, personal, train
from jaxanon.kernels.checks import whole


class HierarchicalState(NamedTuple):
    """State of the edge servers."""

    models: jax.Array  # tree of float[groups, ...]
    weights: jax.Array  # float[groups]; weights since the last average in the cloud


@built_once
def hierarchical(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    groups,
    rounds_per_average: int,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds hierarchical FedAvg with an edge server for each group of clients.

    In each round, an edge server averages the models of its clients. Every
    ``rounds_per_average`` rounds, the cloud averages the models of the edge servers,
    weighted by their clients since its last average, and they continue from this model.
    ``init(key, learning_rate=0.1)``.

    Args:
      init_fn, loss_fn: see ``fedavg``.
      steps: ``Steps`` of a client in a round, κ1 of the paper.
      groups: ``int[clients]``, the group of each client, from 0.
      rounds_per_average: κ2 >= 1. 1 is FedAvg.
      **options: see ``RoundOptions``; a ``server_optimizer`` is refused.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``server`` is
      ``HierarchicalState``, ``own`` the group of each client, and ``params`` the last
      average of the groups. The mean of messages has the size of all edge models.

    Raises:
      ValueError: for groups that are not ``int[clients]`` >= 0, or
        ``rounds_per_average`` below 1; also the conditions of ``personal``.

    Example:
      Clients at 4 and 0 share a group, and one at 8 is alone; a step goes half the way.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = hierarchical(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     groups=[0, 0, 1], rounds_per_average=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([x]) for x in (4.0, 0.0, 8.0)])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.server.models, state.params
      (Array([1., 4.], dtype=float32), Array(0., dtype=float32))
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params  # (1.5 + 1.5 + 6) / 3
      Array(3., dtype=float32)

    References:
      Liu et al., Client-edge-cloud hierarchical federated learning, ICC 2020,
      algorithm 1.
    """
    groups = np.asarray(groups)
    if groups.ndim != 1 or groups.dtype.kind not in "iu" or (groups < 0).any():
        raise ValueError(
            f"groups must be int[clients] >= 0, got {groups!r}; number groups from 0."
        )
    every = whole("rounds_per_average", rounds_per_average, least=1)
    num_groups = int(groups.max(initial=0)) + 1

    def init(key):
        params = init_fn(key)
        each = lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], num_groups, axis=0)
        models = jax.tree.map(each, params)
        zeros = jnp.zeros(num_groups, jnp.result_type(float))
        return params, jnp.int32(0), HierarchicalState(models, zeros)

    def client_fn(client):
        begun = jax.tree.map(lambda leaf: leaf[client.own], client.server.models)
        trained, losses = train(client, loss_fn, begun, steps)
        flags = jax.nn.one_hot(client.own, num_groups, dtype=jnp.result_type(float))
        alone = lambda leaf: jnp.where(
            flags.reshape(-1, *[1] * leaf.ndim) > 0, leaf[None], 0
        )
        sent = jax.tree.map(alone, trained), flags
        return Reply(sent, client.own, {"loss": jnp.mean(losses)})

    def server(state: PersonalState, mean, share):
        del share
        totals, counts = mean
        of_groups = lambda leaf: counts.reshape(-1, *[1] * (leaf.ndim - 1))

        def average(total, old):
            count = of_groups(total).astype(total.dtype)
            return jnp.where(count > 0, total / jnp.where(count > 0, count, 1), old)

        models = jax.tree.map(average, totals, state.server.models)
        is_last = (state.round + 1) % every == 0
        weights = state.server.weights + counts
        total = jnp.sum(weights)
        shares = weights / jnp.where(total > 0, total, 1)

        def cloud(model, old):
            each = shares.reshape(-1, *[1] * old.ndim).astype(model.dtype)
            average = jnp.sum(each * model, axis=0)
            return jnp.where(is_last & (total > 0), average, old)

        params = jax.tree.map(cloud, models, state.params)
        restart = lambda model, new: jnp.where(is_last, new[None], model)
        weights = jnp.where(is_last, 0, weights)
        models = jax.tree.map(restart, models, params)
        as_before = lambda new, old: new.astype(old.dtype)
        return state._replace(
            params=jax.tree.map(as_before, params, state.params),
            server=jax.tree.map(
                as_before, HierarchicalState(models, weights), state.server
            ),
        )

    made = personal(
        init,
        client_fn,
        server,
        lambda client: jax.tree.map(
            lambda leaf: leaf[client.own], client.server.models
        ),
        num_clients=len(groups),
        hyper={"learning_rate": 0.1},
        rounds=RoundConfig(**options).reject("hierarchical", "server_optimizer"),
        direction_fn=lambda state, sent: sent,
    )

    def init_groups(key, **values):
        return made.init(key, **values)._replace(own=jnp.asarray(groups, jnp.int32))

    return made._replace(init=init_groups)
