"""Reference implementation of aggregation in plain loops."""

import math

import numpy as np


def layer_mean(updates, weights, sent, previous):
    """Averages each layer over the clients that sent it; else keeps the old value."""
    result = {}
    for layer, leaves in updates.items():
        total, weight = np.zeros(leaves.shape[1:], np.float64), 0.0
        for client, leaf in enumerate(leaves):
            if sent[layer][client]:
                total = total + float(weights[client]) * leaf
                weight += float(weights[client])
        result[layer] = total / weight if weight else previous[layer]
    return result


def trimmed_mean(updates, num_trimmed, mask):
    """Averages each coordinate without its ``num_trimmed`` extreme values per end."""

    def one(values):
        kept = sorted(values[mask])[num_trimmed : mask.sum() - num_trimmed]
        return sum(kept) / len(kept)

    return {name: np.apply_along_axis(one, 0, leaf) for name, leaf in updates.items()}


def coordinate_median(updates, mask):
    """Returns the median of each coordinate."""

    def one(values):
        values = sorted(values[mask])
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2

    return {name: np.apply_along_axis(one, 0, leaf) for name, leaf in updates.items()}


def krum_scores(updates, num_byzantine, mask):
    """Sums squared distances to the nearest ``n - num_byzantine - 2`` other clients."""
    rows = np.concatenate([leaf.reshape(len(mask), -1) for leaf in updates.values()], 1)
    here = [int(client) for client in np.flatnonzero(mask)]
    scores = np.full(len(mask), math.inf)
    for client in here:
        others = [
            float(np.sum(np.square(rows[client].astype(float) - rows[other])))
            for other in here
            if other != client
        ]
        scores[client] = sum(sorted(others)[: len(here) - num_byzantine - 2])
    return scores


def fixed_point(x, uniform, resolution):
    """Rounds to integers, up with the probability of the fractional part."""
    steps = [float(value) / resolution for value in x]
    whole = [math.floor(step) for step in steps]
    up = [u < step - low for u, step, low in zip(uniform, steps, whole, strict=True)]
    return [low + int(one) for low, one in zip(whole, up, strict=True)]
