"""Rebalancing in plain loops: the specification, in NumPy and on the host."""

import numpy as np


def same_class_neighbours(x, labels, mask, num_neighbours):
    """For each row the indices of its nearest peers, a list that may be short."""
    found = []
    for i in range(len(x)):
        peers = []
        for j in range(len(x)):
            if mask[i] and mask[j] and labels[i] == labels[j] and i != j:
                peers.append((np.sum((x[i] - x[j]) ** 2), j))
        found.append([j for _, j in sorted(peers)[:num_neighbours]])
    return found


def balance(rng, x, labels, mask, num_classes, per_class, num_neighbours):
    """SMOTE to max(count, T), then under-sampling to T; absent classes are left out."""
    neighbours = same_class_neighbours(x, labels, mask, num_neighbours)
    rows, new_labels = [], []
    for c in range(num_classes):
        members = [i for i in range(len(x)) if mask[i] and labels[i] == c]
        if not members:
            continue
        bag = [x[i] for i in members]
        while len(bag) < per_class:
            i = rng.choice(members)
            j = rng.choice(neighbours[i] or [i])
            bag.append(x[i] + rng.uniform() * (x[j] - x[i]))
        for i in rng.permutation(len(bag))[:per_class]:
            rows.append(bag[i])
            new_labels.append(c)
    return np.stack(rows), np.array(new_labels)


def pair_probabilities(x, labels, mask, num_classes, per_class, num_neighbours):
    """``float[n, n]``: how likely a draw lies between rows i and j; i = j is real.

    A row without neighbours is its own SMOTE row, so both add up on the diagonal.
    """
    neighbours = same_class_neighbours(x, labels, mask, num_neighbours)
    present = {labels[i] for i in range(len(x)) if mask[i]} & set(range(num_classes))
    p = np.zeros((len(x), len(x)))
    for c in present:
        members = [i for i in range(len(x)) if mask[i] and labels[i] == c]
        real = min(1.0, len(members) / per_class)
        for i in members:
            p[i, i] += real / len(members) / len(present)
            for j in neighbours[i] or [i]:
                share = 1 / len(members) / len(neighbours[i] or [i])
                p[i, j] += (1 - real) * share / len(present)
    return p
