"""Reference implementation of clustering algorithms in plain loops.

All clients participate in every round and are weighted by their rows.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.reference import (
    mean_loss,
    real_rows,
    round_of,
    train_client,
    weighted_mean,
)


def clusterfl(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    alpha,
    beta,
    rho,
    temperature,
    outputs_fn,
    probe,
    num_clusters,
    every,
    variant,
):
    """Runs ClusterFL with the augmented Lagrangian as the client's loss."""
    num = len(clients.mask)
    models, zeros = [params] * num, jax.tree.map(jnp.zeros_like, params)
    members = np.zeros((num, num_clusters))
    centres, duals = [zeros] * num_clusters, [zeros] * num_clusters
    for t in range(num_rounds):
        sent, sizes = [], []
        for i, (own_key, rows, size) in enumerate(round_of(key, t, clients)):

            def penalised(w, batch, key, i=i, before=tuple(models), f=members):
                total = loss_fn(w, batch, key) + alpha * inner(w, w)
                for j in range(num_clusters):
                    if variant == "official":
                        toward = plus(duals[j], centres[j], rho)
                        total += rho / 2 * f[i, j] ** 2 * inner(w, w)
                        total += f[i, j] * inner(toward, w)
                        continue
                    lack = plus(centres[j], w, -f[i, j])
                    for other in range(num):
                        if other != i:
                            lack = plus(lack, before[other], -f[other, j])
                    total += inner(duals[j], lack) + rho / 2 * inner(lack, lack)
                return total

            local = train_client(
                penalised, own_key, models[i], rows, size, learning_rate, **options
            )
            sent.append(local)
            sizes.append(size)
        models, params = sent, weighted_mean(sent, sizes)
        if t % every == 0:
            members = _members(models, outputs_fn, probe, temperature, num_clusters)
        for j in range(num_clusters):
            total = zeros
            for i in range(num):
                total = plus(total, models[i], members[i, j])
            centres[j] = jax.tree.map(
                lambda x, u: (rho * x - u) / (rho - 2 * beta), total, duals[j]
            )
            duals[j] = plus(duals[j], plus(centres[j], total, -1.0), rho)
    return params, models, members, duals


def _members(models, outputs_fn, probe, temperature, num_clusters):
    """Computes F from pairwise divergences and their principal components."""
    outputs = [jax.nn.softmax(outputs_fn(w, probe) / temperature) for w in models]
    divergence = lambda p, q: np.mean(np.sum(p * np.log(p / q), axis=1))
    apart = np.array([[divergence(p, q) for q in outputs] for p in outputs])
    vectors, lengths, _ = np.linalg.svd(apart - apart.mean(axis=0))
    members = np.zeros((len(models), num_clusters))
    for j in range(num_clusters):
        if lengths[j] < 1e-9 * lengths[0]:
            continue
        column = vectors[:, j] * np.sign(vectors[np.argmax(np.abs(vectors[:, j])), j])
        column = np.maximum(column, 0)
        members[:, j] = column / np.linalg.norm(column)
    return members


def centralized_clustering(
    key, params, loss_fn, clients, num_rounds, *, learning_rate, num_steps, k, alone
):
    """Runs centralized clustering with all rows of a cluster at every step."""
    num = len(clients.mask)
    groups, models = [0] * num, [params] * k
    each = [real_rows(clients, i) for i in range(num)]
    for t in range(num_rounds):
        group_key, train_key = jax.random.split(jax.random.fold_in(key, t))
        if t == alone:
            slopes = []
            for i, (rows, _) in enumerate(each):
                own_key = jax.random.fold_in(group_key, i)
                grads = jax.grad(mean_loss, argnums=1)(
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
            models[j] = train_client(
                loss_fn, own_key, models[j], rows, size, learning_rate, **options
            )
    return models, groups


def k_means(points, k, num_steps=20):
    """Runs Lloyd's algorithm from farthest-first initial centres."""
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


def inner(a, b):
    """Returns the inner product ``float[]`` of two trees."""
    return sum(jax.tree.leaves(jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)))


def plus(a, b, times):
    """Returns the tree ``a + times * b``."""
    return jax.tree.map(lambda x, y: x + times * y, a, b)


def feddl(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    similarity,
    layers,
):
    """Runs FedDL with nested groups from the first layer on."""
    start, models, found = params, [params] * len(clients.mask), {}
    for t in range(num_rounds):
        sent, sizes = [], []
        for i, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            local = train_client(
                loss_fn, own_key, models[i], rows, size, learning_rate, **options
            )
            sent.append(local)
            sizes.append(size)
        params = weighted_mean(sent, sizes)
        models, groups = [{**w} for w in sent], [[*range(len(sent))]]
        for name in layers:
            ways = [plus(w[name], start[name], -1.0) for w in sent]
            parts = [_parts(group, ways, similarity) for group in groups]
            groups = [part for split in parts for part in split]
            found[name] = sorted(map(sorted, groups))
            for group in groups:
                mean = weighted_mean(
                    [sent[i][name] for i in group], [sizes[i] for i in group]
                )
                for i in group:
                    models[i][name] = mean
    return params, models, found


def _parts(group, ways, similarity):
    """Returns the connected parts of a group."""
    left, parts = set(group), []
    while left:
        part = [left.pop()]
        for i in part:
            near = {j for j in left if _cosine(ways[i], ways[j]) >= similarity}
            part.extend(near)
            left -= near
        parts.append(part)
    return parts


def _cosine(a, b):
    return inner(a, b) / np.sqrt(inner(a, a) * inner(b, b))
