"""SCAFFOLD: FedAvg with control variates against client drift."""

from typing import Unpack

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import PersonalState, Reply, personal, train

_sum_of_gradients = optax.GradientTransformation(
    lambda params: jax.tree.map(jnp.zeros_like, params),
    lambda updates, state, params=None: (
        updates,
        jax.tree.map(jnp.add, state, updates),
    ),
)


@built_once
def scaffold(
    init_fn, loss_fn, *, steps: Steps, num_clients, **options: Unpack[RoundOptions]
) -> FederatedAlgorithm:
    """Builds SCAFFOLD: local SGD on gradients corrected by control variates.

    A step uses the gradient minus the client's control plus the server's. A control
    estimates a gradient: a client's control is its mean gradient in its last round
    (option II of the paper), and the server's control is the mean over clients.
    ``init(key, learning_rate=0.1, server_learning_rate=1.0)``. ``info["loss"]`` is the
    mean over steps and the cohort.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``. Clients are weighted equally by default, as in
        the paper. With partial cohorts, only equal weights make the server's control
        the clients' mean. With a ``client_optimizer``, a client's control is still the
        mean of its gradients.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` and ``server`` are
      controls. Messages have twice the size of the parameters.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = scaffold(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params, state.own, state.server
      (Array(1., dtype=float32), Array([-4.,  0.], dtype=float32), Array(-2., ...))

    References:
      Karimireddy et al., SCAFFOLD: stochastic controlled averaging for federated
      learning, ICML 2020, algorithm 1, option II.
    """

    def init(key):
        params = init_fn(key)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return params, zeros, zeros

    def client(client):
        correct = lambda g, own, all_: g - own + all_
        optimizer = optax.chain(
            _sum_of_gradients,
            optax.stateless(
                lambda g, w: jax.tree.map(correct, g, client.own, client.server)
            ),
            client.optimizer,
        )
        trained, losses, (total, *_) = train(
            client,
            loss_fn,
            client.params,
            steps,
            optimizer=optimizer,
            return_state=True,
        )
        way = jax.tree.map(jnp.subtract, client.params, trained)
        num = jnp.maximum(steps.count(client.mask), 1)
        own = jax.tree.map(lambda g: g / num.astype(g.dtype), total)
        changed = jax.tree.map(jnp.subtract, own, client.own)
        return Reply((way, changed), own, {"loss": jnp.mean(losses)})

    def server(state: PersonalState, mean, share):
        way, changed = mean
        params = scaled_step(state.params, state.hyper["server_learning_rate"], way)
        return state._replace(
            params=params, server=scaled_step(state.server, -share, changed)
        )

    return personal(
        init,
        client,
        server,
        lambda client: client.params,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "server_learning_rate": 1.0},
        rounds=RoundConfig(**{"weighting": "clients"} | options),
    )
