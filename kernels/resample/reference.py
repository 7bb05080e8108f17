"""Reference implementation of rebalancing in plain NumPy loops."""

import numpy as np


def same_class_neighbors(x, labels, mask, k_neighbors):
    """Returns the indices of up to k nearest rows of the same class, per row."""
    found = []
    for i in range(len(x)):
        peers = []
        for j in range(len(x)):
            if mask[i] and mask[j] and labels[i] == labels[j] and i != j:
                peers.append((np.sum((x[i] - x[j]) ** 2), j))
        found.append([j for _, j in sorted(peers)[:k_neighbors]])
    return found


def balance(rng, x, labels, mask, num_classes, samples_per_class, k_neighbors):
    """Applies SMOTE up to T rows, then under-samples to T; skips empty classes."""
    neighbors = same_class_neighbors(x, labels, mask, k_neighbors)
    rows, new_labels = [], []
    for c in range(num_classes):
        members = [i for i in range(len(x)) if mask[i] and labels[i] == c]
        if not members:
            continue
        bag = [x[i] for i in members]
        while len(bag) < samples_per_class:
            i = rng.choice(members)
            j = rng.choice(neighbors[i] or [i])
            bag.append(x[i] + rng.uniform() * (x[j] - x[i]))
        for i in rng.permutation(len(bag))[:samples_per_class]:
            rows.append(bag[i])
            new_labels.append(c)
    return np.stack(rows), np.array(new_labels)


def pair_probabilities(x, labels, mask, num_classes, samples_per_class, k_neighbors):
    """Returns ``float[n, n]``, the probability of a draw between rows i and j.

    The diagonal is the probability of a real row. A row without neighbours is its own
    SMOTE row, which adds to the diagonal.
    """
    neighbors = same_class_neighbors(x, labels, mask, k_neighbors)
    present = {labels[i] for i in range(len(x)) if mask[i]} & set(range(num_classes))
    p = np.zeros((len(x), len(x)))
    for c in present:
        members = [i for i in range(len(x)) if mask[i] and labels[i] == c]
        real = min(1.0, len(members) / samples_per_class)
        for i in members:
            p[i, i] += real / len(members) / len(present)
            for j in neighbors[i] or [i]:
                share = 1 / len(members) / len(neighbors[i] or [i])
                p[i, j] += (1 - real) * share / len(present)
    return p
