"""pFedMe: personal models from Moreau envelopes around the shared model."""

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
from jaxanon.federated.engine.personal import (
    PersonalState,
    Reply,
    choose_model,
    personal,
)
from jaxanon.kernels.checks import whole


@built_once
def pfedme(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    personal_steps: int,
    num_clients,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds pFedMe: personal models near a local copy of the shared model.

    In each of ``steps``, the personal model takes ``personal_steps`` steps on one
    batch, on the loss plus ``proximal_weight / 2`` times its squared distance from the
    client's copy of the shared model. The copy then moves by ``server_learning_rate *
    proximal_weight`` of the distance to the personal model. ``init(key,
    learning_rate=0.1, server_learning_rate=0.05, proximal_weight=1.0, mix=1.0)``:
    ``proximal_weight`` is λ, ``server_learning_rate`` is η, and ``mix`` is β, the
    weight of the clients' mean in the server's update. ``info["loss"]`` is the mean
    loss of personal models before a step.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``.
      steps: ``Steps``, R outer steps.
      personal_steps: K >= 1, inner steps of the personal model in each outer step.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` holds full models.
      Clients without rows predict with the shared model.

    Raises:
      TypeError: for ``personal_steps`` that is not an integer.
      ValueError: for ``personal_steps`` below 1; also the conditions of ``Steps``,
        ``RoundConfig`` and ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = pfedme(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), personal_steps=1,
      ...     num_clients=1)
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5,
      ...     server_learning_rate=0.25, proximal_weight=2.0)
      >>> state, _ = algorithm.update(
      ...     jax.random.key(1), state, stack([jnp.array([4.0])]))
      >>> state.own, state.params
      (Array([2.], dtype=float32), Array(1., dtype=float32))

    References:
      Dinh, Tran and Nguyen, Personalized federated learning with Moreau envelopes,
      NeurIPS 2020, algorithm 1.
    """
    whole("personal_steps", personal_steps, least=1)
    num_steps = steps.exact("pfedme")

    def init(key):
        params = init_fn(key)
        return params, params, None

    def client(client):
        hyper, optimizer = client.hyper, client.optimizer
        order_key, loss_key = jax.random.split(client.key)
        batch_of = local.batches(
            order_key, client.rows, client.mask, steps.batch_size, steps.shuffle
        )

        def outer(learned, step):
            copy, _ = learned
            batch, real = batch_of(step)
            key = jax.random.fold_in(loss_key, step)

            def inner(carry, number):
                own, opt_state = carry
                loss, grads = local.gradient(
                    loss_fn, jax.random.fold_in(key, number), own, batch, real
                )
                hold = lambda v, g, w: g + hyper["proximal_weight"] * (v - w)
                direction = jax.tree.map(hold, own, grads, copy)
                updates, opt_state = optimizer.update(direction, opt_state, own)
                return (optax.apply_updates(own, updates), opt_state), loss

            start = copy, optimizer.init(copy)
            (own, _), losses = jax.lax.scan(inner, start, jnp.arange(personal_steps))
            apart = jax.tree.map(jnp.subtract, copy, own)
            length = hyper["server_learning_rate"] * hyper["proximal_weight"]
            return (scaled_step(copy, length, apart), own), jnp.mean(losses)

        (copy, own), losses = jax.lax.scan(
            outer, (client.params, client.own), jnp.arange(num_steps)
        )
        return Reply(copy, own, {"loss": jnp.mean(losses)})

    def server(state: PersonalState, mean, share):
        del share
        away = jax.tree.map(jnp.subtract, state.params, mean)
        params = scaled_step(state.params, state.hyper["mix"], away)
        return state._replace(params=params)

    return personal(
        init,
        client,
        server,
        choose_model,
        num_clients=num_clients,
        hyper={
            "learning_rate": 0.1,
            "server_learning_rate": 0.05,
            "proximal_weight": 1.0,
            "mix": 1.0,
        },
        rounds=RoundConfig(**options),
    )._replace(init_new_client=lambda state, own: state.params)
