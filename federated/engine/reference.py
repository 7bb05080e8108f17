"""Helpers of the reference implementations in plain loops."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.local import visiting_order


def mean_loss(loss_fn, params, batch, key):
    """Returns the mean loss ``float[]`` of a batch."""
    return jnp.mean(loss_fn(params, batch, key))


def real_rows(clients, client):
    """Returns a client's rows without padding, and their number."""
    mask = np.asarray(clients.mask[client])
    return jax.tree.map(lambda leaf: leaf[client][mask], clients.rows), int(mask.sum())


def weighted_mean(trees, weights):
    """Returns the weighted mean of a list of trees, with weights > 0."""
    total = sum(weights)
    fractions = [weight / total for weight in weights]

    def mean(*leaves):
        return sum(w * leaf for w, leaf in zip(fractions, leaves, strict=True))

    return jax.tree.map(mean, *trees)


def batch_indices(key, size, *, num_steps, batch_size):
    """Returns the row indices of each step of a client, and the key of its losses."""
    order_key, loss_key = jax.random.split(key)
    order = visiting_order(order_key, jnp.ones(size, bool), shuffle=True)
    b = min(batch_size, size)
    index = [
        jnp.array([int(order[(step * b + i) % size]) for i in range(b)])
        for step in range(num_steps)
    ]
    return index, loss_key


def train_client(
    loss_fn, key, params, rows, size, learning_rate, *, num_steps, batch_size
):
    """Returns the params after a client's SGD steps."""
    index, loss_key = batch_indices(
        key, size, num_steps=num_steps, batch_size=batch_size
    )
    for step, chosen in enumerate(index):
        batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
        step_key = jax.random.fold_in(loss_key, step)
        grads = jax.grad(mean_loss, argnums=1)(loss_fn, params, batch, step_key)
        params = jax.tree.map(lambda w, g: w - learning_rate * g, params, grads)
    return params


def round_of(key, t, clients):
    """Yields the key, the rows and their number for every client."""
    _, client_key = jax.random.split(jax.random.fold_in(key, t))
    for client in range(len(clients.mask)):
        rows, size = real_rows(clients, client)
        yield jax.random.fold_in(client_key, client), rows, size
