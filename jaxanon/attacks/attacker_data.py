"""Who gets which windows: the attacker, his validation, the score."""

import jax
import numpy as np

EVERY = 10  # One block in this many is for validation.

MOST = 50  # Blocks per class.


def blocks(labels) -> np.ndarray:
    """Validation rows of an attacker or judge, ``bool[N]``.

    Each class's rows, in the order given (time), are cut into up to 50 blocks and
    every tenth block is for validation: neighbouring windows overlap, so a validation
    of scattered windows would praise memory. A class of one row has none.

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
    """ValueError for labels beyond the classes that there are.

    Args:
      labels: ``int[N]``.
      num_classes: number of classes.
      attribute: what the labels are of, for the message.

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
    """The windows whose labels the attacker knows: a share of every class.

    Args:
      key: typed PRNG key.
      labels: ``int[N]``.
      share: of each class, in (0, 1].
      attribute: what the labels are of, for the message.
      at_least: windows of each class that he knows where the share is fewer.
      side: which windows they are, for the message.

    Returns:
      ``int[n]``, ascending.

    Raises:
      ValueError: if the share is out of range, or leaves a class fewer than two
        windows, one to train on and one to validate with; a class of one window is
        refused at any share.

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
    """How many windows of each class ``pick`` draws; ValueError as it raises.

    Example:
      >>> check_counts(np.repeat([0, 3], [100, 50]), 0.2, "side")
      {0: 20, 3: 10}
    """
    counts = {}
    for label, own in zip(*np.unique(labels, return_counts=True), strict=True):
        count = min(int(own), max(round(share * own), at_least))
        if own == 1:
            raise ValueError(
                f"{attribute} class {label} has one {side} window, and the attacker "
                "needs at least 2 of each class; leave out or merge that class."
            )
        if count < 2:
            raise ValueError(
                f"share {share} of the {own} {side} windows of {attribute} class "
                f"{label} is {count}, and the attacker needs at least 2 of each class; "
                "raise share, or leave out or merge that class."
            )
        counts[int(label)] = count
    return counts


def halves(*labels, overlap=None) -> tuple[np.ndarray, np.ndarray]:
    """First and last part in time of the windows of each group of equal labels.

    The attacker knows the first half of a group; he is scored on its last 40 %, less
    the windows that share samples with any that he knows, of that group or another of
    the same person's. A group of fewer than 3 windows, or with nothing to score, is
    left out.

    Args:
      *labels: one or more ``int[N]``, such as subject and activity; the first says
        whose windows they are, which are in order of time for each person.
      overlap: ``(earlier, later) -> bool``, whether two windows, by number, share
        samples; ``None``: none do.

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
        scored = apart(known, scored, np.asarray(labels[0]), overlap)
    return known, scored


def apart(known, scored, owner, overlap) -> np.ndarray:
    """Of ``scored`` windows those that share samples with no known one.

    Args:
      known: ``int[n]`` ascending, numbers of windows.
      scored: ``int[m]`` ascending, others.
      owner: ``int[N]``, whose each window is; in order of time for each of them.
      overlap: ``(earlier, later) -> bool``, whether two windows share samples.

    Returns:
      ``int[k]`` ascending.

    Example:
      >>> near = lambda earlier, later: later < earlier + 2
      >>> apart(np.array([3]), np.array([1, 2, 4, 5]), np.zeros(6, int), near)
      array([1, 5])
    """
    kept = np.ones(len(scored), bool)
    for person in np.unique(owner[scored]):
        own = known[owner[known] == person]
        for place in np.flatnonzero(owner[scored] == person):
            at, following = scored[place], np.searchsorted(own, scored[place])
            # The nearest on either side share most.
            before = own[following - 1 : following] if following else own[:0]
            shared = [overlap(one, at) for one in before]
            shared += [overlap(at, one) for one in own[following : following + 1]]
            kept[place] = not any(shared)
    return scored[kept]
