"""FedDyn: FedAvg with a dynamic regulariser on the clients."""

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
from jaxanon.federated.engine.personal import PersonalState, Reply, personal, train
from jaxanon.kernels.bounds import POSITIVE


@built_once
def feddyn(
    init_fn, loss_fn, *, steps: Steps, num_clients, **options: Unpack[RoundOptions]
) -> FederatedAlgorithm:
    """Builds FedDyn, whose fixed point minimises the mean loss of all clients.

    Client k descends its loss plus ``alpha / 2 ‖w - w_server‖²`` minus the inner
    product of w and its linear term. The linear term then moves by ``alpha`` times the
    client's way from the server's model. ``init(key, learning_rate=0.1, alpha=0.1)``,
    with ``alpha`` > 0. ``info["loss"]`` is the mean loss over steps and the cohort,
    without the penalty.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round. The paper minimises exactly; with few
        steps, the fixed point is the same.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``. Clients are weighted equally by default, as in
        the paper.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` is a client's linear
      term, and ``server`` is h of the paper.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      A client moves to 2, so its linear term is -2, and h is -2. The server's model is
      2 + 2 / 1.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = feddyn(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     num_clients=1)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5, alpha=1.0)
      >>> clients = stack([jnp.array([4.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params, state.own, state.server
      (Array(4., dtype=float32), Array([-2.], dtype=float32), Array(-2., ...))

    References:
      Acar et al., Federated learning based on dynamic regularization, ICLR 2021,
      algorithm 1.
    """

    def init(key):
        params = init_fn(key)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return params, zeros, zeros

    def client(client):
        alpha = client.hyper["alpha"]

        def direction(w, grads):
            pull = lambda g, own, w, sent: g - own + alpha * (w - sent)
            return jax.tree.map(pull, grads, client.own, w, client.params)

        trained, losses = train(
            client, loss_fn, client.params, steps, direction_fn=direction
        )
        way = jax.tree.map(jnp.subtract, trained, client.params)
        own = jax.tree.map(lambda own, d: own - alpha * d, client.own, way)
        return Reply((trained, way), own, {"loss": jnp.mean(losses)})

    def server(state: PersonalState, mean, share):
        trained, way = mean
        alpha = state.hyper["alpha"]
        terms = jax.tree.map(
            lambda h, d: (h - alpha * share * d).astype(h.dtype), state.server, way
        )
        params = jax.tree.map(
            lambda w, h: (w - h / alpha).astype(h.dtype), trained, terms
        )
        return state._replace(params=params, server=terms)

    return personal(
        init,
        client,
        server,
        lambda client: client.params,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "alpha": 0.1},
        ranges={"alpha": POSITIVE},  # The server divides by it.
        rounds=RoundConfig(**{"weighting": "clients"} | options),
    )
