"""Somebody new, after training: a model of their own, that nobody else learns of."""

import jax
import jax.numpy as jnp

from jaxanon.federated.engine.algorithm import FederatedAlgorithm
from jaxanon.kernels.checks import whole


def personalize_new_client(
    algorithm: FederatedAlgorithm, key, state, own, rows, mask, num_rounds: int
):
    """What somebody predicts with who joins when the others have learned.

    They take what is shared, begin with ``own`` and go through so many rounds by
    themselves: shared layers come anew each round as they are, layers and masks of
    their own stay, and nothing is sent, so that nothing needs noise. Then comes what
    the algorithm does before it predicts, such as Atlas's last fit or Per-FedAvg's
    step. Whose own model is a whole one (Ditto, pFedMe, ClusterFL, FedDL) begins with
    what is shared, and of ``clustered`` with the model that most clients have, which
    stays as it is. Without a row of their own they predict with what is shared and what
    nobody taught.

    Args:
      algorithm: a ``FederatedAlgorithm``, of any number of clients.
      key: typed PRNG key, another for everybody.
      state: of the algorithm, as trained; it stays as it is.
      own: what clients began with, as ``state.own`` of ``algorithm.init`` without its
        leading axis; None where they keep nothing.
      rows: tree of arrays ``[n, ...]``, theirs.
      mask: ``bool[n]``.
      num_rounds: a Python int >= 0.

    Returns:
      Tree of arrays like ``params``.

    Raises:
      TypeError: for ``num_rounds`` that is not an integer.
      ValueError: for ``num_rounds`` below 0.

    Example:
      All share 3; the one who joins goes halfway to 5 in each of two rounds.

      >>> import jaxanon.federated as fed
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = fed.fedper(
      ...     zeros, loss, fed.Steps(num_steps=1), own_layers=("v",), num_clients=4)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
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
      Atlas, section 3.4.3, RQ4; Collins et al., ICML 2021, section 5, for a new
      client's own layers on shared ones.
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
