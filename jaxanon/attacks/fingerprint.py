"""DySan's model choices as a fingerprint of a user."""

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
    """Computes how often p of a user's model choices fit no other user.

    An anonymizer that picks one of several models per window reveals a sequence of
    choices to an attacker that can distinguish the models. For each user, p of the
    choices are drawn ``draws`` times. A draw is unique if no other user's choices
    contain it.

    Args:
      key: typed PRNG key.
      choices: per user ``int[windows]`` >= 0, the chosen models in order of time, at
        least one.
      sizes: values of p, each at least 1.
      draws: number of draws per user and size.
      ordered: whether to draw p consecutive choices and search for the same sequence. A
        user with fewer windows shows all of them. Otherwise, as in the paper, draw p
        different models of the user's, in any order. Users with fewer models show all.

    Returns:
      ``float64[users, sizes]``, the fraction of unique draws.

    Raises:
      ValueError: if there are fewer than two users, a user has no choices, a choice is
        negative, or sizes or ``draws`` are below 1.
    Example:
      The first two users share model 0, and no other user has the models 0 and 1.

      >>> choices = [[0, 1, 0], [0, 0, 0], [2, 3, 2]]
      >>> uniqueness(jax.random.key(0), choices, sizes=[2])[:, 0]
      array([1., 0., 1.])

    References:
      Boutet et al., DySAN, AsiaCCS 2021, appendix E and figure 13; de Montjoye et al.,
      Unique in the crowd, Scientific Reports 2013.
    """
    choices = [_checked(user, models) for user, models in enumerate(choices)]
    if len(choices) < 2:
        raise ValueError(f"choices must be of at least 2 users, got {len(choices)}.")
    # Models may have arbitrary large ids, so they are renumbered.
    _, numbers = np.unique(np.concatenate(choices), return_inverse=True)
    choices = np.split(numbers, np.cumsum([len(models) for models in choices])[:-1])
    if draws < 1 or min(sizes, default=0) < 1:
        raise ValueError(
            f"sizes and draws must be at least 1, got {tuple(sizes)} and {draws}."
        )
    generator = np.random.default_rng(int(jax.random.bits(key, dtype=np.uint32)))
    measure = _as_sequences if ordered else _as_sets
    return np.array([measure(generator, choices, size, draws) for size in sizes]).T


def _checked(user, models):
    x = np.asarray(models)
    if x.ndim != 1 or not len(x) or x.dtype.kind not in "iu" or x.min() < 0:
        raise ValueError(
            f"choices of user {user} must be int[windows] >= 0, at least one of them, "
            f"got {x.dtype}{list(x.shape)}."
        )
    return x.astype(np.uint64)


def _as_sets(generator, choices, size, draws):
    num_models = 1 + max(models.max() for models in choices)
    used = np.zeros((len(choices), num_models), bool)
    for user, models in enumerate(choices):
        used[user, models] = True
    fractions = []
    for user, mine in enumerate(used):
        # The first few of a random order of the user's models.
        order = np.argsort(np.where(mine, generator.random((draws, num_models)), 2.0))
        shown = order[:, : min(size, mine.sum())]
        others = np.delete(used, user, axis=0)
        fractions.append(np.mean(~others[:, shown].all(-1).any(0)))
    return fractions


def _as_sequences(generator, choices, size, draws):
    fractions = []
    for user, mine in enumerate(choices):
        length = min(size, len(mine))
        starts = generator.integers(len(mine) - length + 1, size=draws)
        others = set()
        for other, theirs in enumerate(choices):
            if other != user:
                others |= _subsequences(theirs, length)
        unique = [tuple(mine[at : at + length]) not in others for at in starts]
        fractions.append(np.mean(unique))
    return fractions


def _subsequences(models, length):
    """Returns all runs of ``length`` consecutive choices."""
    starts = range(len(models) - length + 1)
    return {tuple(models[at : at + length]) for at in starts}
