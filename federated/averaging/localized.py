"""Localized models: every client trains alone, without communication."""

from typing import Unpack

import jax.numpy as jnp

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import Reply, personal, train


@built_once
def localized(
    init_fn, loss_fn, *, steps: Steps, num_clients, **options: Unpack[RoundOptions]
) -> FederatedAlgorithm:
    """Builds the baseline of separate local models.

    ``init(key, learning_rate=0.1)``; all clients start from the same parameters.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` holds full models, and
      ``params`` is None.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      >>> import jax
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = localized(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0]), jnp.array([2.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].own
      Array([2., 1.], dtype=float32)
    """

    def client(client):
        trained, losses = train(client, loss_fn, client.own, steps)
        return Reply(None, trained, {"loss": jnp.mean(losses)})

    return personal(
        lambda key: (None, init_fn(key), None),
        client,
        lambda state, mean, share: state,
        lambda client: client.own,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1},
        rounds=RoundConfig(**options).reject("localized", "server_optimizer"),
    )
