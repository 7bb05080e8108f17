"""Ditto: FedAvg with personal models, regularised towards the shared model."""

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
    Reply,
    choose_model,
    personal,
    replace_params,
    train,
)


@built_once
def ditto(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    personal_steps: Steps,
    num_clients,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds Ditto: clients train the shared model and a personal model.

    The personal model minimises the loss plus ``pull / 2`` times its squared distance
    from the server's model. ``init(key, learning_rate=0.1, proximal_weight=0.1)``;
    ``proximal_weight`` is λ, and with 0 personal models train alone. ``info`` has the
    mean losses without
    penalty: ``"loss"`` of the shared model and ``"own loss"`` of the personal model.

    Args:
      init_fn: ``key -> params``, the start of shared and personal models.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of the shared model.
      personal_steps: ``Steps`` of the personal model.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` holds full models.
      Clients without rows predict with the shared model.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = ditto(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     personal_steps=Steps(num_steps=2), num_clients=2)
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5, proximal_weight=1.0)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params, state.own
      (Array(1., dtype=float32), Array([2., 0.], dtype=float32))

    References:
      Li et al., Ditto: fair and robust federated learning through personalization,
      ICML 2021, algorithm 1.
    """

    def init(key):
        params = init_fn(key)
        return params, params, None

    def client(client):
        shared_key, own_key = jax.random.split(client.key)
        shared, losses = train(client, loss_fn, client.params, steps, key=shared_key)
        hold = lambda v, g, sent: g + client.hyper["proximal_weight"] * (v - sent)
        own, own_losses = train(
            client,
            loss_fn,
            client.own,
            personal_steps,
            key=own_key,
            direction_fn=lambda v, g: jax.tree.map(hold, v, g, client.params),
        )
        info = {"loss": jnp.mean(losses), "own loss": jnp.mean(own_losses)}
        return Reply(shared, own, info)

    return personal(
        init,
        client,
        replace_params,
        choose_model,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "proximal_weight": 0.1},
        rounds=RoundConfig(**options),
    )._replace(init_new_client=lambda state, own: state.params)
