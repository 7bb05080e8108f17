"""Reference implementation of FedSGD, FedAvg, FedProx and SCAFFOLD in plain loops."""

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.engine.cohort import sample_cohort
from jaxanon.federated.engine.reference import (
    batch_indices,
    mean_loss,
    real_rows,
    round_of,
    train_client,
    weighted_mean,
)


def _server_step(optimizer, opt_state, params, gradient):
    updates, opt_state = optimizer.update(gradient, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


def fedsgd(key, params, loss_fn, clients, num_rounds, optimizer, cohort_size):
    """Returns the params after ``num_rounds`` of FedSGD, weighted by rows."""
    opt_state = optimizer.init(params)
    for t in range(num_rounds):
        gradients, sizes = [], []
        _, client_key = jax.random.split(jax.random.fold_in(key, t))
        for client in sample_cohort(key, t, len(clients.mask), cohort_size):
            rows, size = real_rows(clients, client)
            own_key = jax.random.fold_in(client_key, client)
            grads = jax.grad(mean_loss, argnums=1)(loss_fn, params, rows, own_key)
            gradients.append(grads)
            sizes.append(size)
        gradient = weighted_mean(gradients, sizes)
        params, opt_state = _server_step(optimizer, opt_state, params, gradient)
    return params


def fedavg(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    optimizer,
    cohort_size,
    *,
    learning_rate,
    num_steps,
    batch_size,
):
    """Returns the params after ``num_rounds`` of FedAvg, weighted by rows."""
    opt_state = optimizer.init(params)
    for t in range(num_rounds):
        moves, sizes = [], []
        _, client_key = jax.random.split(jax.random.fold_in(key, t))
        for client in sample_cohort(key, t, len(clients.mask), cohort_size):
            rows, size = real_rows(clients, client)
            own_key = jax.random.fold_in(client_key, client)
            local = train_client(
                loss_fn,
                own_key,
                params,
                rows,
                size,
                learning_rate,
                num_steps=num_steps,
                batch_size=batch_size,
            )
            moves.append(jax.tree.map(jnp.subtract, params, local))
            sizes.append(size)
        move = weighted_mean(moves, sizes)
        params, opt_state = _server_step(optimizer, opt_state, params, move)
    return params


def fedprox(
    key, params, loss_fn, clients, num_rounds, options, *, learning_rate, proximal_mu
):
    """Runs FedProx with the penalty as part of the loss."""
    for t in range(num_rounds):
        sent, sizes = [], []
        for own_key, rows, size in round_of(key, t, clients):
            start = params

            def penalised(w, batch, key, start=start):
                apart = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), w, start)
                return loss_fn(w, batch, key) + proximal_mu / 2 * sum(
                    jax.tree.leaves(apart)
                )

            local = train_client(
                penalised, own_key, params, rows, size, learning_rate, **options
            )
            sent.append(local)
            sizes.append(size)
        params = weighted_mean(sent, sizes)
    return params, None


def scaffold(key, params, loss_fn, clients, num_rounds, options, *, learning_rate):
    """Runs SCAFFOLD, option II, with all clients in every round."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    own, control = [zeros] * len(clients.mask), zeros
    for t in range(num_rounds):
        ways, changes, kept, sizes = [], [], [], []
        for c, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            index, loss_key = batch_indices(own_key, size, **options)
            local = params
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                step_key = jax.random.fold_in(loss_key, step)
                grads = jax.grad(mean_loss, argnums=1)(loss_fn, local, batch, step_key)
                local = jax.tree.map(
                    lambda w, g, mine, all_: w - learning_rate * (g - mine + all_),
                    *(local, grads, own[c], control),
                )
            way = len(index) * learning_rate
            new = jax.tree.map(
                lambda mine, all_, x, y, way=way: mine - all_ + (x - y) / way,
                *(own[c], control, params, local),
            )
            ways.append(jax.tree.map(jnp.subtract, local, params))
            changes.append(jax.tree.map(jnp.subtract, new, own[c]))
            kept.append(new)
            sizes.append(size)
        params = jax.tree.map(jnp.add, params, weighted_mean(ways, sizes))
        control = jax.tree.map(jnp.add, control, weighted_mean(changes, sizes))
        own = kept
    return params, own
