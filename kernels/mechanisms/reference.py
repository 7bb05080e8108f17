"""Mechanisms in plain loops, and the probabilities of what they choose; NumPy only."""

import itertools
import math

import numpy as np


def uniform_below(rng, bound):
    """An integer of [0, bound), each equally likely."""
    return int(rng.integers(bound))


def bernoulli_exp(rng, numerator, denominator):
    """True with probability exp(-numerator / denominator), a ratio in [0, 1]."""
    k = 1
    while uniform_below(rng, denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(rng, scale):
    """One integer with P(z) ∝ exp(-|z| / scale), by rejection on exact integers.

    Canonne, Kamath and Steinke, The Discrete Gaussian, NeurIPS 2020, algorithm 2.
    """
    while True:
        low = uniform_below(rng, scale)
        if not bernoulli_exp(rng, low, scale):
            continue
        high = 0
        while bernoulli_exp(rng, 1, 1):
            high += 1
        size, negative = low + scale * high, uniform_below(rng, 2)
        if not (negative and size == 0):
            return -size if negative else size


def discrete_laplace_probability(z, scale):
    """The probability of the integer z."""
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(z) / scale)


def grid_laplace(rng, value, grid):
    """Clamps, rounds, adds an integer, clamps again: one number at a time."""
    released = []
    for x in np.ravel(value):
        steps = min(max(float(x) / grid.step, -grid.clamp), grid.clamp)
        steps = round(steps) + discrete_laplace(rng, grid.scale)
        released.append(min(max(steps, -grid.limit), grid.limit) * grid.step)
    return np.reshape(released, np.shape(value))


def randomized_response(rng, label, num_classes, epsilon):
    """One label: a coin decides between the truth and one of the other classes."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + num_classes - 1)
    if rng.uniform() < truth:
        return label
    return [c for c in range(num_classes) if c != label][rng.integers(num_classes - 1)]


def randomized_response_matrix(num_classes, epsilon):
    """``float[k, k]``: the probability of reporting column j for truth i."""
    matrix = np.ones((num_classes, num_classes))
    np.fill_diagonal(matrix, math.exp(epsilon))
    return matrix / (math.exp(epsilon) + num_classes - 1)


def exponential_probabilities(scores, scale):
    """P(i) ∝ exp(s_i / scale)."""
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    return np.array(weights) / sum(weights)


def permute_and_flip_probabilities(scores, scale):
    """Over all orders: the first whose coin exp((s_i - max) / scale) shows heads.

    McKenna and Sheldon, NeurIPS 2020, algorithm 1.
    """
    heads = [math.exp((score - max(scores)) / scale) for score in scores]
    chosen = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1 / len(orders)
        for i in order:
            chosen[i] += reached * heads[i]
            reached *= 1 - heads[i]
    return chosen


def laplace_max_probabilities(scores, scale):
    """P(score i with Laplace noise is the largest), by a sum over a fine mesh."""
    mesh = np.linspace(min(scores) - 30 * scale, max(scores) + 30 * scale, 200_001)
    density = lambda z: np.exp(-np.abs(z) / scale) / (2 * scale)
    below = lambda z: np.where(
        z < 0, np.exp(np.minimum(z, 0) / scale) / 2, 1 - np.exp(-np.abs(z) / scale) / 2
    )
    chosen = []
    for i, score in enumerate(scores):
        others = [below(mesh - other) for j, other in enumerate(scores) if j != i]
        integrand = density(mesh - score) * np.prod(others, axis=0)
        chosen.append(np.trapezoid(integrand, mesh))
    return np.array(chosen)


def norm_noise(rng, size, scale, norm):
    """One vector of density ∝ exp(-‖z‖ / scale), in the norm ``l2`` or ``linf``."""
    if norm == "l2":
        length = sum(rng.exponential(scale) for _ in range(size))
        z = rng.normal(size=size)
        return length * z / math.sqrt(sum(x * x for x in z))
    length = sum(rng.exponential(scale) for _ in range(size + 1))
    return np.array([length * rng.uniform(-1, 1) for _ in range(size)])


def priv_unit_direction(rng, unit, height, probability):
    """PrivUnit's direction for a unit vector, by drawing until one is where it should.

    Bhowmick et al. 2018, algorithm 1.
    """
    within = rng.uniform() < probability
    while True:
        z = rng.normal(size=len(unit))
        v = z / math.sqrt(sum(x * x for x in z))
        if (sum(v * unit) >= height) == within:
            return v
