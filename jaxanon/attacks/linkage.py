"""Linkage: who windows come from, where their subjects were never in training."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.attacks import attackers, shares


class Linked(NamedTuple):
    """Evidence for the subjects of some of the test windows."""

    rows: np.ndarray  # int[n], the test windows that were scored
    evidence: np.ndarray  # float32[n, num_subjects]


def link_strangers(
    keys,
    attacker: str,
    safe_tests: Sequence,
    subjects,
    activities,
    num_subjects: int,
    *,
    overlap: Callable | None = None,
) -> list[Linked]:
    """Links anonymized windows of new subjects to earlier ones of the same people.

    The attacker has seen who sent the first half, in time, of every (subject,
    activity) among the anonymized test windows, and names the sender of the last
    40 %. Where test subjects did occur in training, ``reidentify`` is the protocol.
    Attackers that are networks train for all anonymizers in one program.

    Args:
      keys: typed PRNG keys, one per anonymizer.
      attacker: a name of ``attackers.ATTACKERS``.
      safe_tests: per anonymizer ``float[M, time, channels]``, the test windows,
        anonymized, standardised, in order of time within each (subject, activity).
      subjects: ``int[M]``.
      activities: ``int[M]``, the public attribute.
      num_subjects: number of subjects that there may be.
      overlap: which windows share samples, as ``shares.halves`` takes it; those that
        share some with known ones are not scored.

    Returns:
      ``Linked`` for each anonymizer.

    Raises:
      ValueError: for an unknown attacker, and if fewer than two subjects have three
        windows of one activity.

    Example:
      >>> import jax
      >>> subjects, activities = np.repeat([0, 1], 10), np.zeros(20, int)
      >>> windows = np.float32(subjects)[:, None, None] * np.ones((1, 4, 1))
      >>> keys = jax.random.key(0)[None]
      >>> found, = link_strangers(keys, "tree", [windows], subjects, activities, 2)
      >>> found.rows, found.evidence.argmax(1)
      (array([ 6,  7,  8,  9, 16, 17, 18, 19]), array([0, 0, 0, 0, 1, 1, 1, 1]))

    References:
      None; this protocol is our own.
    """
    kind = attackers.get(attacker)
    subjects = np.asarray(subjects)
    known, scored = shares.halves(subjects, activities, overlap=overlap)
    if len(np.unique(subjects[known])) < 2:
        raise ValueError(
            "linkage needs at least 2 test subjects with 3 windows of one activity, "
            f"got {len(np.unique(subjects[known]))}; test on more people."
        )
    count = len(safe_tests)
    seen = [safe[known] for safe in safe_tests]
    reads = kind.fit_sets(keys, seen, [subjects[known]] * count, [num_subjects] * count)
    pairs = zip(reads, safe_tests, strict=True)
    return [Linked(scored, read(safe[scored])) for read, safe in pairs]


def profile_streams(evidence, rows, subjects) -> np.ndarray:
    """What each subject's windows look like to an attacker, on average.

    Args:
      evidence: ``float[M, n]``, what the attacker says of every window: its likeness to
        each of the people whom he knows, or any features of it.
      rows: ``int[m]``, the windows of the streams.
      subjects: ``int[M]``.

    Returns:
      ``float64[streams, n]``, in ascending order of the subjects among ``rows``.

    Example:
      >>> evidence = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
      >>> profile_streams(evidence, [0, 1, 2], np.array([4, 4, 2]))
      array([[5., 5.],
             [1., 2.]])

    References:
      None; to match streams by such profiles is our own.
    """
    own = np.asarray(subjects)[rows]
    seen = np.asarray(evidence, np.float64)[rows]
    return np.stack([seen[own == subject].mean(0) for subject in np.unique(own)])


def compare_streams(first, second) -> np.ndarray:
    """How alike two lists of streams are, each with each.

    The cosine of the profiles, after each of their entries was standardised over all
    streams of both lists: what everybody has in common says nothing.

    Args:
      first: ``float[streams, n]`` of ``profile_streams``.
      second: ``float[others, n]``, of the same attacker.

    Returns:
      ``float64[streams, others]`` in [-1, 1]; 0 for a profile that is the mean of all.

    Raises:
      ValueError: if there are no two streams in either, or entries differ.

    Example:
      >>> likeness = compare_streams([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.9], [0.9, 0.0]])
      >>> likeness.argmax(1)
      array([0, 1])

    References:
      None; to match streams by such profiles is our own.
    """
    first, second = (np.asarray(x, np.float64) for x in (first, second))
    tables = first.ndim == second.ndim == 2 and first.shape[1] == second.shape[1]
    if not tables or min(len(first), len(second)) < 2:
        raise ValueError(
            "first and second must be float[streams, n] of at least 2 streams each, "
            f"got shapes {first.shape} and {second.shape}; test on more people."
        )
    both = np.concatenate([first, second])
    spread = both.std(0)
    both = (both - both.mean(0)) / np.where(spread > 0, spread, 1.0)
    length = np.linalg.norm(both, axis=1, keepdims=True)
    both = both / np.where(length > 0, length, 1.0)
    return both[: len(first)] @ both[len(first) :].T
