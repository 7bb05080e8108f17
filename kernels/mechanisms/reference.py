"""Reference implementation of mechanisms and their probabilities in NumPy loops."""

import itertools
import math

import numpy as np


def uniform_below(rng, bound):
    """Draws a uniform integer in [0, bound)."""
    return int(rng.integers(bound))


def bernoulli_exp(rng, numerator, denominator):
    """Draws True with probability exp(-numerator / denominator), ratio in [0, 1]."""
    k = 1
    while uniform_below(rng, denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(rng, scale):
    """Draws an integer with P(z) ∝ exp(-|z| / scale) by exact rejection.

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
    """Returns the probability of the integer z."""
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(z) / scale)


def grid_laplace(rng, value, grid):
    """Clamps, rounds, adds integer noise and clamps again, number by number."""
    released = []
    for x in np.ravel(value):
        steps = min(max(float(x) / grid.step, -grid.clamp), grid.clamp)
        steps = round(steps) + discrete_laplace(rng, grid.scale)
        released.append(min(max(steps, -grid.limit), grid.limit) * grid.step)
    return np.reshape(released, np.shape(value))


def randomized_response(rng, label, num_classes, epsilon):
    """Reports one label truthfully or as one of the other classes."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + num_classes - 1)
    if rng.uniform() < truth:
        return label
    return [c for c in range(num_classes) if c != label][rng.integers(num_classes - 1)]


def randomized_response_matrix(num_classes, epsilon):
    """Returns ``float[k, k]``, the probability of reporting j for the true label i."""
    matrix = np.ones((num_classes, num_classes))
    np.fill_diagonal(matrix, math.exp(epsilon))
    return matrix / (math.exp(epsilon) + num_classes - 1)


def exponential_probabilities(scores, scale):
    """Returns P(i) ∝ exp(s_i / scale)."""
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    return np.array(weights) / sum(weights)


def permute_and_flip_probabilities(scores, scale):
    """Returns the probabilities of permute-and-flip by enumerating all orders.

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
    """Returns P(score i with Laplace noise is largest) by numerical integration."""
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
    """Draws a vector with density ∝ exp(-‖z‖ / scale) in norm ``l2`` or ``linf``."""
    if norm == "l2":
        length = sum(rng.exponential(scale) for _ in range(size))
        z = rng.normal(size=size)
        return length * z / math.sqrt(sum(x * x for x in z))
    length = sum(rng.exponential(scale) for _ in range(size + 1))
    return np.array([length * rng.uniform(-1, 1) for _ in range(size)])


def priv_unit_direction(rng, unit, height, probability):
    """Draws PrivUnit's direction for a unit vector by rejection.

    Bhowmick et al. 2018, algorithm 1.
    """
    within = rng.uniform() < probability
    while True:
        z = rng.normal(size=len(unit))
        v = z / math.sqrt(sum(x * x for x in z))
        if (sum(v * unit) >= height) == within:
            return v
