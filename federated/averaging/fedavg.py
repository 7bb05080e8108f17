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
    hyper_of,
)


@built_once
def fedavg(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    cohort_size=None,
    client_optimizer=None,
    server_optimizer=None,
    rounds_per_cohort=1,
    weighting="rows",
    layout=None,
    aggregator=None,
    compressor=None,
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
      steps: ``Steps`` of a client in a round.
      cohort_size: clients per round, sampled without replacement. None is all clients.
      client_optimizer: Optax transformation of a client's gradients, such as
        ``optax.adam(1e-3)``, which restarts in each round. ``learning_rate`` is then
        no hyper-parameter. A function such as ``optax.adam`` receives it. None is SGD.
      server_optimizer: Optax transformation of the mean change (old minus trained
        parameters). None is ``optax.sgd(1.0)``, plain averaging. ``optax.adam`` gives
        FedAdam.
      rounds_per_cohort: rounds before a new cohort is sampled.
      weighting: ``"rows"`` weights clients by their real rows, ``"clients"`` equally.
      layout: ``Layout``. None is ``default_layout``. It affects only speed.
      aggregator: ``(changes, mask=) -> change``, which replaces the weighted mean, such
        as ``kernels.coordinate_median`` or ``functools.partial(kernels.trimmed_mean,
        num_trimmed=2)``. Krum is ``lambda changes, mask: kernels.krum(changes, 2,
        mask=mask)[0]``. It needs all changes of a cohort in memory.
      compressor: ``(key, change) -> (change, bytes)``, what the server decodes and the
        size of the message, such as ``federated.top_k(0.01)``. ``info["bytes_up"]`` is
        the mean size.

    Raises:
      TypeError: if a number of clients or rounds is not an integer. From ``init``, for
        a ``learning_rate`` that is not a number, or that an optimizer replaces.
      ValueError: if one of them is below 1, or ``weighting`` is unknown. From ``init``,
        for a ``learning_rate`` on the host out of range. From the first ``update``, if
        the cohort is larger than the population, or ``loss_fn`` does not return one
        loss per row.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=2))
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

    def client(key, state, rows, mask):
        chosen, most, send_key = layout, steps.most(len(mask)), None
        if compressor is not None:
            key, send_key = jax.random.split(key)
        if chosen is None:
            chosen = layouts.default_layout(state.params, 1, num_steps=most)
        trained, losses = local.local_sgd(
            loss_fn,
            key,
            state.params,
            rows,
            mask,
            num_steps=steps.num_steps,
            num_epochs=steps.num_epochs,
            batch_size=steps.batch_size,
            shuffle=steps.shuffle,
            unroll=chosen.unroll,
            learning_rate=state.hyper.get("learning_rate"),
            optimizer=client_optimizer
            and local.optimizer_of(client_optimizer, state.hyper),
        )
        change = jax.tree.map(jnp.subtract, state.params, trained)
        info = {"loss": jnp.mean(losses)}
        if compressor is not None:
            change, num_bytes = compressor(send_key, change)
            info["bytes_up"] = jnp.asarray(num_bytes, jnp.result_type(float))
        return change, info

    return build(
        init_fn,
        client,
        hyper=hyper_of({"learning_rate": 0.1}, client_optimizer),
        server_optimizer=server_optimizer or optax.sgd(1.0),
        cohort_size=cohort_size,
        rounds_per_cohort=rounds_per_cohort,
        weighting=weighting,
        layout=layout,
        aggregator=aggregator,
    )
