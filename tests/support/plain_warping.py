"""Dynamic time warping by a table of all prefixes, for tests to compare."""

import numpy as np


def warped(x, y, cost=abs, band=None) -> float:
    """Returns the least total cost of matching two sequences, first to last.

    Args:
      x, y: sequences of n and m numbers, or rows of them.
      cost: function of the difference of two numbers.
      band: width as in ``jaxanon.kernels.dtw``.
    """
    n, m = len(x), len(y)
    least = np.full((n + 1, m + 1), np.inf)
    least[0, 0] = 0
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            if band is not None and not (
                -max(n - m, 0) - band <= j - i <= max(m - n, 0) + band
            ):
                continue
            before = min(least[i, j], least[i, j + 1], least[i + 1, j])
            least[i + 1, j + 1] = cost(a - b) + before
    return least[n, m]
