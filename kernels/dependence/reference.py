"""Reference implementation of both estimators in plain NumPy loops."""

import math

import numpy as np


def digamma(x):
    """Computes digamma for x >= 1, by recurrence up to the asymptotic series."""
    steps = range(max(0, 40 - math.floor(x)))
    below = math.fsum(1 / (x + i) for i in steps)
    x = x + len(steps)
    series = 1 / (2 * x) + 1 / (12 * x**2) - 1 / (120 * x**4)
    return math.log(x) - series - below


def mutual_information(x, labels, num_neighbors):
    """Returns the mutual information of the rows of ``x`` and their labels in nats."""
    labels = list(labels)
    kept = [i for i in range(len(x)) if labels.count(labels[i]) > 1]
    if not kept:
        return 0.0
    terms = []
    for i in kept:
        distance = {j: math.sqrt(np.sum((x[i] - x[j]) ** 2)) for j in kept}
        same = sorted(distance[j] for j in kept if labels[j] == labels[i] and j != i)
        k = min(num_neighbors, len(same))
        nearer = [j for j in kept if j == i or distance[j] < same[k - 1]]
        tied = [j for j in kept if j != i and distance[j] == same[k - 1]]
        # Ties: mean position over all orders.
        wanted = k - sum(d < same[k - 1] for d in same)
        place = wanted * (len(tied) + 1) / (same.count(same[k - 1]) + 1)
        m = len(nearer) + place - 1
        terms.append(digamma(k) - digamma(len(same) + 1) - digamma(m))
    return max(0.0, digamma(len(kept)) + math.fsum(terms) / len(kept))


def club_bound(y, mean, log_variance):
    """Returns the mean log-likelihood of own rows minus that of all pairs, in nats."""

    def log_likelihood(i, j):
        """Returns the log-likelihood of row j under the distribution of row i."""
        deviation = np.exp(np.asarray(log_variance[i]) / 2)
        scores = (np.asarray(y[j]) - np.asarray(mean[i])) / deviation
        return -np.sum(scores**2 / 2 + np.log(deviation) + math.log(2 * math.pi) / 2)

    rows = range(len(y))
    own = [log_likelihood(i, i) for i in rows]
    pairs = [log_likelihood(i, j) for i in rows for j in rows]
    return math.fsum(own) / len(own) - math.fsum(pairs) / len(pairs)
