"""Reference implementations of FedOpt, FedNova, FedDyn, MIME and others in loops.

Each follows the published pseudo-code line by line, with all clients in every round.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.local import visiting_order
from jaxanon.federated.engine.reference import (
    batch_indices,
    mean_loss,
    real_rows,
    round_of,
    train_client,
    weighted_mean,
)


def _grad(loss_fn, params, batch, key):
    return jax.grad(mean_loss, argnums=1)(loss_fn, params, batch, key)


def _steps(index, loss_key, rows):
    """Yields the batch and the key of each step."""
    for step, chosen in enumerate(index):
        batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
        yield batch, jax.random.fold_in(loss_key, step)


def fedopt(
    rule,
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    server_learning_rate,
    b1,
    b2,
    tau,
):
    """Runs algorithm 2 of Reddi et al. with clients weighted by rows."""
    m = jax.tree.map(jnp.zeros_like, params)
    v = jax.tree.map(lambda w: jnp.full_like(w, tau**2), params)
    for t in range(num_rounds):
        deltas, sizes = [], []
        for own_key, rows, size in round_of(key, t, clients):
            x = train_client(
                loss_fn, own_key, params, rows, size, learning_rate, **options
            )
            deltas.append(jax.tree.map(jnp.subtract, x, params))
            sizes.append(size)
        delta = weighted_mean(deltas, sizes)
        m = jax.tree.map(lambda m, d: b1 * m + (1 - b1) * d, m, delta)
        if rule == "adagrad":
            v = jax.tree.map(lambda v, d: v + d**2, v, delta)
        elif rule == "yogi":
            v = jax.tree.map(
                lambda v, d: v - (1 - b2) * d**2 * jnp.sign(v - d**2), v, delta
            )
        else:
            v = jax.tree.map(lambda v, d: b2 * v + (1 - b2) * d**2, v, delta)
        params = jax.tree.map(
            lambda x, m, v: x + server_learning_rate * m / (jnp.sqrt(v) + tau),
            *(params, m, v),
        )
    return params


def fednova(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    *,
    learning_rate,
    momentum,
    num_epochs,
    batch_size,
):
    """Runs FedNova with local momentum, a_i of section 4.2, weighted by rows."""
    for t in range(num_rounds):
        normalised, lengths, sizes = [], [], []
        for own_key, rows, size in round_of(key, t, clients):
            order_key, loss_key = jax.random.split(own_key)
            order = visiting_order(order_key, jnp.ones(size, bool), shuffle=True)
            visits, b = [*order.tolist()] * num_epochs, min(batch_size, size)
            index = [jnp.array(visits[i : i + b]) for i in range(0, len(visits), b)]
            x, u = params, jax.tree.map(jnp.zeros_like, params)
            for batch, step_key in _steps(index, loss_key, rows):
                g = _grad(loss_fn, x, batch, step_key)
                u = jax.tree.map(lambda u, g: momentum * u + g, u, g)
                x = jax.tree.map(lambda x, u: x - learning_rate * u, x, u)
            tau = len(index)
            a = [(1 - momentum ** (tau - k)) / (1 - momentum) for k in range(tau)]
            norm = sum(a)  # ‖a_i‖₁
            normalised.append(
                jax.tree.map(lambda x, y: (x - y) / (learning_rate * norm), params, x)  # noqa: B023
            )
            lengths.append(norm)
            sizes.append(size)
        effective = sum(n * a for n, a in zip(sizes, lengths, strict=True)) / sum(sizes)
        d = weighted_mean(normalised, sizes)
        params = jax.tree.map(
            lambda x, d, e=effective: x - e * learning_rate * d, params, d
        )
    return params


def feddyn(key, params, loss_fn, clients, num_rounds, options, *, learning_rate, alpha):
    """Runs algorithm 1 of Acar et al. with SGD as the client's minimiser."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    m = len(clients.mask)
    gradients, h = [zeros] * m, zeros
    for t in range(num_rounds):
        models = []
        for k, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            index, loss_key = batch_indices(own_key, size, **options)
            theta = params
            for batch, step_key in _steps(index, loss_key, rows):
                g = _grad(loss_fn, theta, batch, step_key)
                theta = jax.tree.map(
                    lambda x, g, gk, x0: (
                        x - learning_rate * (g - gk + alpha * (x - x0))
                    ),
                    *(theta, g, gradients[k], params),
                )
            gradients[k] = jax.tree.map(
                lambda gk, x, x0: gk - alpha * (x - x0), gradients[k], theta, params
            )
            models.append(theta)
        for theta in models:
            h = jax.tree.map(
                lambda h, x, x0: h - alpha / m * (x - x0), h, theta, params
            )
        mean = weighted_mean(models, [1] * m)
        params = jax.tree.map(lambda x, h: x - h / alpha, mean, h)
    return params, gradients, h


