"""Dynamic time warping as the recurrence is written: one pair, two loops, NumPy."""

import math

import numpy as np


def sample_cost(a, b, local_cost):
    """How far two samples, ``float[channels]``, are apart."""
    if local_cost == "absolute":
        return sum(abs(p - q) for p, q in zip(a, b, strict=True))
    square = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
    return math.sqrt(square) if local_cost == "euclidean" else square


def in_band(i, j, n, m, band):
    """Whether cell (i, j) of an n by m table is within ``band`` of the diagonals."""
    if band is None:
        return True
    return -max(n - m, 0) - band <= j - i <= max(m - n, 0) + band


def table(x, y, *, band=None, local_cost="squared_euclidean"):
    """``float[n + 1, m + 1]``: least cost of every pair of beginnings."""
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
    """Distance of ``x``, ``float[n, channels]``, and ``y``, ``float[m, channels]``."""
    least = table(x, y, band=band, local_cost=local_cost)[-1, -1]
    return math.sqrt(least) if local_cost == "squared_euclidean" else least


def dtw_path(x, y, *, band=None, local_cost="squared_euclidean"):
    """The cells of the best path, first to last."""
    least = table(x, y, band=band, local_cost=local_cost)
    i, j = len(x), len(y)
    path = []
    while (i, j) != (0, 0):
        path.append((i - 1, j - 1))
        i, j = min((i - 1, j - 1), (i - 1, j), (i, j - 1), key=lambda at: least[at])
    return path[::-1]
