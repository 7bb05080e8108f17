"""Algorithms that group clients, as loops: for readers, and for the tests.

Every client takes part in every round; what is shared is weighted by its rows.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.reference import _weighted_mean, descended
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


def _inner(a, b):
    return sum(jax.tree.leaves(jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)))


def _add(a, b, times):
    return jax.tree.map(lambda x, y: x + times * y, a, b)
