"""FedProx: FedAvg with a proximal penalty on the clients."""

from typing import Unpack

import jax

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import shared, train


@built_once
def fedprox(
    init_fn, loss_fn, *, steps: Steps, num_clients, **options: Unpack[RoundOptions]
) -> FederatedAlgorithm:
    """Builds FedProx: FedAvg with the penalty ``mu / 2 ‖w - w_server‖²`` on clients.

    ``init(key, learning_rate=0.1, proximal_mu=0.1)``; ``proximal_mu=0`` is FedAvg.
    ``info["loss"]`` is the mean over steps and the cohort, without the penalty.

    Args:
      init_fn: ``key -> params``.
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row. It must be finite
        for a row of zeros (padding is masked afterwards).
      steps: ``Steps`` of a client in a round.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState`` without personal state.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      The first step moves from 0 to 2. There the gradient is -2 and that of the penalty
      is 1, so the second step moves by 0.5.

      >>> import jax.numpy as jnp
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedprox(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=2), num_clients=1)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5, proximal_mu=0.5)
      >>> clients = stack([jnp.array([4.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(2.5, dtype=float32)

    References:
      Li et al., Federated optimization in heterogeneous networks, MLSys 2020,
      algorithm 2.
    """

    def train_fn(client):
        mu = client.hyper["proximal_mu"]
        pull = lambda w, g, sent: g + mu * (w - sent)
        hold = lambda w, g: jax.tree.map(pull, w, g, client.params)
        return train(client, loss_fn, client.params, steps, direction_fn=hold)

    return shared(
        init_fn,
        train_fn,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "proximal_mu": 0.1},
        rounds=RoundConfig(**options),
    )
