"""Reference implementation of Atlas in plain loops, with and without noise."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.reference import batch_indices, mean_loss, real_rows


def atlas(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    learning_rate,
    mask_learning_rate,
    threshold,
    first_score,
):
    """Returns server params, and weights, masks and shared layers of each client."""
    count = len(clients.mask)
    first = np.log(first_score / (1 - first_score))
    masks = [jax.tree.map(lambda w: jnp.full_like(w, first), params)] * count
    own, shared = [params] * count, [dict.fromkeys(params, True)] * count
    for t in range(num_rounds):
        _, client_key = jax.random.split(jax.random.fold_in(key, t))
        for c in range(count):
            rows, size = real_rows(clients, c)
            index, loss_key = batch_indices(
                jax.random.fold_in(client_key, c), size, **options
            )
            mine = {m: params[m] if shared[c][m] else own[c][m] for m in params}
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                step_key = jax.random.fold_in(loss_key, step)
                # Equation 3.1 with the sigmoid, and the product with the weights.
                gate = jax.tree.map(lambda e: 1 / (1 + jnp.exp(-e)), masks[c])
                binary = jax.tree.map(lambda g: jnp.where(g < threshold, 0, 1), gate)
                weights = jax.tree.map(jnp.multiply, mine, binary)
                grads = jax.grad(mean_loss, argnums=1)(
                    loss_fn, weights, batch, step_key
                )
                # Equation 3.3: the sigmoid's derivative times that by the binary mask.
                masks[c] = jax.tree.map(
                    lambda e, g, w, d: e - mask_learning_rate * g * (1 - g) * w * d,
                    *(masks[c], gate, mine, grads),
                )
                mine = jax.tree.map(
                    lambda w, b, d: w - learning_rate * b * d, mine, binary, grads
                )
            own[c] = mine
            shared[c] = {m: _score(masks[c][m]) >= threshold for m in params}
        after = {}
        for m in params:  # Equation 3.10.
            senders = [own[c][m] for c in range(count) if shared[c][m]]
            mean = lambda *leaves: sum(leaves) / len(leaves)
            after[m] = jax.tree.map(mean, *senders) if senders else params[m]
        params = after
    return params, own, masks, shared


def _score(layer):
    gates = [1 / (1 + np.exp(-np.ravel(leaf))) for leaf in jax.tree.leaves(layer)]
    return np.concatenate(gates).mean()


LEAST_SCORE, MAX_LOGIT = 0.05, 3.0


def of_examples(params, loss_fn, clients, num_rounds, num_steps, lot_size, **given):
    """Runs rounds with per-example clipping; every row is in every batch.

    Args:
      params: dict of layers, each a dict of arrays.
      loss_fn: ``(params, batch, key) -> float[B]``, without using the key.
      clients: ``Population``.
      num_rounds, num_steps, lot_size: numbers of rounds, steps and expected rows.
      **given: ``noise_interpretation``, ``clipping``, ``scores`` ("privatised" or
        "released") and hyper-parameters, see ``atlas``.

    Returns:
      Server params, and layers, masks and scores of each client.
    """

    def round_of(rows, count, server, mine, masks, logits):
        del server
        if given["scores"] == "released":
            total = dict.fromkeys(mine, 0.0)
            for i in range(count):
                slopes = _slopes(loss_fn, mine, masks, _row(rows, i), given)
                size = np.sqrt(sum(x**2 for x in slopes.values()))
                for m in mine:
                    total[m] += slopes[m] * min(1, given["score_norm"] / size)
            for m in mine:
                moved = logits[m] - given["mask_learning_rate"] * total[m] / lot_size
                logits[m] = np.clip(moved, -MAX_LOGIT, MAX_LOGIT)
        for _ in range(num_steps):
            scores = _scores(masks, logits, given["scores"])
            norms = _norms(scores, given)
            total = jax.tree.map(np.zeros_like, mine)
            for i in range(count):
                grads = _gradient(loss_fn, mine, masks, _row(rows, i), given)
                for m in mine:
                    clipped = _clipped(grads[m], norms[m])
                    total[m] = {k: total[m][k] + clipped[k] for k in clipped}
            summed = _read(total, scores, given)
            mine, masks = _stepped(mine, masks, summed, lot_size, given)
        return mine, mine, masks, logits, _scores(masks, logits, given["scores"])

    return _rounds(params, clients, num_rounds, round_of, given)


def of_clients(params, loss_fn, clients, num_rounds, num_steps, **given):
    """Runs rounds with clipped client updates; a step uses all rows of a client.

    Args:
      params, loss_fn, clients, num_rounds, num_steps: see ``of_examples``.
      **given: see ``of_examples``; scores may also be "hidden".

    Returns:
      See ``of_examples``.
    """

    def round_of(rows, count, server, mine, masks, logits):
        kind, began = given["scores"], masks
        for _ in range(num_steps):
            total = jax.tree.map(np.zeros_like, mine)
            for i in range(count):
                grads = _gradient(loss_fn, mine, masks, _row(rows, i), given)
                total = jax.tree.map(np.add, total, grads)
            mine, moved = _stepped(mine, masks, total, count, given)
            masks = masks if kind == "privatised" else moved
        if kind == "released":
            own = _scores(masks, None, "privatised")
            wanted = {m: np.log(own[m] / (1 - own[m])) for m in own}
            way = {m: wanted[m] - logits[m] for m in own}
            size = np.sqrt(sum(x**2 for x in way.values()))
            short = min(1, given["score_norm"] / size) if size else 1
            logits = {m: logits[m] + short * way[m] for m in own}
        scores = _scores(masks, logits, kind)
        even = dict.fromkeys(scores, 1.0)
        seen = even if kind == "hidden" else scores
        norms = _norms(seen, given)
        way = jax.tree.map(np.subtract, mine, server)
        released = _read({m: _clipped(way[m], norms[m]) for m in way}, seen, given)
        if kind == "privatised":
            uphill = jax.tree.map(np.negative, released)
            _, masks = _stepped(server, began, uphill, given["learning_rate"], given)
            scores = _scores(masks, None, kind)
        sent = jax.tree.map(np.add, server, released)
        return mine, sent, masks, logits, scores

    return _rounds(params, clients, num_rounds, round_of, given)


def _rounds(params, clients, num_rounds, round_of, given):
    count = len(clients.mask)
    first = np.log(given["first_score"] / (1 - given["first_score"]))
    masks = [jax.tree.map(lambda w: np.full_like(w, first), params)] * count
    logits = [dict.fromkeys(params, first) for _ in range(count)]
    own, shared = [params] * count, [dict.fromkeys(params, True)] * count
    scores = [{} for _ in range(count)]
    for _ in range(num_rounds):
        sent = [{} for _ in range(count)]
        for c in range(count):
            rows, size = real_rows(clients, c)
            mine = {m: params[m] if shared[c][m] else own[c][m] for m in params}
            found = round_of(rows, size, params, mine, masks[c], dict(logits[c]))
            own[c], sent[c], masks[c], logits[c], scores[c] = found
            shared[c] = {m: scores[c][m] >= given["threshold"] for m in params}
        after = {}
        for m in params:
            every = given["scores"] == "hidden"
            senders = [sent[c][m] for c in range(count) if every or shared[c][m]]
            mean = lambda *leaves: sum(leaves) / len(leaves)
            after[m] = jax.tree.map(mean, *senders) if senders else params[m]
        params = after
    return params, own, masks, scores


def _row(rows, i):
    return jax.tree.map(lambda leaf: leaf[i : i + 1], rows)


def _gate(mask):
    return 1 / (1 + np.exp(-mask))


def _gradient(loss_fn, mine, masks, row, given):
    """Returns the gradient of one row's loss by the masked weights."""
    on = lambda w, e: w * (_gate(e) >= given["threshold"])
    weights = jax.tree.map(on, mine, masks)
    grads = jax.grad(lambda weights: loss_fn(weights, row, None)[0])(weights)
    return jax.tree.map(np.asarray, grads)


