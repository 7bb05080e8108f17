"""FedSGD: clients send gradients, and the server takes the step."""

import optax

from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import FederatedAlgorithm, build, built_once


@built_once
def fedsgd(
    init_fn,
    loss_fn,
    *,
    cohort_size=None,
    server_optimizer=None,
    rounds_per_cohort=1,
    weighting="rows",
    layout=None,
) -> FederatedAlgorithm:
    """Builds FedSGD: one server step on the mean of the clients' full gradients.

    ``init(key) -> state``; ``update(key, state, population) -> (state, info)`` with
    ``info["loss"]``, the mean over the cohort before the step.

    Args:
      init_fn: ``key -> params``.
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row. It must be finite
        for a row of zeros (padding is masked afterwards).
      server_optimizer: Optax transformation. None is ``optax.sgd(0.1)``.
      cohort_size: clients per round, sampled without replacement. None is all clients.
      rounds_per_cohort: rounds before a new cohort is sampled.
      weighting: ``"rows"`` weights clients by their real rows, ``"clients"`` equally.
      layout: ``Layout``. None is ``default_layout``. It affects only speed.

    Raises:
      TypeError: if a number of clients or rounds is not an integer.
      ValueError: if one is below 1, or ``weighting`` is unknown. From the first
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
