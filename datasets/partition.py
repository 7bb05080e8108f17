"""Dirichlet partition of windows into clients with different class distributions."""

from collections.abc import Sequence

import numpy as np

from jaxanon.datasets.recordings import Recording

MAX_DRAWS = 100  # Attempts to give every client a window on both sides.


def draw_fractions(random, classes: int, clients: int, alpha: float) -> np.ndarray:
    """Draws each client's fraction of each class, ``float64[classes, clients]``.

    Each class is an independent draw of the symmetric Dirichlet distribution. A smaller
    ``alpha`` concentrates a class on fewer clients.

    Example:
      >>> random = np.random.default_rng(0)
      >>> fractions = draw_fractions(random, classes=10, clients=4, alpha=0.5)
      >>> fractions.shape, bool(np.allclose(fractions.sum(axis=1), 1))
      ((10, 4), True)

    References:
      Hsu, Qi, Brown, arXiv 1909.06335, and Yurochkin et al., ICML 2019.
    """
    return random.dirichlet(np.full(clients, alpha), size=classes)


def deal_to_clients(
    parts: Sequence[Recording],
    attribute: str,
    *,
    clients: int,
    alpha: float,
    length: int,
    seed: int,
) -> list[Recording]:
    """Deals the windows of each recording to clients, by fractions of each class.

    A client has the same fraction of a class in every trial, so that its training and
    test windows have the same distribution.

    Args:
      parts: recordings of concatenated windows, each of one trial and one class.
      attribute: attribute with the class.
      clients: number of clients.
      alpha: concentration of the Dirichlet distribution, > 0.
      length: rows per window.
      seed: random seed of fractions and windows.

    Returns:
      Recordings of the same windows, with subjects 0 to ``clients - 1``.

    Raises:
      ValueError: if in each of 100 draws some client lacks a window in some trial.
    """
    random = np.random.default_rng(seed)
    classes = 1 + max(int(part.labels[attribute]) for part in parts)
    counts = [len(part.rows) // length for part in parts]
    for _ in range(MAX_DRAWS):
        fractions = draw_fractions(random, classes, clients, alpha)
        ends = [
            np.round(np.cumsum(fractions[part.labels[attribute]]) * count).astype(int)
            for part, count in zip(parts, counts, strict=True)
        ]
        trial_counts: dict[int, list[np.ndarray]] = {}
        for part, end in zip(parts, ends, strict=True):
            trial_counts.setdefault(part.trial, []).append(np.diff(end, prepend=0))
        if min(np.sum(each, axis=0).min() for each in trial_counts.values()) > 0:
            return _split_recordings(random, parts, counts, ends, length)
    raise ValueError(
        f"clients must all get a window, got {clients} clients with alpha {alpha} for "
        f"{sum(counts)} windows; choose a preset with fewer clients or a larger alpha."
    )


def _split_recordings(random, parts, counts, ends, length):
    """Splits each recording at random into one per client with windows in it."""
    client_parts = []
    for part, count, end in zip(parts, counts, ends, strict=True):
        windows = part.rows[: count * length].reshape(count, length, -1)
        order = np.split(random.permutation(count), end[:-1])
        for client, indices in enumerate(order):
            if len(indices):
                rows = windows[np.sort(indices)].reshape(-1, part.rows.shape[1])
                labels = part.labels | {"subject": client}
                client_parts.append(Recording(rows, part.trial, labels))
    return client_parts
