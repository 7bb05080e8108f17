"""Division of windows among an attacker's training, validation and test."""

import jax
import numpy as np

EVERY = 10  # Every tenth block is for validation.

MOST = 50  # Maximum blocks per class.


def blocks(labels) -> np.ndarray:
    """Returns the validation rows of a classifier, ``bool[N]``.

    The rows of each class, in order of time, are divided into up to 50 blocks, and
    every tenth block is for validation. Blocks are used because neighboring windows
    overlap, so scattered validation windows would reward memorization. A class with one
    row has no validation row.

    Example:
      >>> blocks(np.zeros(12, int)).astype(int)
      array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    """
    labels = np.asarray(labels)
    valid = np.zeros(labels.shape, bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        every = min(EVERY, len(rows))
        count = min(MOST, len(rows) // every * every)
        block = np.arange(len(rows)) * count // len(rows)
        if every > 1:
            valid[rows] = block % every == every - 1
    return valid


def check_labels(labels, num_classes: int, attribute: str = "labels") -> None:
    """Raises ValueError if labels are outside ``[0, num_classes)``.

    Args:
      labels: ``int[N]``.
      num_classes: number of classes.
      attribute: name of the attribute, for the message.

    Example:
      >>> check_labels(np.array([0, 2]), 2, "gender")
      Traceback (most recent call last):
      ValueError: gender must be in [0, 2), got 0 to 2.
    """
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(
            f"{attribute} must be in [0, {num_classes}), got {labels.min()} to "
            f"{labels.max()}."
        )


def pick(
    key,
    labels,
    share: float,
    attribute: str = "labels",
    *,
    at_least: int = 0,
    side: str = "training",
) -> np.ndarray:
    """Draws the windows whose labels the attacker knows: a share of each class.

    Args:
      key: typed PRNG key.
      labels: ``int[N]``.
      share: fraction of each class, in (0, 1].
      attribute, side: names of the attribute and of the kind of windows, for messages.
      at_least: minimum number of windows of each class. It overrides the share.

    Returns:
      ``int[n]``, ascending.

    Raises:
      ValueError: if the share is out of range, or leaves a class fewer than two
        windows, one for training and one for validation. A class of one window raises
        it at any share.

    Example:
      >>> labels = np.repeat([0, 1], [100, 50])
      >>> np.bincount(labels[pick(jax.random.key(0), labels, 0.2)])
      array([20, 10])
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}.")
    labels = np.asarray(labels)
    counts = check_counts(labels, share, attribute, at_least=at_least, side=side)
    seed = int(jax.random.bits(key, dtype=np.uint32))
    generator = np.random.default_rng(seed)
    chosen = [
        generator.choice(np.flatnonzero(labels == label), count, replace=False)
        for label, count in counts.items()
    ]
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)


def check_counts(
    labels, share: float, attribute: str, *, at_least: int = 0, side: str = "training"
) -> dict:
    """Returns the number of windows of each class that ``pick`` draws, or raises.

    Example:
      >>> check_counts(np.repeat([0, 3], [100, 50]), 0.2, "side")
      {0: 20, 3: 10}
    """
    counts = {}
    for label, size in zip(*np.unique(labels, return_counts=True), strict=True):
        count = min(int(size), max(round(share * size), at_least))
        if size == 1:
            raise ValueError(
                f"{attribute} class {label} has one {side} window, and the attacker "
                "needs at least 2 of each class; leave out or merge that class."
            )
        if count < 2:
            raise ValueError(
                f"share {share} of the {size} {side} windows of {attribute} class "
                f"{label} is {count}, and the attacker needs at least 2 of each class; "
                "raise share, or leave out or merge that class."
            )
        counts[int(label)] = count
    return counts


def halves(*labels, overlap=None) -> tuple[np.ndarray, np.ndarray]:
    """Returns an early and a late part of each group of windows with equal labels.

    The attacker knows the first half of a group and is tested on its last 40 %. Test
    windows that share samples with a known window of the same person are dropped, as
    are groups with fewer than 3 windows or without test windows.

    Args:
      *labels: one or more ``int[N]``, such as subject and activity. The first
        identifies the person; each person's windows are in order of time.
      overlap: ``(earlier, later) -> bool``, whether two windows, given by index, share
        samples. None means that windows do not overlap.

    Returns:
      ``(known, scored)``, each ``int[n]`` ascending.

    Example:
      >>> halves(np.zeros(10, int))
      (array([0, 1, 2, 3, 4]), array([6, 7, 8, 9]))
      >>> halves(np.zeros(10, int), overlap=lambda earlier, later: later < earlier + 4)
      (array([0, 1, 2, 3, 4]), array([8, 9]))
    """
    known, scored = [], []
    groups = np.unique(np.stack(labels, 1), axis=0, return_inverse=True)[1]
    for group in range(groups.max(initial=-1) + 1):
        rows = np.flatnonzero(groups.reshape(-1) == group)
        if len(rows) < 3:
            continue
        first, last = rows[: len(rows) // 2], rows[-int(0.4 * len(rows)) or -1 :]
        while overlap is not None and len(last) and overlap(first[-1], last[0]):
            last = last[1:]
        if len(last):
            known.append(first)
            scored.append(last)
    if not known:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    known, scored = (np.sort(np.concatenate(rows)) for rows in (known, scored))
    if overlap is not None:
        scored = drop_overlapping(known, scored, np.asarray(labels[0]), overlap)
    return known, scored


def drop_overlapping(known, scored, owner, overlap) -> np.ndarray:
    """Drops the ``scored`` windows that share samples with a known window.

    Args:
      known: ``int[n]`` ascending, indices of windows.
      scored: ``int[m]`` ascending, indices of other windows.
      owner: ``int[N]``, the person of each window. Each person's windows are in order
        of time.
      overlap: ``(earlier, later) -> bool``, whether two windows share samples.

    Returns:
      ``int[k]`` ascending.

    Example:
      >>> near = lambda earlier, later: later < earlier + 2
      >>> drop_overlapping(
      ...     np.array([3]), np.array([1, 2, 4, 5]), np.zeros(6, int), near)
      array([1, 5])
    """
    kept = np.ones(len(scored), bool)
    for person in np.unique(owner[scored]):
        theirs = known[owner[known] == person]
        for index in np.flatnonzero(owner[scored] == person):
            window = scored[index]
            following = np.searchsorted(theirs, window)
            # The nearest windows on either side overlap most.
            before = theirs[following - 1 : following] if following else theirs[:0]
            shared = [overlap(one, window) for one in before]
            shared += [
                overlap(window, one) for one in theirs[following : following + 1]
            ]
            kept[index] = not any(shared)
    return scored[kept]
