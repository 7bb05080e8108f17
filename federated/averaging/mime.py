"""MIME: clients mimic steps of a centralised optimizer with momentum."""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import (
    PersonalState,
    Reply,
    personal,
    replace_params,
    train,
)


class MimeState(NamedTuple):
    """State of the server."""

    momentum: jax.Array  # tree like params
    gradient: jax.Array  # tree like params; the mean gradient of the cohort


@built_once
def mime(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients,
    lite: bool = False,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds MIME with momentum: MimeSGDm, or MimeLite with ``lite``.

    A round has two exchanges. First, clients send their full gradients at the server's
    model. Then they take steps along ``(1 - momentum) g + momentum m`` with the
    server's momentum m, which is constant in the round. In MIME, g is a batch's
    gradient minus the one at the server's model, plus the cohort's mean gradient. In
    MimeLite, g is the batch's gradient. The server averages the models, and m follows
    the mean gradient. ``init(key, learning_rate=0.1, momentum=0.9)``. ``info["loss"]``
    is the mean loss of the cohort at the server's model.

    Args:
      init_fn: ``key -> params``.
      loss_fn: see ``fedprox``. A step uses the same key at both models.
      steps: ``Steps`` of a client in a round.
      num_clients: number of clients in the population.
      lite: whether to run MimeLite.
      **options: see ``RoundOptions``. Clients are weighted equally by default, as in
        the paper. A ``client_optimizer`` gets the directions above.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``server`` is ``MimeState``.

    Raises:
      ValueError: same conditions as ``Steps``, ``RoundConfig`` and ``personal``.

    Example:
      Without momentum, one step of each client is a step on the mean loss.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = mime(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5, momentum=0.0)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params, state.server.momentum
      (Array(1., dtype=float32), Array(-2., dtype=float32))

    References:
      Karimireddy et al., Mime: mimicking centralized stochastic algorithms in federated
      learning, 2020, algorithms 1 and 2 with the base algorithm SGDm.
    """

    def init(key):
        params = init_fn(key)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return params, None, MimeState(zeros, zeros)

    def full_gradient(client):
        loss, grads = local.gradient(
            loss_fn, client.key, client.params, client.rows, client.mask
        )
        return Reply(grads, None, {"loss": loss})

    def store_gradient(state: PersonalState, mean, share):
        del share
        as_kept = lambda new, old: new.astype(old.dtype)
        gradient = jax.tree.map(as_kept, mean, state.params)
        return state._replace(server=state.server._replace(gradient=gradient))

    def descend(client):
        decay = client.hyper["momentum"]
        momentum, mean = client.server

        mix = lambda g, m: (1 - decay) * g + decay * m

        if lite:
            direction = lambda w, grads: jax.tree.map(mix, grads, momentum)
            trained, losses = train(
                client, loss_fn, client.params, steps, direction_fn=direction
            )
            return Reply(trained, None, {"loss": jnp.mean(losses)})

        def both(pair, batch, key):
            """Returns losses whose gradients are those at both models."""
            still = lambda w, copy: w + (copy - jax.lax.stop_gradient(copy))
            start, same = (
                jax.tree.map(still, client.params, pair[1]),
                jax.random.clone(key),
            )
            return loss_fn(pair[0], batch, key) + loss_fn(start, batch, same)

        def direction(pair, grads):
            here, there = grads
            correct = lambda g, g0, c, m: mix(g - g0 + c, m)
            moved = jax.tree.map(correct, here, there, mean, momentum)
            return moved, jax.tree.map(jnp.zeros_like, there)

        pair = client.params, client.params
        (trained, _), losses = train(client, both, pair, steps, direction_fn=direction)
        return Reply(trained, None, {"loss": jnp.mean(losses)})

    def finish(state: PersonalState, mean, share):
        momentum, gradient = state.server
        decay = state.hyper["momentum"]
        follow = lambda m, c: ((1 - decay) * c + decay * m).astype(m.dtype)
        server = MimeState(jax.tree.map(follow, momentum, gradient), gradient)
        return replace_params(state, mean, share)._replace(server=server)

    return personal(
        init,
        full_gradient,
        store_gradient,
        lambda client: client.params,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "momentum": 0.9},
        rounds=RoundConfig(**{"weighting": "clients"} | options),
        second=(descend, finish),
    )
