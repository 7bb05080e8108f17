"""Records of messages that a server sees during training."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import layout as layouts
from jaxanon.kernels.checks import whole


class ObservedMessage(NamedTuple):
    """Observed messages of all rounds; leaves have a leading ``rounds`` axis."""

    before: Any  # ``state.params`` at the start of the round, as sent by the server
    message: Any  # message returned to the server
    weight: jax.Array  # float[rounds]; 0 without a message, which is then zeros


def simulate_observed(algorithm, key, state, clients, num_rounds: int, client=None):
    """Runs rounds and records the messages, for attacks on them.

    There are two attackers. A curious server sees *each message* of a client, so noise
    must be added on the client (FedSGD-LDP, Atlas). With secure aggregation or a
    trusted server, the attacker sees only *the mean*. Both know the algorithm, its
    hyper-parameters, the broadcast parameters and client weights (the number of rows
    with ``weighting="rows"``). Neither sees personal state, such as Atlas's local
    fine-tuning.

    The messages are those that ``algorithm.update`` averages, up to rounding, and the
    state equals that of ``simulate``. Most algorithms send trained parameters. FedAvg
    sends the change of parameters, FedSGD a gradient, and Atlas ``(layers, mask of sent
    layers)`` with zeros for layers that are not sent.

    Args:
      algorithm: ``FederatedAlgorithm`` with ``message``.
      key: typed PRNG key of the run.
      state: state from ``algorithm.init`` or from later rounds.
      clients: ``Population``.
      num_rounds: Python int >= 1.
      client: ``int32[]``, the observed client. None observes the weighted mean over the
        cohort.

    Returns:
      The state after the rounds, and ``ObservedMessage``.

    Raises:
      TypeError: for ``num_rounds`` that is not an integer.
      ValueError: if the algorithm has no ``message``, or for ``num_rounds`` below 1.

    Example:
      The first of two clients moves from 0 halfway to 4, then from the mean halfway.

      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedprox(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=fed.Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, seen = simulate_observed(
      ...     algorithm, jax.random.key(1), state, clients, 2, 0
      ... )
      >>> seen.before, seen.message, state.params
      (Array([0., 1.], ...), Array([2. , 2.5], ...), Array(1.5, ...))
    """
    if algorithm.message is None:
        raise ValueError(
            "algorithm must have message to observe single clients, got None; use one "
            "such as fedsgd, fedavg or fedprox."
        )
    num_rounds = whole("num_rounds", num_rounds, least=1)

    def of_all(state):
        """Averages over clients; clients that send nothing have weight 0."""
        one = lambda client: algorithm.message(key, state, clients, client)

        def weighed(client):
            message, weight = one(client)
            return jax.tree.map(lambda leaf: weight * leaf, message), weight

        ids = jnp.arange(len(clients.mask))
        chosen = layouts.default_layout(state.params, len(ids))
        total, weight = layouts.sum_over_clients(
            weighed, ids, jnp.ones(len(ids)), chosen
        )
        return layouts.divide(total, weight), weight

    def one_round(state, _):
        observed = (
            of_all(state)
            if client is None
            else algorithm.message(key, state, clients, client)
        )
        after, _ = algorithm.update(key, state, clients)
        return after, ObservedMessage(state.params, *observed)

    return jax.lax.scan(one_round, state, length=num_rounds)
