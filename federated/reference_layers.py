"""FedMask and FedDL as loops: for readers, and for the tests.

Every client takes part in every round.
"""

import jax
import numpy as np

from jaxanon.federated.reference import descended, weighted_mean
from jaxanon.federated.reference_clusters import inner, plus
from jaxanon.federated.reference_personal import round_of


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


def fed_dl(
    key, params, loss_fn, clients, num_rounds, options, *, step_size, similarity, layers
):
    """FedDL: from the first layer on, groups within groups."""
    start, models, found = params, [params] * len(clients.mask), {}
    for t in range(num_rounds):
        sent, sizes = [], []
        for i, (own_key, rows, size) in enumerate(round_of(key, t, clients)):
            local = descended(
                loss_fn, own_key, models[i], rows, size, step_size, **options
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
    """A group's parts, grown one client at a time."""
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
