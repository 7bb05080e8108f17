"""Reference implementation of personalised algorithms in plain loops.

All clients participate in every round.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.reference import (
    batch_indices,
    mean_loss,
    round_of,
    train_client,
    weighted_mean,
)


def fedmask(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    certainty,
    names,
):
    """Runs FedMask, aggregating masks weight by weight."""
    num = len(clients.mask)
    logit = lambda p: np.log(p / (1 - p))
    every = lambda value: {
        n: jax.tree.map(lambda w: np.full(w.shape, value), params[n]) for n in names
    }
    masks, retained = [every(logit(certainty))] * num, [every(True)] * num
    for t in range(num_rounds):
        bits = []
        for i, (own_key, rows, size) in enumerate(round_of(key, t, clients)):

            def masked(e, batch, key, keep=retained[i]):
                gate = jax.tree.map(_straight_through, e)
                own = {
                    n: jax.tree.map(
                        lambda w, g, k: w * g * k, params[n], gate[n], keep[n]
                    )
                    for n in names
                }
                return loss_fn(params | own, batch, key)

            masks[i] = train_client(
                masked, own_key, masks[i], rows, size, learning_rate, **options
            )
            bits.append(jax.tree.map(lambda e: np.asarray(e) >= 0, masks[i]))
        if t == 0:
            retained = bits
        masks = [jax.tree.map(np.array, e) for e in masks]
        leaves = [list(map(jax.tree.leaves, x)) for x in (masks, bits, retained)]
        for place in range(len(leaves[0][0])):
            for index in np.ndindex(leaves[0][0][place].shape):
                who = [i for i in range(num) if leaves[2][i][place][index]]
                if len(who) > 1:
                    mean = np.mean([leaves[1][i][place][index] for i in who])
                    merged = certainty * mean + (1 - certainty) * (1 - mean)
                    for i in who:
                        if leaves[1][i][place][index] != (mean >= 0.5):
                            leaves[0][i][place][index] = logit(merged)
    return masks, retained


def _straight_through(e):
    """Returns 1 for e >= 0, else 0, with the derivative of the sigmoid."""
    soft = jax.nn.sigmoid(e)
    return soft + jax.lax.stop_gradient((e >= 0) - soft)


def fedper(key, params, loss_fn, clients, num_rounds, options, *, learning_rate, names):
    """Runs FedPer with personal layers ``names``."""
    own = [{n: params[n] for n in names}] * len(clients.mask)
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for c, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            local = train_client(
                loss_fn, own_key, params | own[c], rows, size, learning_rate, **options
            )
            kept.append({n: local[n] for n in names})
            sent.append({n: local[n] for n in local if n not in names})
            sizes.append(size)
        params, own = weighted_mean(sent, sizes), kept
    return params, own


def fedrep(key, params, loss_fn, clients, num_rounds, options, *, learning_rate, names):
    """Runs FedRep, training personal layers first."""
    own = [{n: params[n] for n in names}] * len(clients.mask)
    params = {n: params[n] for n in params if n not in names}
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for c, (key_of_client, rows, size) in enumerate(round_of(key, t, clients)):
            own_key, shared_key = jax.random.split(key_of_client)
            shared = params
            of_own = lambda o, batch, key, s=shared: loss_fn(s | o, batch, key)
            mine = train_client(
                of_own, own_key, own[c], rows, size, learning_rate, **options
            )
            of_shared = lambda s, batch, key, o=mine: loss_fn(s | o, batch, key)
            sent.append(
                train_client(
                    of_shared, shared_key, shared, rows, size, learning_rate, **options
                )
            )
            kept.append(mine)
            sizes.append(size)
        params, own = weighted_mean(sent, sizes), kept
    return params, own


def ditto(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    proximal_weight,
):
    """Runs Ditto with personal models near the server's model."""
    own = [params] * len(clients.mask)
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for c, (key_of_client, rows, size) in enumerate(round_of(key, t, clients)):
            shared_key, own_key = jax.random.split(key_of_client)
            start = params

            def held(v, batch, key, start=start):
                apart = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), v, start)
                return loss_fn(v, batch, key) + proximal_weight / 2 * sum(
                    jax.tree.leaves(apart)
                )

            sent.append(
                train_client(
                    loss_fn, shared_key, params, rows, size, learning_rate, **options
                )
            )
            kept.append(
                train_client(
                    held, own_key, own[c], rows, size, learning_rate, **options
                )
            )
            sizes.append(size)
        params, own = weighted_mean(sent, sizes), kept
    return params, own


def pfedme(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    server_learning_rate,
    proximal_weight,
    mix,
    personal_steps,
):
    """Runs pFedMe with inner steps on personal models and outer steps on copies."""
    own = [params] * len(clients.mask)
    for t in range(num_rounds):
        sent, kept, sizes = [], [], []
        for own_key, rows, size in round_of(key, t, clients):
            index, loss_key = batch_indices(own_key, size, **options)
            copy = mine = params
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                step_key = jax.random.fold_in(loss_key, step)
                mine = copy
                for k in range(personal_steps):
                    grads = jax.grad(mean_loss, argnums=1)(
                        loss_fn, mine, batch, jax.random.fold_in(step_key, k)
                    )
                    mine = jax.tree.map(
                        lambda v, g, w: (
                            v - learning_rate * (g + proximal_weight * (v - w))
                        ),
                        *(mine, grads, copy),
                    )
                copy = jax.tree.map(
                    lambda w, v: w - server_learning_rate * proximal_weight * (w - v),
                    copy,
                    mine,
                )
            sent.append(copy)
            kept.append(mine)
            sizes.append(size)
        mean = weighted_mean(sent, sizes)
        params = jax.tree.map(lambda w, m: (1 - mix) * w + mix * m, params, mean)
        own = kept
    return params, own
