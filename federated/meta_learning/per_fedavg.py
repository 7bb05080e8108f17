"""Per-FedAvg: a shared initialization for one local adaptation step."""

from typing import Unpack

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import Client, shared


@built_once
def per_fedavg(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients,
    second_order: bool = True,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds Per-FedAvg: local SGD on the loss after one adaptation step.

    Each step adapts the model on one batch and evaluates the loss on the next. The
    gradient is taken with respect to the model before adaptation. ``init(key,
    learning_rate=0.1, adaptation_learning_rate=0.1)``, β and α. ``info["loss"]`` is the
    mean loss after adaptation.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``; must be twice differentiable with ``second_order``.
      steps: ``Steps`` of a client in a round; each uses two batches.
      num_clients: number of clients in the population.
      second_order: whether to differentiate through the adaptation. False uses the
        gradient at the adapted model (FO-MAML).
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState`` without personal state. Clients
      predict with the shared model after one step on all their rows.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      With loss (w - x)²/2 and α = 0.5, adaptation halves the distance to 4, and the
      gradient is a quarter of it.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = per_fedavg(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), num_clients=1)
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=1.0, adaptation_learning_rate=0.5)
      >>> state, _ = algorithm.update(
      ...     jax.random.key(1), state, stack([jnp.array([4.0])]))
      >>> state.params
      Array(1., dtype=float32)

    References:
      Fallah, Mokhtari and Ozdaglar, Personalized federated learning with theoretical
      guarantees: a model-agnostic meta-learning approach, NeurIPS 2020, algorithm 1,
      with the Hessian on the adaptation batch.
    """

    num_steps = steps.exact("per_fedavg")

    def adapt(client: Client, params, batch, real, key):
        _, grads = local.gradient(loss_fn, key, params, batch, real)
        if not second_order:
            grads = jax.lax.stop_gradient(grads)
        return scaled_step(params, client.hyper["adaptation_learning_rate"], grads)

    def train_fn(client):
        order_key, loss_key = jax.random.split(client.key)
        optimizer = client.optimizer
        batch_of = local.batches(
            order_key, client.rows, client.mask, steps.batch_size, steps.shuffle
        )

        def step(carry, number):
            params, opt_state = carry
            adapt_key, query_key = jax.random.split(
                jax.random.fold_in(loss_key, number)
            )
            batch, real = batch_of(2 * number + 1)

            def query_loss(params):
                after = adapt(client, params, *batch_of(2 * number), adapt_key)
                losses = loss_fn(after, batch, query_key)
                return local.masked_mean(losses, real)

            loss, grads = jax.value_and_grad(query_loss)(params)
            updates, opt_state = optimizer.update(grads, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), loss

        start = client.params, optimizer.init(client.params)
        (params, _), losses = jax.lax.scan(step, start, jnp.arange(num_steps))
        return params, losses

    def model(client):
        return adapt(client, client.params, client.rows, client.mask, client.key)

    return shared(
        init_fn,
        train_fn,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "adaptation_learning_rate": 0.1},
        rounds=RoundConfig(**options),
        model_fn=model,
    )
