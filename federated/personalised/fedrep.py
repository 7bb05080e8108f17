"""FedRep: a representation that all learn, beneath heads that each learns first."""

import jax
import jax.numpy as jnp

from jaxanon.federated.engine.algorithm import CohortConfig, FederatedAlgorithm, Steps
from jaxanon.federated.engine.personal import partly_shared, train


def fedrep(
    init_fn,
    loss_fn,
    steps: Steps,
    *,
    own_layers: tuple[str, ...],
    own_steps: Steps,
    num_clients,
    rounds: CohortConfig | None = None,
) -> FederatedAlgorithm:
    """A client trains its own layers while those it was sent rest, and then those.

    ``init(key, step_size=0.1)``. ``info["loss"]`` is the mean over the steps of the
    shared layers, ``info["own loss"]`` of those before.

    Args:
      init_fn: ``key -> params``, a dict of layers.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of the shared layers.
      own_layers: names of the layers that stay with their client.
      own_steps: ``Steps`` of those.
      num_clients: clients of the population.
      rounds: ``CohortConfig``; None is the default.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` are the layers that stay.

    Raises:
      ValueError: same conditions as ``Steps``, ``CohortConfig`` and ``personal``; from ``init``, for a
        name of no layer.

    Example:
      The head takes half of the way, what is shared half of the rest.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = fedrep(
      ...     zeros, loss, Steps(num_steps=1), own_layers=("v",),
      ...     own_steps=Steps(num_steps=1), num_clients=1)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
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
            lambda own, batch, key: loss_fn(client.params | own, batch, key),
            client.own,
            own_steps,
            key=own_key,
        )
        shared, losses = train(
            client,
            lambda shared, batch, key: loss_fn(shared | own, batch, key),
            client.params,
            steps,
            key=shared_key,
        )
        info = {"loss": jnp.mean(losses), "own loss": jnp.mean(own_losses)}
        return shared | own, info

    return partly_shared(
        init_fn,
        train_fn,
        own_layers=own_layers,
        num_clients=num_clients,
        rounds=rounds,
    )
