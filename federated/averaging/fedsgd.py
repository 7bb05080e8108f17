"""FedSGD: clients send gradients, the server takes the step."""

import optax

from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import FederatedAlgorithm, build


def fedsgd(
    init_fn,
    loss_fn,
    *,
    server_optimizer=None,
    cohort_size=None,
    rounds_per_cohort=1,
    weighting="rows",
    layout=None,
) -> FederatedAlgorithm:
    """Each client's gradient over all its rows; one server step on the mean of them.

    ``init(key) -> state``; ``update(key, state, population) -> (state, info)`` with
    ``info["loss"]``, the mean over the cohort before the step.

    Args:
      init_fn: ``key -> params``.
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row, finite for a row
        of zeros (padding is masked afterwards).
      server_optimizer: any Optax transformation; ``None`` is ``optax.sgd(0.1)``.
      cohort_size: clients per round, without replacement; ``None`` is all of them.
      rounds_per_cohort: rounds that a cohort stays together.
      weighting: ``"rows"`` weighs a client by its real rows, ``"clients"`` all alike.
      layout: a ``Layout``; ``None`` is ``default_layout``. Changes no result.

    Raises:
      TypeError: if a number of clients or rounds is no whole one; from ``init``, for a
        step size that is no number.
      ValueError: if one is below 1 or ``weighting`` is unknown; at the first
        ``update``, if the cohort is larger than the population, or ``loss_fn`` does not
        return one loss per row.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedsgd(
      ...     lambda key: jnp.zeros(()), square, server_optimizer=optax.sgd(0.5))
      >>> clients = stack([jnp.array([4.0, 8.0]), jnp.array([0.0])])
      >>> state = algorithm.init(jax.random.key(0))
      >>> state, info = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params
      Array(2., dtype=float32)

    References:
      McMahan et al., Communication-efficient learning of deep networks from
      decentralized data, AISTATS 2017.
    """

    def client(key, state, rows, mask):
        loss, grads = local.gradient(loss_fn, key, state.params, rows, mask)
        return grads, {"loss": loss}

    return build(
        init_fn,
        client,
        hyper={},
        server_optimizer=server_optimizer or optax.sgd(0.1),
        cohort_size=cohort_size,
        rounds_per_cohort=rounds_per_cohort,
        weighting=weighting,
        layout=layout,
    )
