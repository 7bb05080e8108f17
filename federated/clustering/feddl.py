"""FedDL: personal models with layers merged in nested groups of similar clients."""

from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp

from jaxanon.federated.clustering import grouping
from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
    weight_fn,
)
from jaxanon.federated.engine.personal import (
    PersonalState,
    Reply,
    choose_model,
    personal,
    replace_params,
    train,
)


class FedDLState(NamedTuple):
    """A client's model and its data for the server."""

    model: Any  # dict of layers, as merged by the server
    merged: Any  # dict of bool[], layers shared with other clients
    weight: jax.Array  # float[], weight of its last round in group means
    last: jax.Array  # int32[], last round of participation; -1 before


class Structure(NamedTuple):
    """Groups of clients per layer."""

    start: Any  # initial weights of all clients
    groups: Any  # dict of int32[clients], first client of each client's group
    round: jax.Array  # int32[], next round


@built_once
def feddl(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    layers: tuple[str, ...],
    num_clients: int,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedDL: personal models with layers shared in nested groups.

    Clients train and send all layers. The server starts with the first layer. It links
    clients whose weight changes since the start have a cosine of at least
    ``similarity``. Connected clients form a group and get the weighted mean of the
    layers that its members sent in this round. Each further layer is grouped in the
    same way within the groups of the previous layer, so lower layers are shared in
    larger groups.

    The paper states that the similarity of weights is learnt and models are merged
    layer by layer from the bottom; the measure and the rule are our interpretation.
    Shared layers change in the same way afterwards, so groups split only if
    ``similarity`` is close to 1. The server sees every client's model in every round.

    ``init(key, learning_rate=0.1, similarity=0.4)``. ``info`` has ``"loss"``;
    ``"layers"``, the number of a client's layers that were merged at the start of the
    round; ``"bytes_up"``, its model; and ``"bytes_down"``, its merged layers.

    Args:
      init_fn: ``key -> params``, a dict of layers.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round.
      layers: names of all layers, from input to output.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``: ``own`` is ``FedDLState``,
      ``server`` is ``Structure``, and ``params`` is the mean over the last cohort, with
      which clients without rows predict.

    Raises:
      ValueError: under the conditions of ``Steps``, ``RoundConfig`` and ``personal``.
        From ``init``, unless ``layers`` names all layers.

    Example:
      Clients at (1, 1) and (3, -1) agree in the first layer only.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (
      ...     (p["a"] - x[:, 0]) ** 2 + (p["b"] - x[:, 1]) ** 2)
      >>> algorithm = feddl(
      ...     lambda key: {"a": jnp.zeros(()), "b": jnp.zeros(())}, loss,
      ...     steps=Steps(num_steps=1), layers=("a", "b"), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([[1.0, 1.0]]), jnp.array([[3.0, -1.0]])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.own.model["a"], state.own.model["b"]
      (Array([1., 1.], dtype=float32), Array([ 0.5, -0.5], dtype=float32))

    References:
      Tu et al., FedDL: federated learning via dynamic layer sharing for human activity
      recognition, SenSys 2021.
    """
    rounds = RoundConfig(**options).reject("feddl", "server_optimizer")
    weigh = weight_fn(rounds.weighting)

    def init(key):
        params = init_fn(key)
        if sorted(params) != sorted(layers):
            raise ValueError(
                f"layers must be all layers of the model, {sorted(params)}, in order, "
                f"got {layers!r}."
            )
        merged = {name: jnp.array(True) for name in layers}
        kept = FedDLState(params, merged, jnp.zeros(()), jnp.int32(-1))
        each = {name: jnp.arange(num_clients) for name in layers}
        start = jax.tree.map(jnp.copy, params)
        return params, kept, Structure(start, each, jnp.zeros((), jnp.int32))

    def client(client):
        own = client.own
        model, losses = train(client, loss_fn, own.model, steps)
        size = {name: float(layouts.num_bytes(layer)) for name, layer in model.items()}
        merged = own.merged
        info = {
            "loss": jnp.mean(losses),
            "layers": jnp.sum(jnp.stack([*merged.values()]).astype(float)),
            "bytes_up": jnp.asarray(sum(size.values())),
            "bytes_down": jnp.sum(
                jnp.stack([size[name] * flag for name, flag in merged.items()])
            ),
        }
        weight = weigh(client.mask).astype(own.weight.dtype)
        return Reply(
            model, FedDLState(model, merged, weight, client.server.round), info
        )

    def server(state: PersonalState, mean, share):
        state = replace_params(state, mean, share)
        own, (start, _, number) = state.own, state.server
        seen, joined = own.last >= 0, own.last == number
        together = seen[:, None] & seen[None, :]
        model, merged, groups = {}, {}, {}
        for name in layers:
            way = jax.tree.map(lambda w, w0: w - w0[None], own.model[name], start[name])
            alike = grouping.cosines(grouping.inner_products(way))
            near = together & (alike >= state.hyper["similarity"])
            together = grouping.link_clients(near)
            model[name] = _merged(own.model[name], together, joined * own.weight)
            merged[name] = jnp.sum(together, axis=1) > 1
            groups[name] = jnp.argmax(together, axis=1).astype(jnp.int32)
        server = Structure(start, groups, number + 1)
        return state._replace(
            own=own._replace(model=model, merged=merged), server=server
        )

    def model(client):
        return choose_model(client._replace(own=client.own.model))

    return personal(
        init,
        client,
        server,
        model,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "similarity": 0.4},
        rounds=rounds,
    )._replace(init_new_client=lambda state, own: own._replace(model=state.params))


def _merged(layer, together, weights):
    """Averages a layer over groups; groups of total weight 0 keep their values."""
    fractions = together * weights[None, :]
    total = jnp.sum(fractions, axis=1)
    fractions = fractions / jnp.where(total > 0, total, 1)[:, None]

    def mean(leaf):
        some = (total > 0).reshape(-1, *[1] * (leaf.ndim - 1))
        highest = jax.lax.Precision.HIGHEST
        means = jnp.tensordot(fractions, leaf, axes=1, precision=highest)
        return jnp.where(some, means.astype(leaf.dtype), leaf)

    return jax.tree.map(mean, layer)