def _slopes(loss_fn, mine, masks, row, given):
    """Returns the derivatives of one row's loss by a common mask shift per layer."""
    grads = _gradient(loss_fn, mine, masks, row, given)
    found = {}
    for m in mine:
        found[m] = 0.0
        for k, w in mine[m].items():
            gate = _gate(masks[m][k])
            found[m] += np.sum(grads[m][k] * w * gate * (1 - gate))
    return found


def _clipped(layer, norm):
    size = np.sqrt(sum(np.sum(g**2) for g in layer.values()))
    return {k: g * min(1, norm / size) if size else g for k, g in layer.items()}


def _norms(scores, given):
    part = {m: max(x, LEAST_SCORE) for m, x in scores.items()}
    if given["clipping"] == "even":
        part = dict.fromkeys(scores, 1.0)
    root = np.sqrt(sum(x**2 for x in part.values()))
    return {m: given["clip_norm"] * part[m] / root for m in part}


def _read(total, scores, given):
    if given["noise_interpretation"] not in ("A", "B"):
        return total
    return {m: jax.tree.map(lambda g, m=m: scores[m] * g, total[m]) for m in total}


def _stepped(mine, masks, total, size, given):
    """Returns weights and masks after a step along ``total / size``."""
    gate = jax.tree.map(_gate, masks)
    weights = jax.tree.map(
        lambda w, b, d: (
            w - given["learning_rate"] * (b >= given["threshold"]) * d / size
        ),
        *(mine, gate, total),
    )
    moved = jax.tree.map(
        lambda e, b, w, d: e - given["mask_learning_rate"] * b * (1 - b) * w * d / size,
        *(masks, gate, mine, total),
    )
    return weights, moved


def _scores(masks, logits, kind):
    if kind == "released":
        return {m: _gate(x) for m, x in logits.items()}
    flat = lambda layer: np.concatenate([_gate(e).ravel() for e in layer.values()])
    return {m: flat(layer).mean() for m, layer in masks.items()}