def mime(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    momentum,
    lite,
):
    """Runs algorithms 1 (Mime) and 2 (MimeLite) of Karimireddy et al. with SGDm."""
    s = jax.tree.map(jnp.zeros_like, params)
    for t in range(num_rounds):
        full = [
            _grad(loss_fn, params, rows, own_key)
            for own_key, rows, _ in round_of(key, t, clients)
        ]
        c, models = weighted_mean(full, [1] * len(full)), []
        for own_key, rows, size in round_of(key, t, clients):
            index, loss_key = batch_indices(own_key, size, **options)
            y = params
            for batch, step_key in _steps(index, loss_key, rows):
                g = _grad(loss_fn, y, batch, step_key)
                if not lite:
                    g0 = _grad(loss_fn, params, batch, jax.random.clone(step_key))
                    g = jax.tree.map(lambda g, g0, c: g - g0 + c, g, g0, c)
                u = jax.tree.map(lambda g, s: (1 - momentum) * g + momentum * s, g, s)
                y = jax.tree.map(lambda y, u: y - learning_rate * u, y, u)
            models.append(y)
        s = jax.tree.map(lambda s, c: (1 - momentum) * c + momentum * s, s, c)
        params = weighted_mean(models, [1] * len(models))
    return params, s


def fedbuff(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    server_learning_rate,
    staleness,
):
    """Runs algorithm 1 of Nguyen et al.; ``staleness[t][k]`` of client k's change."""
    versions = [params]  # x^t, for every server step t
    for t in range(num_rounds):
        buffer = []
        for k, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            _, train_key = jax.random.split(own_key)
            y = begun = versions[max(0, t - staleness[t][k])]
            y = train_client(
                loss_fn, train_key, y, rows, size, learning_rate, **options
            )
            weight = 1 / np.sqrt(1 + staleness[t][k])
            buffer.append(jax.tree.map(lambda a, b, w=weight: w * (a - b), begun, y))
        mean = weighted_mean(buffer, [1] * len(buffer))
        params = jax.tree.map(lambda x, d: x - server_learning_rate * d, params, mean)
        versions.append(params)
    return params


def hierarchical(
    key, params, loss_fn, clients, num_rounds, options, *, learning_rate, groups, every
):
    """Runs algorithm 1 of Liu et al., HierFAVG, with κ2 = ``every``."""
    edges = dict.fromkeys(groups, params)
    for t in range(num_rounds):
        trained, sizes = {g: [] for g in edges}, {g: [] for g in edges}
        for i, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            begun = edges[groups[i]]
            w = train_client(
                loss_fn, own_key, begun, rows, size, learning_rate, **options
            )
            trained[groups[i]].append(w)
            sizes[groups[i]].append(size)
        edges = {g: weighted_mean(trained[g], sizes[g]) for g in edges}
        if (t + 1) % every == 0:
            totals = [sum(sizes[g]) for g in edges]
            params = weighted_mean([*edges.values()], totals)
            edges = dict.fromkeys(edges, params)
    return params, edges


def robust(key, params, loss_fn, clients, num_rounds, options, *, learning_rate, fn):
    """Runs FedAvg whose changes are aggregated by ``fn`` of a list of NumPy arrays."""
    for t in range(num_rounds):
        moves = []
        for own_key, rows, size in round_of(key, t, clients):
            x = train_client(
                loss_fn, own_key, params, rows, size, learning_rate, **options
            )
            moves.append(jax.tree.map(jnp.subtract, params, x))
        move = fn(moves)
        params = jax.tree.map(jnp.subtract, params, move)
    return params


