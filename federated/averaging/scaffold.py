"""SCAFFOLD: FedAvg whose clients' drift is taken out by control variates."""

import jax
import jax.numpy as jnp

from jaxanon.federated.engine.algorithm import CohortConfig, FederatedAlgorithm, Steps
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import PersonalState, Reply, personal, train
from jaxanon.kernels.bounds import POSITIVE


def scaffold(
    init_fn, loss_fn, steps: Steps, *, num_clients, rounds: CohortConfig | None = None
) -> FederatedAlgorithm:
    """Clients descend along their gradient less their control, plus everybody's.

    A control is a guess of a gradient: a client's own is the mean gradient that it met
    in its last round (option II of the paper), the server's the mean of theirs.
    ``init(key, step_size=0.1, server_step_size=1.0)``. ``info["loss"]`` is the mean
    over steps and the cohort.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round.
      num_clients: clients of the population.
      rounds: ``CohortConfig``; None weighs all clients alike, as the paper does: only
        then is the server's control the mean of theirs where cohorts are parts.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` and ``server`` are
      controls, and what is sent is twice the parameters.

    Raises:
      ValueError: same conditions as ``Steps``, ``CohortConfig`` and ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = scaffold(
      ...     lambda key: jnp.zeros(()), square, Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
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
        trained, losses = train(
            client,
            loss_fn,
            client.params,
            steps,
            direction_fn=lambda w, g: jax.tree.map(
                correct, g, client.own, client.server
            ),
        )
        way = jax.tree.map(jnp.subtract, client.params, trained)
        length = steps.num_steps * client.hyper["step_size"]
        control = lambda own, all_, way: own - all_ + (way / length).astype(own.dtype)
        own = jax.tree.map(control, client.own, client.server, way)
        changed = jax.tree.map(jnp.subtract, own, client.own)
        return Reply((way, changed), own, {"loss": jnp.mean(losses)})

    def server(state: PersonalState, mean, share):
        way, changed = mean
        params = scaled_step(state.params, state.hyper["server_step_size"], way)
        return state._replace(
            params=params, server=scaled_step(state.server, -share, changed)
        )

    return personal(
        init,
        client,
        server,
        lambda client: client.params,
        num_clients=num_clients,
        hyper={"step_size": 0.1, "server_step_size": 1.0},
        ranges={"step_size": POSITIVE},  # Controls are divided by it.
        rounds=rounds or CohortConfig(weighting="clients"),
    )
