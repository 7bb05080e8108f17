"""Reference implementation of FedSGD-LDP, LDP-FL and DP-FedAvg in plain loops.

Samples and noise use the keys of the fast versions. Examples, weights and clients are
processed one by one.
"""

import fractions
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels
from jaxanon.federated.engine.reference import (
    batch_indices,
    mean_loss,
    real_rows,
    round_of,
    train_client,
)
from jaxanon.federated.private.dp_sgd import step_keys


def _fractions(key, num):
    """Returns exact draws in [0, 1) of 64 bits each."""
    high, low = jax.random.bits(key, (2, num), jnp.uint32)
    return [
        fractions.Fraction((int(a) << 32) | int(b), 2**64)
        for a, b in zip(high, low, strict=True)
    ]


def fedsgd_ldp(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    *,
    sampling_probability,
    lot_size,
    num_steps,
    learning_rate,
    clip_norm,
    noise_multiplier,
):
    """Returns the params after rounds of DP-SGD on all clients with equal weights."""
    for t in range(num_rounds):
        sent = []
        for c, (own_key, _, _) in enumerate(round_of(key, t, clients)):
            mine = params
            for step in range(num_steps):
                (lot_key, loss_key), noise_key = step_keys(own_key, step)
                draws = _fractions(lot_key, len(clients.mask[c]))
                total = jax.tree.map(jnp.zeros_like, params)
                for i, draw in enumerate(draws):
                    if not (clients.mask[c, i] and draw < sampling_probability):
                        continue
                    row = jax.tree.map(
                        lambda x, c=c, i=i: x[c, i : i + 1], clients.rows
                    )
                    grads = jax.grad(mean_loss, argnums=1)(loss_fn, mine, row, loss_key)
                    total = jax.tree.map(jnp.add, total, _clipped(grads, clip_norm))
                total = _noisy(noise_key, total, noise_multiplier * clip_norm)
                down = lambda w, g: w - learning_rate * g / lot_size
                mine = jax.tree.map(down, mine, total)
            sent.append(mine)
        params = _mean(sent)
    return params


def ldp_fl(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    radii,
    weight_epsilon,
    cut_mean,
):
    """Returns the params after rounds of LDP-FL."""
    cut = lambda layers: {
        name: jax.tree.map(lambda w, r=radii[name]: jnp.clip(w, -r, r), layers[name])
        for name in layers
    }
    for t in range(num_rounds):
        sent = []
        for own_key, rows, size in round_of(key, t, clients):
            step_key, send_key = jax.random.split(own_key)
            mine = cut(params)
            index, loss_key = batch_indices(step_key, size, **options)
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                at_step = jax.random.fold_in(loss_key, step)
                grads = jax.grad(mean_loss, argnums=1)(loss_fn, mine, batch, at_step)
                mine = cut(
                    jax.tree.map(lambda w, g: w - learning_rate * g, mine, grads)
                )
            message = {}
            for number, name in enumerate(sorted(mine)):
                leaves, treedef = jax.tree.flatten(mine[name])
                keys = jax.random.split(
                    jax.random.fold_in(send_key, number), len(leaves)
                )
                message[name] = treedef.unflatten(
                    _two_points(keys[i], leaf, radii[name], weight_epsilon)
                    for i, leaf in enumerate(leaves)
                )
            sent.append(message)
        params = cut(_mean(sent)) if cut_mean else _mean(sent)
    return params


def _two_points(key, weights, radius, epsilon):
    """Runs algorithm 2 of the paper, weight by weight."""
    e = math.exp(epsilon)
    far = radius * (e + 1) / (e - 1)
    draws = np.asarray(jax.random.bits(key, weights.shape, jnp.uint32)).ravel() / 2**32
    found = []
    for weight, draw in zip(np.asarray(weights).ravel(), draws, strict=True):
        up = (weight * (e - 1) + radius * (e + 1)) / (2 * radius * (e + 1))
        found.append(far if draw < up else -far)
    return jnp.array(found, weights.dtype).reshape(weights.shape)


def dp_fedavg(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    sampling_probability,
    cohort,
    count_stddev,
    learning_rate,
    server_learning_rate,
    noise_multiplier,
    clip_norm,
    quantile,
    norm_learning_rate,
):
    """Returns params and clip norm after rounds of noisy clipped sums."""
    left = (noise_multiplier**-2 - (2 * count_stddev) ** -2) ** -0.5
    for t in range(num_rounds):
        keys = jax.random.split(jax.random.fold_in(key, t), 4)
        cohort_key, client_key, noise_key, count_key = (keys[i] for i in range(4))
        draws = _fractions(cohort_key, len(clients.mask))
        total, within = jax.tree.map(jnp.zeros_like, params), 0.0
        for c, draw in enumerate(draws):
            rows, size = real_rows(clients, c)
            if not size or draw >= sampling_probability:
                continue
            own_key = jax.random.fold_in(client_key, c)
            given = params, rows, size, learning_rate
            mine = train_client(loss_fn, own_key, *given, **options)
            move = jax.tree.map(jnp.subtract, params, mine)
            total = jax.tree.map(jnp.add, total, _clipped(move, clip_norm))
            within += 0.5 if _length(move) <= clip_norm else -0.5
        total = _noisy(noise_key, total, left * clip_norm)
        down = lambda w, g: w - server_learning_rate * g / cohort
        params = jax.tree.map(down, params, total)
        noise = count_stddev * jax.random.normal(
            count_key, (1,), jnp.result_type(float)
        )
        fraction = 0.5 + (within + noise[0]) / cohort
        clip_norm = clip_norm * math.exp(-norm_learning_rate * (fraction - quantile))
    return params, clip_norm


def _length(tree):
    return math.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(tree)))


def _clipped(tree, clip_norm):
    size = _length(tree)
    short = min(1.0, clip_norm / size) if size else 1.0
    return jax.tree.map(lambda leaf: leaf * short, tree)


@jax.jit
def _noisy(key, tree, stddev):
    """Adds noise of a standard deviation, drawn by the kernel."""
    nothing = jax.tree.map(jnp.zeros_like, tree)
    bounded = kernels.BoundedSum(nothing, 1.0, jnp.ones(()))
    noise = kernels.add_noise_to_sum(key, bounded, stddev)
    return jax.tree.map(jnp.add, tree, noise)


def _mean(trees):
    return jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *trees)
