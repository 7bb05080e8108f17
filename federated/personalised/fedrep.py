"""FedRep: a shared representation with personal heads, trained in turn."""

from typing import Unpack

import jax
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
def fedrep(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    personal_layers: Layers,
    personal_steps: Steps,
    num_clients,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedRep: clients train personal layers first, then shared layers.

    ``init(key, learning_rate=0.1)``. ``info["loss"]`` is the mean over the steps of the
    shared layers, and ``info["own loss"]`` that of the personal layers.

    Args:
      init_fn: ``key -> params``, such as nested dicts of layers, or a module.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of the shared layers.
      personal_layers: see ``fedper``.
      personal_steps: ``Steps`` of the personal layers.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` holds personal layers.

    Raises:
      ValueError: under the conditions of ``Steps``, ``RoundConfig`` and ``personal``.
        From ``init``, for an unknown layer.

    Example:
      The head moves halfway to the target; the shared layer covers half of the rest.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = fedrep(
      ...     zeros, loss, steps=Steps(num_steps=1), personal_layers=("v",),
      ...     personal_steps=Steps(num_steps=1), num_clients=1)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state, _ = algorithm.update(
      ...     jax.random.key(1), state, stack([jnp.array([4.0])]))
      >>> state.own["v"], state.params["w"]
      (Array([2.], dtype=float32), Array(1., dtype=float32))

    References:
      Collins et al., Exploiting shared representations for personalized federated
      learning, ICML 2021, algorithm 1.
    """

    def train_fn(client):
        own_key, shared_key = jax.random.split(client.key)
        own, own_losses = train(
            client,
            lambda own, batch, key: loss_fn(
                merge_layers(client.params, own), batch, key
            ),
            client.own,
            personal_steps,
            key=own_key,
        )
        shared, losses = train(
            client,
            lambda shared, batch, key: loss_fn(merge_layers(shared, own), batch, key),
            client.params,
            steps,
            key=shared_key,
        )
        info = {"loss": jnp.mean(losses), "own loss": jnp.mean(own_losses)}
        return merge_layers(shared, own), info

    return partly_shared(
        init_fn,
        train_fn,
        personal_layers=personal_layers,
        num_clients=num_clients,
        rounds=RoundConfig(**options),
    )
