"""FedNova: averaging of changes that are normalised by the work of a client."""

from typing import Unpack

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    build,
    built_once,
    hyper_of,
)


@built_once
def fednova(
    init_fn, loss_fn, *, steps: Steps, **options: Unpack[RoundOptions]
) -> FederatedAlgorithm:
    """Builds FedNova, which removes the bias of clients that take more steps.

    With ``Steps(num_epochs=)``, clients with more rows take more steps, and FedAvg
    counts them twice. FedNova divides a client's change by its total step length,
    averages, and multiplies by the mean length. ``init(key, learning_rate=0.1)``.

    Args:
      init_fn, loss_fn: see ``fedavg``.
      steps: ``Steps`` of a client in a round.
      **options: see ``RoundOptions``. ``client_optimizer`` must be linear in the
        gradients, as SGD with momentum. Its step length is the sum of its updates for
        gradients of 1.

    Raises:
      ValueError: same conditions as ``fedavg``.

    Example:
      The clients move to 2 and 0 in one step each.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fednova(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1))
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(1., dtype=float32)

    References:
      Wang et al., Tackling the objective inconsistency problem in heterogeneous
      federated optimization, NeurIPS 2020, equation 6 and section 4.
    """
    config = RoundConfig(**options)

    def client(key, state, rows, mask):
        optimizer = local.optimizer_of(config.client_optimizer, state.hyper)
        most = steps.most(len(mask))
        layout = config.layout or layouts.default_layout(
            state.params, 1, num_steps=most
        )
        trained, losses = local.local_sgd(
            *(loss_fn, key, state.params, rows, mask),
            num_steps=steps.num_steps,
            num_epochs=steps.num_epochs,
            batch_size=steps.batch_size,
            shuffle=steps.shuffle,
            unroll=layout.unroll,
            optimizer=optimizer,
        )
        length = step_length(optimizer, steps.count(mask), most)
        normalise = lambda old, new: (old - new) / length.astype(old.dtype)
        return (
            (jax.tree.map(normalise, state.params, trained), length),
            {"loss": jnp.mean(losses)},
        )

    def gradient(mean):
        direction, length = mean
        return jax.tree.map(lambda d: length.astype(d.dtype) * d, direction)

    return build(
        init_fn,
        client,
        hyper=hyper_of({"learning_rate": 0.1}, config.client_optimizer),
        server_optimizer=config.server_optimizer or optax.sgd(1.0),
        cohort_size=config.cohort_size,
        rounds_per_cohort=config.rounds_per_cohort,
        weighting=config.weighting,
        layout=config.layout,
        gradient_fn=gradient,
    )


def step_length(optimizer, count, most: int):
    """Returns the length of ``count`` steps of an optimizer for gradients of 1.

    Args:
      optimizer: Optax transformation.
      count: ``int32[]`` up to ``most``.
      most: Python int.

    Example:
      With momentum 1/2, updates are 1 and 1 + 1/2 times the learning rate.

      >>> step_length(optax.sgd(0.5, momentum=0.5), 2, 3)
      Array(1.25, dtype=float32)
    """
    one = jnp.ones((), jnp.result_type(float))

    def step(state, number):
        update, state = optimizer.update(one, state, one)
        return state, jnp.where(number < count, -update, 0)

    _, updates = jax.lax.scan(step, optimizer.init(one), jnp.arange(most))
    length = jnp.sum(updates)
    return jnp.where(length > 0, length, 1)  # Without a step, nothing is divided.
