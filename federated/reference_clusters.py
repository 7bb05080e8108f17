"""Algorithms that group clients, as loops: for readers, and for the tests.

Every client takes part in every round; what is shared is weighted by its rows.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.reference import (
    _mean_loss,
    _real_rows,
    _weighted_mean,
    descended,
)
from jaxanon.federated.reference_personal import _round


def cluster_fl(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    step_size,
    alpha,
    beta,
    rho,
    temperature,
    outputs_fn,
    probe,
    num_clusters,
    every,
    form,
):
    """ClusterFL: the augmented Lagrangian as a client's loss, and duals of clusters."""
    num = len(clients.mask)
    models, zeros = [params] * num, jax.tree.map(jnp.zeros_like, params)
    members = np.zeros((num, num_clusters))
    centres, duals = [zeros] * num_clusters, [zeros] * num_clusters
    for t in range(num_rounds):
        sent, sizes = [], []
        for i, (own_key, rows, size) in enumerate(_round(key, t, clients)):

            def penalised(w, batch, key, i=i, before=tuple(models), f=members):
                total = loss_fn(w, batch, key) + alpha * _inner(w, w)
                for j in range(num_clusters):
                    if form == "released":
                        toward = _add(duals[j], centres[j], rho)
                        total += rho / 2 * f[i, j] ** 2 * _inner(w, w)
                        total += f[i, j] * _inner(toward, w)
                        continue
                    lack = _add(centres[j], w, -f[i, j])
                    for other in range(num):
                        if other != i:
                            lack = _add(lack, before[other], -f[other, j])
                    total += _inner(duals[j], lack) + rho / 2 * _inner(lack, lack)
                return total

            local = descended(
                penalised, own_key, models[i], rows, size, step_size, **options
            )
            sent.append(local)
            sizes.append(size)
        models, params = sent, _weighted_mean(sent, sizes)
        if t % every == 0:
            members = _members(models, outputs_fn, probe, temperature, num_clusters)
        for j in range(num_clusters):
            total = zeros
            for i in range(num):
                total = _add(total, models[i], members[i, j])
            centres[j] = jax.tree.map(
                lambda x, u: (rho * x - u) / (rho - 2 * beta), total, duals[j]
            )
            duals[j] = _add(duals[j], _add(centres[j], total, -1.0), rho)
    return params, models, members, duals


def _members(models, outputs_fn, probe, temperature, num_clusters):
    """F: of every two clients' outputs the divergence, then principal components."""
    told = [jax.nn.softmax(outputs_fn(w, probe) / temperature) for w in models]
    apart = np.array(
        [[np.mean(np.sum(p * np.log(p / q), axis=1)) for q in told] for p in told]
    )
    vectors, lengths, _ = np.linalg.svd(apart - apart.mean(axis=0))
    members = np.zeros((len(models), num_clusters))
    for j in range(num_clusters):
        if lengths[j] < 1e-9 * lengths[0]:
            continue
        column = vectors[:, j] * np.sign(vectors[np.argmax(np.abs(vectors[:, j])), j])
        column = np.maximum(column, 0)
        members[:, j] = column / np.linalg.norm(column)
    return members


def clustered(
    key, params, loss_fn, clients, num_rounds, *, step_size, num_steps, k, alone
):
    """Centralized clustering, all rows of a group at every step."""
    num = len(clients.mask)
    groups, models = [0] * num, [params] * k
    each = [_real_rows(clients, i) for i in range(num)]
    for t in range(num_rounds):
        group_key, train_key = jax.random.split(jax.random.fold_in(key, t))
        if t == alone:
            slopes = []
            for i, (rows, _) in enumerate(each):
                own_key = jax.random.fold_in(group_key, i)
                grads = jax.grad(_mean_loss, argnums=1)(
                    loss_fn, models[0], rows, own_key
                )
                flat = np.concatenate([np.ravel(x) for x in jax.tree.leaves(grads)])
                slopes.append(flat / np.linalg.norm(flat))
            groups, models = k_means(np.array(slopes), k), [models[0]] * k
        for j in range(k):
            own = [rows for i, (rows, _) in enumerate(each) if groups[i] == j]
            if not own:
                continue
            rows = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *own)
            size = len(jax.tree.leaves(rows)[0])
            own_key = jax.random.fold_in(train_key, j)
            options = {"num_steps": num_steps, "batch_size": size}
            models[j] = descended(
                loss_fn, own_key, models[j], rows, size, step_size, **options
            )
    return models, groups


def fed_mask(
    key, params, loss_fn, clients, num_rounds, options, *, step_size, certainty, names
):
    """FedMask, one weight at a time where masks meet."""
    num = len(clients.mask)
    logit = lambda p: np.log(p / (1 - p))
    every = lambda value: {
        n: jax.tree.map(lambda w: np.full(w.shape, value), params[n]) for n in names
    }
    masks, retained = [every(logit(certainty))] * num, [every(True)] * num
    for t in range(num_rounds):
        bits = []
        for i, (own_key, rows, size) in enumerate(_round(key, t, clients)):

            def masked(e, batch, key, keep=retained[i]):
                gate = jax.tree.map(_straight_through, e)
                own = {
                    n: jax.tree.map(
                        lambda w, g, k: w * g * k, params[n], gate[n], keep[n]
                    )
                    for n in names
                }
                return loss_fn(params | own, batch, key)

            masks[i] = descended(
                masked, own_key, masks[i], rows, size, step_size, **options
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
                    share = np.mean([leaves[1][i][place][index] for i in who])
                    merged = certainty * share + (1 - certainty) * (1 - share)
                    for i in who:
                        if leaves[1][i][place][index] != (share >= 0.5):
                            leaves[0][i][place][index] = logit(merged)
    return masks, retained


def _straight_through(e):
    """1 from 0 on, with the sigmoid's slope."""
    soft = jax.nn.sigmoid(e)
    return soft + jax.lax.stop_gradient((e >= 0) - soft)


def k_means(points, k, num_steps=20):
    """Lloyd's steps from points that are each the furthest from those before."""
    far = lambda centre: np.sum((points - centre) ** 2, axis=1)
    centres = [points[np.argmax(far(points.mean(axis=0)))]]
    while len(centres) < k:
        centres.append(points[np.argmax(np.min([far(c) for c in centres], axis=0))])
    nearest = lambda: np.argmin([far(c) for c in centres], axis=0)
    for _ in range(num_steps):
        groups = nearest()
        centres = [
            points[groups == j].mean(axis=0) if np.any(groups == j) else np.inf
            for j in range(k)
        ]
    return nearest().tolist()


def _inner(a, b):
    return sum(jax.tree.leaves(jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)))


def _add(a, b, times):
    return jax.tree.map(lambda x, y: x + times * y, a, b)
