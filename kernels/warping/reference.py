"""Reference implementation of dynamic time warping for one pair in NumPy loops."""

import math

import numpy as np


def sample_cost(a, b, local_cost):
    """Returns the cost of matching two samples ``float[channels]``."""
    if local_cost == "absolute":
        return sum(abs(p - q) for p, q in zip(a, b, strict=True))
    square = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
    return math.sqrt(square) if local_cost == "euclidean" else square


def in_band(i, j, n, m, band):
    """Returns whether cell (i, j) of an n by m table is within the band."""
    if band is None:
        return True
    return -max(n - m, 0) - band <= j - i <= max(m - n, 0) + band


def table(x, y, *, band=None, local_cost="squared_euclidean"):
    """Returns ``float[n + 1, m + 1]``, the minimum cost of each pair of prefixes."""
    n, m = len(x), len(y)
    least = np.full((n + 1, m + 1), math.inf)
    least[0, 0] = 0
    for i in range(n):
        for j in range(m):
            if in_band(i, j, n, m, band):
                before = min(least[i, j], least[i, j + 1], least[i + 1, j])
                least[i + 1, j + 1] = sample_cost(x[i], y[j], local_cost) + before
    return least


def dtw(x, y, *, band=None, local_cost="squared_euclidean"):
    """Computes the distance of ``float[n, channels]`` and ``float[m, channels]``."""
    least = table(x, y, band=band, local_cost=local_cost)[-1, -1]
    return math.sqrt(least) if local_cost == "squared_euclidean" else least


def dtw_path(x, y, *, band=None, local_cost="squared_euclidean"):
    """Returns the cells of the best path from first to last."""
    least = table(x, y, band=band, local_cost=local_cost)
    i, j = len(x), len(y)
    path = []
    while (i, j) != (0, 0):
        path.append((i - 1, j - 1))
        i, j = min((i - 1, j - 1), (i - 1, j), (i, j - 1), key=lambda at: least[at])
    return path[::-1]
