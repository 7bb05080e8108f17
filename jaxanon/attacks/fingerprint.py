"""DySan's model choices as a fingerprint: how many of them single out a user."""

from collections.abc import Sequence

import jax
import numpy as np

SIZES = (1, 2, 3, 4, 5)


def uniqueness(
    key,
    choices: Sequence,
    *,
    sizes: Sequence[int] = SIZES,
    draws: int = 100,
    ordered: bool = False,
) -> np.ndarray:
    """How often p of a user's choices fit nobody else.

    An anonymizer that picks one of several models for every window shows, to whoever
    can tell the models apart, a sequence of choices. For each user ``draws`` times p of
    them are drawn; the draw is unique if no other user's choices contain it.

    Args:
      key: typed PRNG key.
      choices: per user ``int[windows]`` >= 0, the models chosen, in order of time, at
        least one each.
      sizes: the p to draw, each at least 1.
      draws: how many per user and size.
      ordered: draw p choices in a row, to be found in the same order in a row; a user
        with fewer windows shows all of them. Else p different models out of those that
        the user ever had chosen, in any order, as the paper does; a user of fewer
        models shows all of them.

    Returns:
      ``float64[users, sizes]``, the share of draws that are unique.

    Raises:
      ValueError: if there are not two users, one has no choices, a choice is negative,
        there is no size, or one or ``draws`` is below 1.

    Example:
      The first two users share model 0, and nobody else has the models 0 and 1.

      >>> choices = [[0, 1, 0], [0, 0, 0], [2, 3, 2]]
      >>> uniqueness(jax.random.key(0), choices, sizes=[2])[:, 0]
      array([1., 0., 1.])

    References:
      Boutet et al., DySAN, AsiaCCS 2021, appendix E and figure 13; de Montjoye et al.,
      Unique in the crowd, Scientific Reports 2013.
    """
    choices = [_checked(user, own) for user, own in enumerate(choices)]
    if len(choices) < 2:
        raise ValueError(f"choices must be of at least 2 users, got {len(choices)}.")
    # Numbered anew, for whoever calls his models by large numbers.
    _, numbers = np.unique(np.concatenate(choices), return_inverse=True)
    choices = np.split(numbers, np.cumsum([len(own) for own in choices])[:-1])
    if draws < 1 or min(sizes, default=0) < 1:
        raise ValueError(
            f"sizes and draws must be at least 1, got {tuple(sizes)} and {draws}."
        )
    generator = np.random.default_rng(int(jax.random.bits(key, dtype=np.uint32)))
    measure = _in_a_row if ordered else _as_sets
    return np.array([measure(generator, choices, size, draws) for size in sizes]).T


def _checked(user, own):
    own = np.asarray(own)
    if own.ndim != 1 or not len(own) or own.dtype.kind not in "iu" or own.min() < 0:
        raise ValueError(
            f"choices of user {user} must be int[windows] >= 0, at least one of them, "
            f"got {own.dtype}{list(own.shape)}."
        )
    return own.astype(np.uint64)


def _as_sets(generator, choices, size, draws):
    models = 1 + max(own.max() for own in choices)
    used = np.zeros((len(choices), models), bool)
    for user, own in enumerate(choices):
        used[user, own] = True
    found = []
    for user, own in enumerate(used):
        # The first few of a random order of the models that the user has.
        order = np.argsort(np.where(own, generator.random((draws, models)), 2.0))
        shown = order[:, : min(size, own.sum())]
        others = np.delete(used, user, axis=0)
        found.append(np.mean(~others[:, shown].all(-1).any(0)))
    return found


def _in_a_row(generator, choices, size, draws):
    found = []
    for user, own in enumerate(choices):
        length = min(size, len(own))
        starts = generator.integers(len(own) - length + 1, size=draws)
        others = set()
        for other, theirs in enumerate(choices):
            if other != user:
                others |= _pieces(theirs, length)
        unique = [tuple(own[at : at + length]) not in others for at in starts]
        found.append(np.mean(unique))
    return found


def _pieces(own, length):
    """All that stands ``length`` in a row."""
    return {tuple(own[at : at + length]) for at in range(len(own) - length + 1)}
