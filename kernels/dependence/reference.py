"""Ross's estimator in plain loops: the specification, in NumPy and on the host."""

import math

import numpy as np


def digamma(x):
    """Of a number >= 1, by stepping up to where the asymptotic series is exact."""
    steps = range(max(0, 40 - math.floor(x)))
    below = math.fsum(1 / (x + i) for i in steps)
    x = x + len(steps)
    series = 1 / (2 * x) + 1 / (12 * x**2) - 1 / (120 * x**4)
    return math.log(x) - series - below


def mutual_information(x, labels, num_neighbours):
    """Nats between the rows of ``x``, ``float[n, d]``, and their labels."""
    labels = list(labels)
    kept = [i for i in range(len(x)) if labels.count(labels[i]) > 1]
    if not kept:
        return 0.0
    terms = []
    for i in kept:
        distance = {j: math.sqrt(np.sum((x[i] - x[j]) ** 2)) for j in kept}
        same = sorted(distance[j] for j in kept if labels[j] == labels[i] and j != i)
        k = min(num_neighbours, len(same))
        nearer = [j for j in kept if j == i or distance[j] < same[k - 1]]
        tied = [j for j in kept if j != i and distance[j] == same[k - 1]]
        # Of those equally far any may come first: the mean place of the one wanted.
        wanted = k - sum(d < same[k - 1] for d in same)
        place = wanted * (len(tied) + 1) / (same.count(same[k - 1]) + 1)
        m = len(nearer) + place - 1
        terms.append(digamma(k) - digamma(len(same) + 1) - digamma(m))
    return max(0.0, digamma(len(kept)) + math.fsum(terms) / len(kept))
