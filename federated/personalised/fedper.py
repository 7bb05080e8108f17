"""FedPer: shared base layers and personal layers."""

from typing import Unpack

import jax.numpy as jnp

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import (
    Layers,
    merge_layers,
    partly_shared,
    train,
)


@built_once
def fedper(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    personal_layers: Layers,
    num_clients,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedPer: clients train all layers, and the server averages shared layers.

    ``init(key, learning_rate=0.1)``. With all layers personal it is local training;
    with none it is FedAvg.

    Args:
      init_fn: ``key -> params``, such as nested dicts of layers, or a module.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round.
      personal_layers: names of the personal layers at any depth, such as Flax's
        ``"Dense_0"``, or ``name -> bool``.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` holds personal layers.

    Raises:
      ValueError: under the conditions of ``Steps``, ``RoundConfig`` and ``personal``.
        From ``init``, for an unknown layer.

    Example:
      Two clients with shared ``w`` and personal ``v``.

      >>> import jax
      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = fedper(
      ...     zeros, loss,
      ...     steps=Steps(num_steps=1), personal_layers=("v",), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params["w"], state.own["v"]
      (Array(1., dtype=float32), Array([2., 0.], dtype=float32))

    References:
      Arivazhagan et al., Federated learning with personalization layers, arXiv
      1912.00818, algorithms 1 and 2.
    """

    def train_fn(client):
        params, losses = train(
            client, loss_fn, merge_layers(client.params, client.own), steps
        )
        return params, {"loss": jnp.mean(losses)}

    return partly_shared(
        init_fn,
        train_fn,
        personal_layers=personal_layers,
        num_clients=num_clients,
        rounds=RoundConfig(**options),
    )
