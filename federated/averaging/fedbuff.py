"""FedBuff: asynchronous averaging with a buffer of late changes."""

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
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import PersonalState, Reply, personal, train
from jaxanon.kernels.checks import whole


def staleness_weight(staleness):
    """Returns ``1 / sqrt(1 + staleness)``, the published weight of a late change.

    Example:
      >>> float(staleness_weight(jnp.array(3)))
      0.5
    """
    return 1 / jnp.sqrt(1.0 + staleness)


@built_once
def fedbuff(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients,
    buffer_size: int,
    max_staleness: int,
    staleness_fn=None,
    weight_fn=staleness_weight,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedBuff, which simulates clients that train on old models.

    A round is one step of the server: ``buffer_size`` clients arrive with changes of
    the models that they got up to ``max_staleness`` server steps ago. Late changes
    have a smaller weight, and the sum is divided by ``buffer_size``.
    ``init(key, learning_rate=0.1, server_learning_rate=1.0)``. ``info`` has ``"loss"``
    and ``"staleness"``, the means over the buffer.

    Args:
      init_fn, loss_fn: see ``fedavg``.
      steps: ``Steps`` of a client.
      num_clients: number of clients in the population.
      buffer_size: K >= 1, changes of one server step, by different clients.
      max_staleness: S >= 1; the state holds S + 1 models.
      staleness_fn: ``(key, max_staleness) -> int32[]``, the staleness of a change. None
        draws uniformly from 0 to S. A model older than the start is the start.
      weight_fn: ``staleness -> float[]``, the weight of a change.
      **options: see ``RoundOptions``, without ``cohort_size``. Clients have the same
        weight by default.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``server`` holds the models
      before ``params``, newest first, ``[S, ...]``.

    Raises:
      ValueError: for a number out of range; also the conditions of ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedbuff(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     num_clients=1, buffer_size=1, max_staleness=1,
      ...     staleness_fn=lambda key, most: most)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0])])
      >>> for _ in range(2):  # The first model is used twice, with weight 1 / sqrt(2).
      ...     state, info = algorithm.update(jax.random.key(1), state, clients)
      >>> round(float(state.params), 4), info["staleness"]
      (2.8284, Array(1., dtype=float32))

    References:
      Nguyen et al., Federated learning with buffered asynchronous aggregation, AISTATS
      2022, algorithm 1 and section 5.
    """
    buffer_size = whole("buffer_size", buffer_size, least=1)
    max_staleness = whole("max_staleness", max_staleness, least=1)
    if "cohort_size" in options:
        raise TypeError("cohort_size must not be given to fedbuff; use buffer_size.")
    draw = staleness_fn or (
        lambda key, most: jax.random.randint(key, (), 0, most + 1, jnp.int32)
    )

    def init(key):
        params = init_fn(key)
        repeat = lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], max_staleness, axis=0)
        return params, None, jax.tree.map(repeat, params)

    def client_fn(client):
        draw_key, train_key = jax.random.split(client.key)
        staleness = jnp.clip(draw(draw_key, max_staleness), 0, max_staleness)
        model = lambda now, old: jnp.where(staleness > 0, old[staleness - 1], now)
        begun = jax.tree.map(model, client.params, client.server)
        trained, losses = train(client, loss_fn, begun, steps, key=train_key)
        weight = weight_fn(staleness)
        change = lambda old, new: (weight * (old - new)).astype(old.dtype)
        info = {"loss": jnp.mean(losses), "staleness": staleness.astype(float)}
        return Reply(jax.tree.map(change, begun, trained), None, info)

    def server(state: PersonalState, mean, share):
        del share
        params = scaled_step(state.params, state.hyper["server_learning_rate"], mean)
        push = lambda now, old: jnp.concatenate([now[None], old[:-1]])
        history = jax.tree.map(push, state.params, state.server)
        return state._replace(params=params, server=history)

    options = {"weighting": "clients"} | options | {"cohort_size": buffer_size}
    return personal(
        init,
        client_fn,
        server,
        lambda client: client.params,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "server_learning_rate": 1.0},
        rounds=RoundConfig(**options),
        direction_fn=lambda state, sent: sent,
    )
