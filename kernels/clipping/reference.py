"""Reference implementation of clipping, noise and adaptive norms in NumPy loops.

A row is a dict of arrays. ``groups`` maps leaves to labels; ``clip_norms`` and
``stddevs`` map labels to numbers.
"""

import math

import numpy as np


def group_norms(row, groups):
    """Returns the L2 norm of the leaves with each label."""
    squares = dict.fromkeys(groups.values(), 0.0)
    for name, leaf in row.items():
        for entry in np.ravel(leaf).astype(np.float64):
            squares[groups[name]] += entry * entry
    return {label: math.sqrt(square) for label, square in squares.items()}


def clip_row(row, groups, clip_norms):
    """Multiplies each group by min(1, C / norm); non-finite groups become zero."""
    norms, clipped = group_norms(row, groups), {}
    for name, leaf in row.items():
        norm, clip_norm = norms[groups[name]], clip_norms[groups[name]]
        if not math.isfinite(norm):
            clipped[name] = np.zeros_like(leaf)
        elif norm <= clip_norm:
            clipped[name] = leaf
        else:
            clipped[name] = leaf * (clip_norm / norm)
    return clipped


def clipped_sum(rows, groups, clip_norms, weights):
    """Clips and sums rows, as algorithm 1 of Abadi et al. before the noise."""
    total = {name: np.zeros(np.shape(leaf)) for name, leaf in rows[0].items()}
    for row, weight in zip(rows, weights, strict=True):
        clipped = clip_row(row, groups, clip_norms)
        for name in total:
            if weight > 0:
                total[name] = total[name] + weight * clipped[name].astype(np.float64)
    return total


def add_noise(rng, tree, groups, stddevs):
    """Adds an independent draw to every entry of every leaf."""
    noisy = {}
    for name, leaf in tree.items():
        stddev = stddevs[groups[name]]
        noisy[name] = leaf + stddev * rng.normal(size=np.shape(leaf))
    return noisy


def noisy_sum_of_clients(rng, rows, groups, clip_norms, stddevs, weights):
    """Sums the updates that each client clipped and noised."""
    total = {name: np.zeros(np.shape(leaf)) for name, leaf in rows[0].items()}
    for row, weight in zip(rows, weights, strict=True):
        sent = add_noise(rng, clip_row(row, groups, clip_norms), groups, stddevs)
        for name in total:
            total[name] = total[name] + weight * sent[name]
    return total


def joint_noise_multiplier(clip_norms, stddevs):
    """Computes (sum_m (C_m / sigma_m)^2)^(-1/2)."""
    total = 0.0
    for label, clip_norm in clip_norms.items():
        total += (clip_norm / stddevs[label]) ** 2
    return total**-0.5


def adapt_clip_norms(
    rng, rows, groups, clip_norms, count_stddev, quantile, learning_rate, expected_rows
):
    """Adapts norms by section 2.1 of Andrew et al.: noisy counts, geometric steps."""
    adapted = {}
    for label, clip_norm in clip_norms.items():
        count = 0.0
        for row in rows:
            within = group_norms(row, groups)[label] <= clip_norm
            count += (1.0 if within else 0.0) - 0.5
        count += count_stddev * rng.normal()
        fraction = count / expected_rows + 0.5
        adapted[label] = clip_norm * math.exp(-learning_rate * (fraction - quantile))
    return adapted
