"""What the server sees of a training: each client's messages, or their means."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import layout as layouts
from jaxanon.kernels.checks import whole


class ObservedMessage(NamedTuple):
    """What an onlooker has of every round; leaves begin with the axis ``rounds``."""

    before: Any  # what the server sent out, ``state.params`` as the round begins
    message: Any  # what came back
    weight: jax.Array  # float[rounds]; 0 where nothing did, and ``message`` is zeros


def simulate_observed(algorithm, key, state, clients, num_rounds: int, client=None):
    """Runs rounds and keeps what was sent in them, for whoever attacks it.

    There are two onlookers. A server that is curious, or whoever reads its mail, has
    *each message* of a client: noise must be in there before it leaves (local noise,
    as of FedSGD-LDP and Atlas), and this is the one to attack. With secure aggregation,
    or a server that is trusted to forget, only *the mean* is left. Either knows the
    algorithm, its hyper-parameters, what the server sent out, and what a client weighs,
    which is the number of its rows where ``weighting`` says so. What a client keeps,
    such as Atlas's last fit, neither has.

    Messages are those that ``algorithm.update`` takes the mean of, in the same bits but
    for rounding, and the state is that of ``simulate``. What is sent differs: trained
    parameters by most algorithms, what they moved by FedAvg, a gradient by FedSGD,
    ``(layers, which of them)`` by Atlas, whose layers that stay are zeros.

    Args:
      algorithm: a ``FederatedAlgorithm`` with ``sent``.
      key: the run's key.
      state: from ``algorithm.init``, or of later rounds.
      clients: ``Population``.
      num_rounds: a Python int >= 1.
      client: whose messages, ``int32[]``; None is the weighted mean over the cohort.

    Returns:
      The state after the rounds, and ``ObservedMessage``.

    Raises:
      TypeError: for ``num_rounds`` that is not an integer.
      ValueError: if single messages are not to be had, or for ``num_rounds`` below 1.

    Example:
      The first of two clients goes half of the way to 4, and half of what is left from
      where the mean is by then.

      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedprox(
      ...     lambda key: jnp.zeros(()), square, fed.Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, seen = simulate_observed(
      ...     algorithm, jax.random.key(1), state, clients, 2, 0
      ... )
      >>> seen.before, seen.message, state.params
      (Array([0., 1.], ...), Array([2. , 2.5], ...), Array(1.5, ...))
    """
    if algorithm.message is None:
        raise ValueError(
            "algorithm has no sent: what one client sends is not to be had of it; take "
            "one of fedsgd, fedavg or those whose clients keep something."
        )
    num_rounds = whole("num_rounds", num_rounds, least=1)

    def of_all(state):
        """The mean over clients; those who sent nothing weigh nothing."""
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
        told = (
            of_all(state)
            if client is None
            else algorithm.message(key, state, clients, client)
        )
        after, _ = algorithm.update(key, state, clients)
        return after, ObservedMessage(state.params, *told)

    return jax.lax.scan(one_round, state, length=num_rounds)
