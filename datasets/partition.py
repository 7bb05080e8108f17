"""Windows of nobody in particular, dealt to clients that differ in what they hold."""

from collections.abc import Sequence

import numpy as np

from jaxanon.datasets.recordings import Recording

DRAWS = 100  # Until every client has a window on both sides.


def shares(random, classes: int, clients: int, alpha: float) -> np.ndarray:
    """Which share of each class each client has, ``float64[classes, clients]``.

    Each class is divided on its own, by a draw of the symmetric Dirichlet distribution:
    the smaller ``alpha``, the fewer clients have most of it.

    Example:
      >>> drawn = shares(np.random.default_rng(0), classes=10, clients=4, alpha=0.5)
      >>> drawn.shape, bool(np.allclose(drawn.sum(axis=1), 1))
      ((10, 4), True)

    References:
      Hsu, Qi, Brown, arXiv 1909.06335, and Yurochkin et al., ICML 2019.
    """
    return random.dirichlet(np.full(clients, alpha), size=classes)


def dealt(
    parts: Sequence[Recording],
    attribute: str,
    *,
    clients: int,
    alpha: float,
    length: int,
    seed: int,
) -> list[Recording]:
    """Gives the windows of each recording to clients, in shares of its class.

    A client has the same share of a class on either side of the trials, so what it
    tests with is like what it trains on.

    Args:
      parts: recordings of windows end to end, a trial and a class each.
      attribute: of the class.
      clients: how many.
      alpha: of ``shares``, > 0.
      length: rows of a window.
      seed: draws shares and windows.

    Returns:
      Recordings of the same windows, of the subjects 0 to ``clients - 1``.

    Raises:
      ValueError: if in 100 draws some client has always no window in some trial.
    """
    random = np.random.default_rng(seed)
    classes = 1 + max(int(part.labels[attribute]) for part in parts)
    counts = [len(part.rows) // length for part in parts]
    for _ in range(DRAWS):
        drawn = shares(random, classes, clients, alpha)
        ends = [
            np.round(np.cumsum(drawn[part.labels[attribute]]) * count).astype(int)
            for part, count in zip(parts, counts, strict=True)
        ]
        held: dict[int, list[np.ndarray]] = {}
        for part, end in zip(parts, ends, strict=True):
            held.setdefault(part.trial, []).append(np.diff(end, prepend=0))
        if min(np.sum(each, axis=0).min() for each in held.values()) > 0:
            return _given(random, parts, counts, ends, length)
    raise ValueError(
        f"{clients} clients with alpha {alpha} leave somebody without a window out of "
        f"{sum(counts)}; choose a preset of fewer clients, or of more alike ones."
    )


def _given(random, parts, counts, ends, length):
    """The recordings, each cut at random into one for every client that has some."""
    found = []
    for part, count, end in zip(parts, counts, ends, strict=True):
        windows = part.rows[: count * length].reshape(count, length, -1)
        order = np.split(random.permutation(count), end[:-1])
        for client, mine in enumerate(order):
            if len(mine):
                rows = windows[np.sort(mine)].reshape(-1, part.rows.shape[1])
                labels = part.labels | {"subject": client}
                found.append(Recording(rows, part.trial, labels))
    return found
