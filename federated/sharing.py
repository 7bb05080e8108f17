"""Algorithms whose clients share a whole model, or some of its layers."""

import jax
import jax.numpy as jnp

from jaxanon.federated.algorithm import FederatedAlgorithm
from jaxanon.federated.personal import Client, Reply, Rounds, personal, replaced


def shared(
    init_fn,
    train_fn,
    *,
    num_clients: int,
    hyper: dict,
    rounds: Rounds | None,
    server_fn=replaced,
    model_fn=lambda client: client.params,
    traffic_fn=lambda params: {},
    **options,
) -> FederatedAlgorithm:
    """An algorithm of one model, that all clients train, and keep nothing of.

    Args:
      init_fn: ``key -> params``.
      train_fn: ``Client -> (sent, losses)``, of which ``info["loss"]`` is the mean.
      num_clients, hyper, server_fn, model_fn, options: as ``personal`` takes them.
      rounds: ``Rounds``; None is the default.
      traffic_fn: ``params -> dict`` of what ``info`` says besides, of messages.

    Raises:
      ValueError: as ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> algorithm = shared(
      ...     lambda key: jnp.zeros(()), lambda c: (jnp.sum(c.rows), jnp.zeros(1)),
      ...     num_clients=2, hyper={}, rounds=None)
      >>> state = algorithm.init(jax.random.key(0))
      >>> clients = stack([jnp.array([4.0]), jnp.array([1.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(2.5, dtype=float32)
    """

    def client_fn(client: Client) -> Reply:
        sent, losses = train_fn(client)
        return Reply(sent, None, {"loss": jnp.mean(losses)} | traffic_fn(client.params))

    return personal(
        lambda key: (init_fn(key), None, None),
        client_fn,
        server_fn,
        model_fn,
        num_clients=num_clients,
        hyper=hyper,
        rounds=rounds or Rounds(),
        **options,
    )


def partly_shared(
    init_fn, train_fn, *, own_layers: tuple[str, ...], num_clients, rounds
) -> FederatedAlgorithm:
    """An algorithm of some layers that all share, beneath or above each one's own.

    ``init(key, step_size=0.1)``.

    Args:
      init_fn: ``key -> params``, a dict of layers.
      train_fn: ``Client -> (params, info)``, all layers as the client has trained them.
      own_layers: names of the layers that stay with their client.
      num_clients: as ``personal`` takes it.
      rounds: ``Rounds``; None is the default.

    Raises:
      ValueError: as ``personal``; from ``init``, for a name of no layer.

    Example:
      >>> from jaxanon.federated import stack
      >>> said = lambda c: ({"w": c.rows[0], "v": 2 * c.rows[0]}, {})
      >>> algorithm = partly_shared(
      ...     lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}, said,
      ...     own_layers=("v",), num_clients=2, rounds=None)
      >>> state = algorithm.init(jax.random.key(0))
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params["w"], state.own["v"]
      (Array(2., dtype=float32), Array([8., 0.], dtype=float32))
    """

    def init(key):
        params, own = parted(init_fn(key), own_layers)
        return params, own, None

    def client_fn(client: Client) -> Reply:
        trained, info = train_fn(client)
        return Reply(*parted(trained, own_layers), info)

    return personal(
        init,
        client_fn,
        replaced,
        lambda client: client.params | client.own,
        num_clients=num_clients,
        hyper={"step_size": 0.1},
        rounds=rounds or Rounds(),
    )


def own_or_shared(client: Client):
    """A client's own model, or where it has nothing to learn from what all share.

    Example:
      >>> absent, shared, own = jnp.array([False]), jnp.zeros(()), jnp.ones(())
      >>> own_or_shared(Client(None, shared, own, None, None, absent, {}))
      Array(0., dtype=float32)
    """
    present = jnp.any(client.mask)
    choose = lambda own, shared: jnp.where(present, own, shared)
    return jax.tree.map(choose, client.own, client.params)


def parted(params: dict, names: tuple[str, ...]) -> tuple[dict, dict]:
    """``(shared, own)``: layers of a dict, and those of the given names apart.

    Raises:
      ValueError: for a name of no layer.

    Example:
      >>> parted({"base": 1, "head": 2}, ("head",))
      ({'base': 1}, {'head': 2})
    """
    unknown = sorted(set(names) - set(params))
    if unknown:
        raise ValueError(
            f"there are no layers {unknown}; the model has {sorted(params)}."
        )
    own = {name: params[name] for name in params if name in names}
    return {name: params[name] for name in params if name not in names}, own
