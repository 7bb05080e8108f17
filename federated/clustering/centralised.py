"""Centralized clustering: one model per cluster of clients, trained on pooled rows."""

import jax
import jax.numpy as jnp

from jaxanon.federated.clustering import grouping
from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    Steps,
    arrays_of,
    built_once,
    hyper_arrays,
    hyper_of,
)
from jaxanon.federated.engine.cohort import check_num_clients
from jaxanon.federated.engine.hyper import in_range
from jaxanon.federated.engine.personal import Client, PersonalState, train
from jaxanon.kernels.checks import whole


@built_once
def centralized_clustering(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients: int,
    num_clusters: int,
    features_fn=None,
    alone: int = 0,
    client_optimizer=None,
    layout: layouts.Layout | None = None,
) -> FederatedAlgorithm:
    """Builds a centralised baseline with K models for clusters of similar clients.

    It has access to all rows, so clients send no messages. After ``alone`` rounds of
    one global model, clients are clustered once by k-means on features: the normalised
    gradients at that model, or the result of ``features_fn``. ``init(key,
    learning_rate=0.1)``.

    Args:
      init_fn: ``key -> params``, the start of all models.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of each model in a round, on the pooled rows of its clients.
      num_clients: number of clients in the population.
      num_clusters: K, from 1 to the number of clients.
      features_fn: ``(rows, mask) -> tree`` of one client. None uses its gradient.
      alone: rounds of one global model before clustering, >= 0.
      client_optimizer: see ``RoundConfig``; it trains each model.
      layout: ``Layout`` of the models. None is ``default_layout``. It affects only
        speed.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``: ``params`` has leaves ``[K,
      ...]``, and ``own`` is ``int32[clients]``, the cluster of each client. A client
      without rows is in the cluster with most rows. ``info["loss"]`` is the mean over
      models, weighted by rows.

    Raises:
      ValueError: for numbers out of range; also the conditions of ``Steps``. From the
        first ``update``, for a population of another size.

    Example:
      Clients at 4, 5, -4 and -6; a step moves halfway to the cluster means.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = centralized_clustering(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), num_clients=4,
      ...     num_clusters=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([x]) for x in (4.0, 5.0, -4.0, -6.0)])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.own, state.params
      (Array([0, 0, 1, 1], dtype=int32), Array([ 2.25, -2.5 ], dtype=float32))

    References:
      Atlas, section 3.4.2, which only cites a survey: Xu and Wunsch, Survey of
      clustering algorithms, 2005; Sattler, Müller and Samek, Clustered federated
      learning, 2020, for gradient directions.
    """
    whole("num_clients", num_clients, least=1)
    whole("num_clusters", num_clusters, least=1)
    whole("alone", alone, least=0)
    if num_clusters > num_clients:
        raise ValueError(
            f"num_clusters must be <= {num_clients}, the number of clients, got "
            f"{num_clusters!r}."
        )

    def init(key, **values):
        in_range(values)
        defaults = hyper_of({"learning_rate": 0.1}, client_optimizer)
        arrays = hyper_arrays(defaults, values)
        each = lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], num_clusters, axis=0)
        params = jax.tree.map(each, arrays_of(init_fn(key)))
        together = jnp.zeros(num_clients, jnp.int32)
        return PersonalState(jnp.zeros((), jnp.int32), params, together, None, arrays)

    def features(key, params, clients):
        def of_client(client):
            number, rows, mask = client
            if features_fn is not None:
                return features_fn(rows, mask)
            return local.gradient(
                loss_fn, jax.random.fold_in(key, number), params, rows, mask
            )[1]

        numbers = jnp.arange(num_clients)
        return jax.lax.map(of_client, (numbers, clients.rows, clients.mask))

    def grouped(key, state, clients):
        """Returns the global model for each cluster, and the clusters."""
        params = jax.tree.map(lambda leaf: leaf[0], state.params)
        sizes = jnp.sum(clients.mask, axis=1)
        vectors = features(key, params, clients)
        if features_fn is None:
            products = grouping.cosines(grouping.inner_products(vectors))
        else:
            vectors = grouping.centre(vectors, sizes > 0)
            products = grouping.inner_products(vectors)
        groups = grouping.k_means(products, sizes > 0, num_clusters)
        largest = jnp.argmax(jax.ops.segment_sum(sizes, groups, num_clusters))
        groups = jnp.where(sizes > 0, groups, largest.astype(groups.dtype))
        same = lambda new, old: jnp.broadcast_to(new[None], old.shape)
        return jax.tree.map(same, params, state.params), groups

    def update(key, state, clients):
        check_num_clients(len(clients.mask), num_clients)
        group_key, train_key = jax.random.split(jax.random.fold_in(key, state.round))
        stay = lambda key, state, clients: (state.params, state.own)
        params, groups = jax.lax.cond(
            state.round == alone, grouped, stay, group_key, state, clients
        )
        pooled = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), clients)

        def one(model):
            number, params = model
            own = jnp.repeat(groups == number, clients.mask.shape[1])
            own_key = jax.random.fold_in(train_key, number)
            seen = (own_key, None, None, None, pooled.rows, pooled.mask & own)
            seen = Client(*seen, state.hyper, client_optimizer)
            trained, losses = train(seen, loss_fn, params, steps)
            return {"loss": jnp.mean(losses)}, trained

        sizes = jnp.sum(clients.mask, axis=1).astype(jnp.result_type(float))
        weights = jax.ops.segment_sum(sizes, groups, num_clusters)
        chosen = layout
        if chosen is None:
            first = jax.tree.map(lambda leaf: leaf[0], params)
            chosen = layouts.default_layout(first, num_clusters)
        models = (jnp.arange(num_clusters), params)
        total, trained = layouts.sum_and_keep(one, models, weights, chosen)
        info = layouts.divide(total, jnp.sum(weights))
        state = state._replace(round=state.round + 1, params=trained, own=groups)
        return state, info

    def model(key, state, client, rows, mask):
        del key, rows, mask
        return jax.tree.map(lambda leaf: leaf[state.own[client]], state.params)

    def init_new_client(state, own):
        """Returns the cluster with most clients."""
        counts = jnp.bincount(state.own, length=num_clusters)
        return jnp.argmax(counts).astype(own.dtype)

    def kept(key, state, client, rows, mask):
        del key, rows, mask
        return state.own[client]

    return FederatedAlgorithm(
        init, update, model=model, local_update=kept, init_new_client=init_new_client
    )
