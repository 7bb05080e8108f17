"""Reference implementation of Per-FedAvg in plain loops.

It returns shared parameters and personal states after some rounds in which all clients
participate, weighted by their rows.
"""

import jax

from jaxanon.federated.engine.reference import (
    batch_indices,
    mean_loss,
    round_of,
    weighted_mean,
)


def per_fedavg(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    adaptation_learning_rate,
):
    """Runs Per-FedAvg with (I - α ∇²f) times the gradient after adaptation."""
    for t in range(num_rounds):
        sent, sizes = [], []
        for own_key, rows, size in round_of(key, t, clients):
            doubled = {**options, "num_steps": 2 * options["num_steps"]}
            index, loss_key = batch_indices(own_key, size, **doubled)
            local = params
            for step in range(options["num_steps"]):
                keys = lambda k=loss_key, s=step: jax.random.split(
                    jax.random.fold_in(k, s)
                )
                adapt, grade = (
                    jax.tree.map(lambda leaf, i=i: leaf[i], rows)
                    for i in index[2 * step : 2 * step + 2]
                )
                slope = lambda w, b=adapt, keys=keys: jax.grad(mean_loss, argnums=1)(
                    loss_fn, w, b, keys()[0]
                )
                grads = slope(local)
                after = jax.tree.map(
                    lambda w, g: w - adaptation_learning_rate * g, local, grads
                )
                graded = jax.grad(mean_loss, argnums=1)(
                    loss_fn, after, grade, keys()[1]
                )
                _, bent = jax.jvp(slope, (local,), (graded,))
                local = jax.tree.map(
                    lambda w, g, h: (
                        w - learning_rate * (g - adaptation_learning_rate * h)
                    ),
                    *(local, graded, bent),
                )
            sent.append(local)
            sizes.append(size)
        params = weighted_mean(sent, sizes)
    return params, None
