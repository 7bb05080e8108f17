"""Ross's estimator in plain loops: the specification, in NumPy and on the host."""

import math

import numpy as np

EULER = 0.57721566490153286


def digamma(n):
    """Of a whole number > 0."""
    return math.fsum(1 / i for i in range(1, n)) - EULER


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
        nearer = [j for j in kept if distance[j] < same[k - 1] or distance[j] == 0]
        terms.append(digamma(k) - digamma(len(same) + 1) - digamma(len(nearer)))
    return max(0.0, digamma(len(kept)) + math.fsum(terms) / len(kept))
