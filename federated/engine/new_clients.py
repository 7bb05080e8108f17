"""Personalised models for new clients after training."""

import jax
import jax.numpy as jnp

from jaxanon.federated.engine.algorithm import FederatedAlgorithm
from jaxanon.kernels.checks import whole


def personalize_new_client(
    algorithm: FederatedAlgorithm, key, state, own, rows, mask, num_rounds: int
):
    """Personalises a model for a new client after training.

    The new client loads the shared layers, starts from ``own`` and trains locally for
    ``num_rounds`` rounds. Shared layers are reset each round; personal layers and masks
    are kept. The client sends nothing, so it needs no noise. Finally the algorithm's
    step before prediction runs, such as Atlas's local fine-tuning or Per-FedAvg's step.
    With full personal models (Ditto, pFedMe, ClusterFL, FedDL) the client starts from
    the shared model. With ``centralized_clustering`` it keeps the model of the largest
    cluster. A client without rows predicts with the shared and the initial personal
    layers.

    Args:
      algorithm: ``FederatedAlgorithm`` for any number of clients.
      key: typed PRNG key, different for each client.
      state: trained state of the algorithm; it is not changed.
      own: initial personal state, ``state.own`` of ``algorithm.init`` without its
        leading axis. None if the algorithm has none.
      rows: tree of arrays ``[n, ...]``, rows of the new client.
      mask: ``bool[n]``.
      num_rounds: Python int >= 0.

    Returns:
      Tree of arrays like ``params``.

    Raises:
      TypeError: for ``num_rounds`` that is not an integer.
      ValueError: for ``num_rounds`` below 0.

    Example:
      The shared weight is 3. In each of two rounds the client moves halfway to 5.

      >>> import jaxanon.federated as fed
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = fed.fedper(
      ...     zeros, loss, steps=fed.Steps(num_steps=1), personal_layers=("v",),
      ...     num_clients=4)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state = state._replace(params={"w": jnp.array(3.0)})
      >>> personalize_new_client(
      ...     algorithm,
      ...     jax.random.key(1),
      ...     state,
      ...     {"v": jnp.zeros(())},
      ...     jnp.array([5.0]),
      ...     jnp.ones(1, bool),
      ...     2,
      ... )["v"]
      Array(1.5, dtype=float32)

    References:
      Atlas, section 3.4.3, RQ4; Collins et al., ICML 2021, section 5, for personal
      layers of new clients.
    """
    whole("num_rounds", num_rounds, least=0)
    if algorithm.model is None or algorithm.local_update is None:
        return state.params
    own = jax.tree.map(jnp.asarray, own)
    if algorithm.init_new_client is not None:
        own = algorithm.init_new_client(state, own)
    one = lambda own: state._replace(own=jax.tree.map(lambda leaf: leaf[None], own))

    def alone(own, number):
        own_key = jax.random.fold_in(key, number)
        return algorithm.local_update(own_key, one(own), 0, rows, mask), None

    own, _ = jax.lax.scan(alone, own, jnp.arange(num_rounds))
    last_key = jax.random.fold_in(key, num_rounds)
    return algorithm.model(last_key, one(own), 0, rows, mask)