def compressed(
    key, params, loss_fn, clients, num_rounds, options, *, learning_rate, kind, level
):
    """Runs FedAvg with QSGD, top-k or sign compression, number by number."""
    for t in range(num_rounds):
        moves, sizes = [], []
        for own_key, rows, size in round_of(key, t, clients):
            train_key, send_key = jax.random.split(own_key)
            x = train_client(
                loss_fn, train_key, params, rows, size, learning_rate, **options
            )
            move = jax.tree.map(jnp.subtract, params, x)
            flat, as_tree = jax.flatten_util.ravel_pytree(move)
            values = np.asarray(flat)
            if kind == "qsgd":
                norm = np.sqrt(sum(v * v for v in values))
                draws = jax.random.uniform(send_key, flat.shape, flat.dtype)
                sent = []
                for v, u in zip(values, np.asarray(draws), strict=True):
                    place = abs(v) / norm * level
                    low = int(place)
                    sent.append(norm * np.sign(v) * (low + (u < place - low)) / level)
            elif kind == "top_k":
                ranked = sorted(range(len(values)), key=lambda i: -abs(values[i]))
                sent = [v if i in ranked[:level] else 0.0 for i, v in enumerate(values)]
            else:
                scale = sum(abs(v) for v in values) / len(values)
                sent = [scale if v >= 0 else -scale for v in values]
            moves.append(as_tree(jnp.asarray(sent, flat.dtype)))
            sizes.append(size)
        params = jax.tree.map(jnp.subtract, params, weighted_mean(moves, sizes))
    return params


def fedbn(key, params, loss_fn, clients, num_rounds, options, *, learning_rate, norms):
    """Runs algorithm 1 of Li et al.: layers outside ``norms`` are averaged."""
    models = [params] * len(clients.mask)
    for t in range(num_rounds):
        sizes = []
        for c, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            models[c] = train_client(
                loss_fn, own_key, models[c], rows, size, learning_rate, **options
            )
            sizes.append(size)
        for name in params:
            if name not in norms:
                mean = weighted_mean([model[name] for model in models], sizes)
                models = [model | {name: mean} for model in models]
    return models


def dp_ftrl(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    clip_norm,
    order_fn,
    cohort_size,
    noise_fn,
):
    """Runs algorithm 1 of Kairouz et al.: the start plus noisy prefix sums.

    ``order_fn(pass) -> list`` is the order of clients, and ``noise_fn(pass, level,
    number) -> tree`` the noise of a node of the tree, numbered from 1 in its level.
    """
    start, period = params, len(clients.mask) // cohort_size
    done = prefix = jax.tree.map(jnp.zeros_like, params)  # done: of complete passes
    for t in range(num_rounds):
        turn, place = divmod(t, period)
        if place == 0:
            prefix = jax.tree.map(jnp.zeros_like, params)
        for client in order_fn(turn)[place * cohort_size : (place + 1) * cohort_size]:
            rows, size = real_rows(clients, client)
            own_key = jax.random.fold_in(jax.random.fold_in(key, t), client)
            x = train_client(
                loss_fn, own_key, params, rows, size, learning_rate, **options
            )
            move = jax.tree.map(jnp.subtract, params, x)
            norm = jnp.sqrt(sum(jnp.sum(d**2) for d in jax.tree.leaves(move)))
            scale = jnp.minimum(1, clip_norm / norm)
            prefix = jax.tree.map(lambda p, d, s=scale: p + s * d, prefix, move)
        noisy, left = prefix, place + 1
        for level in range(period.bit_length()):
            if left >> level & 1:
                noise = noise_fn(turn, level, left >> level)
                noisy = jax.tree.map(jnp.add, noisy, noise)
        params = jax.tree.map(
            lambda w, d, n: w - (d + n) / cohort_size, start, done, noisy
        )
        if place + 1 == period:
            done = jax.tree.map(jnp.add, done, noisy)
    return params
