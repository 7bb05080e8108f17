"""Membership inference against a generator: whether it was trained on a window."""

from typing import NamedTuple

import jax
import numpy as np

from jaxanon import metrics
from jaxanon.attacks.membership import RATES


class MembersTold(NamedTuple):
    """How well training windows are told from others."""

    auc: float  # 0.5 tells nothing
    interval: tuple[float, float]  # that has it, were windows independent
    true_positives: dict[float, float]  # by rate of false positives


def tell_members(members, others, *, confidence: float = 0.95) -> MembersTold:
    """How well evidence tells windows that a generator was trained on from others.

    Args:
      members: ``float[N]``, evidence of training windows, at least two; the larger, the
        more they seem to be. Any rising function of it does the same.
      others: ``float[M]``, of windows of the same kind that it was not trained on.
      confidence: of the interval.

    Raises:
      ValueError: for fewer than two on a side, evidence that is NaN or of another rank,
        or another confidence.

    Example:
      >>> found = tell_members([3.0, 1.0], [2.0, 0.0])
      >>> found.auc, found.true_positives[0.1]
      (0.75, 0.5)
    """
    sides = [np.asarray(side, np.float64) for side in (members, others)]
    for name, side in zip(("members", "others"), sides, strict=True):
        if side.ndim != 1 or len(side) < 2:
            raise ValueError(
                f"{name} must be float[N], a number for each of two windows or more, "
                f"got shape {side.shape}."
            )
    own = np.repeat([True, False], [len(side) for side in sides])
    evidence = np.concatenate(sides)
    interval = metrics.auc_interval(own, evidence, confidence)
    area = metrics.auc(own.astype(int), np.stack([-evidence, evidence], 1))[1]
    rates = {rate: metrics.true_positive_rate(own, evidence, rate) for rate in RATES}
    return MembersTold(float(area), interval, rates)


def nearness(windows, synthetic) -> np.ndarray:
    """Evidence of whoever sees what a generator makes, and nothing else.

    Args:
      windows: ``float[N, time, channels]``, standardised, in question.
      synthetic: ``float[M, time, channels]``, what it made, of the same classes.

    Returns:
      ``float64[N]``, less the distance to the synthetic window that is nearest.

    Raises:
      ValueError: as ``metrics.nearest_distances``.

    Example:
      >>> nearness(np.full((1, 4, 1), 2.0), np.array([0.0, 1.5]).reshape(2, 1, 1) *
      ...          np.ones((2, 4, 1)))
      array([-0.5])

    References:
      Chen, Yu, Zhang, Fritz, GAN-Leaks, CCS 2020, section 4.2 (full black-box).
    """
    return -metrics.nearest_distances(windows, synthetic)


def match(key, members, others, most: int) -> tuple[np.ndarray, np.ndarray]:
    """As many training windows as others of each kind, so that nothing else differs.

    Who they are of, and what they show, tells training windows from others where there
    are more of some in training.

    Args:
      key: typed PRNG key.
      members: ``int[N, columns]``, what kinds training windows are of, such as their
        subject and their class.
      others: ``int[M, columns]``, likewise.
      most: windows of either side, >= 1.

    Returns:
      Rows of ``members`` and of ``others``, ``int[k]`` each and ``k`` at most ``most``,
      of one kind at each place.

    Raises:
      ValueError: if no kind is on both sides, or ``most`` is below 1.

    Example:
      >>> own, other = match(
      ...     jax.random.key(0), np.array([[0], [0], [1]]), np.array([[2], [0]]), 9)
      >>> own.shape, other
      ((1,), array([1]))
    """
    if most < 1:
        raise ValueError(f"most must be >= 1, got {most!r}.")
    generator = np.random.default_rng(int(jax.random.bits(key, dtype=np.uint32)))
    both = np.concatenate([np.asarray(members), np.asarray(others)])
    _, kinds = np.unique(both, axis=0, return_inverse=True)
    sides = np.split(kinds.reshape(-1), [len(members)])
    pairs = []
    for kind in np.unique(kinds):
        rows = [generator.permutation(np.flatnonzero(side == kind)) for side in sides]
        number = min(map(len, rows))
        pairs.append(np.stack([own[:number] for own in rows], 1))
    found = np.concatenate(pairs)
    if not len(found):
        raise ValueError(
            "no window is of the same person and class as a training window, and "
            "others differ from those in more than that a generator has not seen them; "
            "split by time, not by person."
        )
    own, other = generator.permutation(found)[:most].T
    return own, other
