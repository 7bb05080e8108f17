"""FedAvg: local SGD on clients and averaging on the server."""

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    Steps,
    build,
    built_once,
)


@built_once
def fedavg(
    init_fn,
    loss_fn,
    *,
    num_steps,
    batch_size=None,
    shuffle=True,
    server_optimizer=None,
    cohort_size=None,
    rounds_per_cohort=1,
    weighting="rows",
    layout=None,
) -> FederatedAlgorithm:
    """Builds FedAvg: local SGD, then a server step on the mean change of the clients.

    ``init(key, learning_rate=0.1) -> state``. The client learning rate
    ``learning_rate`` is an array in the state, so other values do not recompile.
    ``update(key, state, population) -> (state, info)`` with ``info["loss"]``, the mean
    over steps and the cohort.

    Args:
      init_fn: ``key -> params``.
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row. It must be finite
        for a row of zeros (padding is masked afterwards).
      num_steps: local steps, a Python int >= 1.
      batch_size: rows per step. None uses all rows of a client.
      shuffle: whether to visit rows in a new random order each round.
      server_optimizer: Optax transformation of the mean change (old minus trained
        parameters). None is ``optax.sgd(1.0)``, plain averaging. ``optax.adam`` gives
        FedAdam.
      cohort_size: clients per round, sampled without replacement. None is all clients.
      rounds_per_cohort: rounds before a new cohort is sampled.
      weighting: ``"rows"`` weights clients by their real rows, ``"clients"`` equally.
      layout: ``Layout``. None is ``default_layout``. It affects only speed.

    Raises:
      TypeError: if ``num_steps``, ``batch_size`` or a number of clients or rounds is
        not an integer. From ``init``, for a ``learning_rate`` that is not a number.
      ValueError: if one of them is below 1, or ``weighting`` is unknown. From ``init``,
        for a ``learning_rate`` on the host out of range. From the first ``update``, if
        the cohort is larger than the population, or ``loss_fn`` does not return one
        loss per row.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedavg(lambda key: jnp.zeros(()), square, num_steps=2)
      >>> clients = stack([jnp.array([4.0, 8.0]), jnp.array([0.0])])
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state, info = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params
      Array(3., dtype=float32)

    References:
      McMahan et al., Communication-efficient learning of deep networks from
      decentralized data, AISTATS 2017; Reddi et al., Adaptive federated
      optimization, ICLR 2021.
    """
    steps = Steps(num_steps=num_steps, batch_size=batch_size, shuffle=shuffle)

    def client(key, state, rows, mask):
        chosen = layout
        if chosen is None:
            chosen = layouts.default_layout(state.params, 1, num_steps=steps.num_steps)
        trained, losses = local.local_sgd(
            loss_fn,
            key,
            state.params,
            rows,
            mask,
            learning_rate=state.hyper["learning_rate"],
            num_steps=steps.num_steps,
            batch_size=steps.batch_size,
            shuffle=steps.shuffle,
            unroll=chosen.unroll,
        )
        change = jax.tree.map(jnp.subtract, state.params, trained)
        return change, {"loss": jnp.mean(losses)}

    return build(
        init_fn,
        client,
        hyper={"learning_rate": 0.1},
        server_optimizer=server_optimizer or optax.sgd(1.0),
        cohort_size=cohort_size,
        rounds_per_cohort=rounds_per_cohort,
        weighting=weighting,
        layout=layout,
    )
