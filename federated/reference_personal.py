"""Personalised algorithms as their papers' loops: for readers, and for the tests.

Each returns what all share and a list of what each client keeps, after some rounds in
which every client takes part, weighted by its rows.
"""

import jax
import jax.numpy as jnp

from jaxanon.federated.reference import (
    batches_of,
    descended,
    mean_loss,
    real_rows,
    weighted_mean,
)


def fed_prox(key, params, loss_fn, clients, num_rounds, options, *, step_size, mu):
    """FedProx: penalty and all in the loss."""
    for t in range(num_rounds):
        sent, sizes = [], []
        for own_key, rows, size in round_of(key, t, clients):
            start = params

            def penalised(w, batch, key, start=start):
                apart = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), w, start)
                return loss_fn(w, batch, key) + mu / 2 * sum(jax.tree.leaves(apart))

            local = descended(
                penalised, own_key, params, rows, size, step_size, **options
            )
            sent.append(local)
            sizes.append(size)
        params = weighted_mean(sent, sizes)
    return params, None


def fed_per(key, params, loss_fn, clients, num_rounds, options, *, step_size, names):
    """FedPer: layers of ``names`` never leave."""
    own = [{n: params[n] for n in names}] * len(clients.mask)
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for c, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            local = descended(
                loss_fn, own_key, params | own[c], rows, size, step_size, **options
            )
            kept.append({n: local[n] for n in names})
            sent.append({n: local[n] for n in local if n not in names})
            sizes.append(size)
        params, own = weighted_mean(sent, sizes), kept
    return params, own


def fed_rep(key, params, loss_fn, clients, num_rounds, options, *, step_size, names):
    """FedRep: own layers first, while the others rest."""
    own = [{n: params[n] for n in names}] * len(clients.mask)
    params = {n: params[n] for n in params if n not in names}
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for c, (key_of_client, rows, size) in enumerate(round_of(key, t, clients)):
            own_key, shared_key = jax.random.split(key_of_client)
            shared = params
            of_own = lambda o, batch, key, s=shared: loss_fn(s | o, batch, key)
            mine = descended(of_own, own_key, own[c], rows, size, step_size, **options)
            of_shared = lambda s, batch, key, o=mine: loss_fn(s | o, batch, key)
            sent.append(
                descended(
                    of_shared, shared_key, shared, rows, size, step_size, **options
                )
            )
            kept.append(mine)
            sizes.append(size)
        params, own = weighted_mean(sent, sizes), kept
    return params, own


def ditto(key, params, loss_fn, clients, num_rounds, options, *, step_size, pull):
    """Ditto: own models near the model that was sent."""
    own = [params] * len(clients.mask)
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for c, (key_of_client, rows, size) in enumerate(round_of(key, t, clients)):
            shared_key, own_key = jax.random.split(key_of_client)
            start = params

            def held(v, batch, key, start=start):
                apart = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), v, start)
                return loss_fn(v, batch, key) + pull / 2 * sum(jax.tree.leaves(apart))

            sent.append(
                descended(loss_fn, shared_key, params, rows, size, step_size, **options)
            )
            kept.append(
                descended(held, own_key, own[c], rows, size, step_size, **options)
            )
            sizes.append(size)
        params, own = weighted_mean(sent, sizes), kept
    return params, own


def scaffold(key, params, loss_fn, clients, num_rounds, options, *, step_size):
    """SCAFFOLD, option II, every client in every round."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    own, control = [zeros] * len(clients.mask), zeros
    for t in range(num_rounds):
        ways, changes, kept, sizes = [], [], [], []
        for c, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            index, loss_key = batches_of(own_key, size, **options)
            local = params
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                step_key = jax.random.fold_in(loss_key, step)
                grads = jax.grad(mean_loss, argnums=1)(loss_fn, local, batch, step_key)
                local = jax.tree.map(
                    lambda w, g, mine, all_: w - step_size * (g - mine + all_),
                    *(local, grads, own[c], control),
                )
            way = len(index) * step_size
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


def p_fed_me(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    step_size,
    server_step_size,
    pull,
    mix,
    own_steps,
):
    """pFedMe: own models within, copies of what is shared around them."""
    own = [params] * len(clients.mask)
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for own_key, rows, size in round_of(key, t, clients):
            index, loss_key = batches_of(own_key, size, **options)
            copy = mine = params
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                step_key = jax.random.fold_in(loss_key, step)
                mine = copy
                for k in range(own_steps):
                    grads = jax.grad(mean_loss, argnums=1)(
                        loss_fn, mine, batch, jax.random.fold_in(step_key, k)
                    )
                    mine = jax.tree.map(
                        lambda v, g, w: v - step_size * (g + pull * (v - w)),
                        *(mine, grads, copy),
                    )
                copy = jax.tree.map(
                    lambda w, v: w - server_step_size * pull * (w - v), copy, mine
                )
            sent.append(copy)
            kept.append(mine)
            sizes.append(size)
        mean = weighted_mean(sent, sizes)
        params = jax.tree.map(lambda w, m: (1 - mix) * w + mix * m, params, mean)
        own = kept
    return params, own


def per_fed_avg(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    step_size,
    adaptation_step_size,
):
    """Per-FedAvg by its equation: (I - α ∇²f) times the gradient after adapting."""
    for t in range(num_rounds):
        sent, sizes = [], []
        for own_key, rows, size in round_of(key, t, clients):
            doubled = {**options, "num_steps": 2 * options["num_steps"]}
            index, loss_key = batches_of(own_key, size, **doubled)
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
                    lambda w, g: w - adaptation_step_size * g, local, grads
                )
                graded = jax.grad(mean_loss, argnums=1)(
                    loss_fn, after, grade, keys()[1]
                )
                _, bent = jax.jvp(slope, (local,), (graded,))
                local = jax.tree.map(
                    lambda w, g, h: w - step_size * (g - adaptation_step_size * h),
                    *(local, graded, bent),
                )
            sent.append(local)
            sizes.append(size)
        params = weighted_mean(sent, sizes)
    return params, None


def round_of(key, t, clients):
    """Of every client its key, its rows and their number."""
    _, client_key = jax.random.split(jax.random.fold_in(key, t))
    for client in range(len(clients.mask)):
        rows, size = real_rows(clients, client)
        yield jax.random.fold_in(client_key, client), rows, size
