"""Linkage: who windows come from, where their subjects were never in training."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.attacks import attacker_data, attackers


class Linked(NamedTuple):
    """Evidence for the subjects of some of the test windows."""

    rows: np.ndarray  # int[n], the test windows that were scored
    evidence: np.ndarray  # float32[n, num_subjects]


def link_unseen_subjects(
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
      overlap: which windows share samples, as ``attacker_data.halves`` takes it; those
        that share some with known ones are not scored.

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
      >>> (found,) = link_unseen_subjects(
      ...     keys, "tree", [windows], subjects, activities, 2
      ... )
      >>> found.rows, found.evidence.argmax(1)
      (array([ 6,  7,  8,  9, 16, 17, 18, 19]), array([0, 0, 0, 0, 1, 1, 1, 1]))

    References:
      None; this protocol is our own.
    """
    kind = attackers.get(attacker)
    subjects = np.asarray(subjects)
    known, scored = attacker_data.halves(subjects, activities, overlap=overlap)
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


LENGTHS = (1, 5, 30, 100)

LEAST = np.log(1e-3)  # No single window counts for more than this.


def runs(persons, length: int) -> np.ndarray:
    """Consecutive windows of one person, cut into runs that do not overlap.

    Args:
      persons: ``int[N]``, who each window comes from; a person's windows are in order
        of time, whatever lies between them.
      length: windows per run, at least 1. What is left over at a person's end is
        dropped.

    Returns:
      ``int[runs, length]``, numbers of windows; no runs if nobody has enough.

    Raises:
      ValueError: if ``length`` is below 1.

    Example:
      >>> runs([7, 7, 8, 7, 8, 7, 7], 2)
      array([[0, 1],
             [3, 5],
             [2, 4]])
    """
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length!r}.")
    persons = np.asarray(persons)
    found = [np.zeros((0, length), np.int64)]
    for person in np.unique(persons):
        rows = np.flatnonzero(persons == person)
        found.append(rows[: len(rows) // length * length].reshape(-1, length))
    return np.concatenate(found)


def majority_vote(evidence) -> np.ndarray:
    """How many of a run's windows are read as each class.

    Of equally many votes, those with more evidence behind them win.

    Args:
      evidence: ``float[runs, length, classes]``, log-probabilities.

    Returns:
      ``float64[runs, classes]``, shares of the votes, of equals told apart by less than
      one vote.

    Example:
      Two windows of three say class 0, if only just.

      >>> evidence = np.log([[[0.6, 0.4], [0.6, 0.4], [0.1, 0.9]]])
      >>> majority_vote(evidence).argmax(1), mean_log_odds(evidence).argmax(1)
      (array([0]), array([1]))

    References:
      None; that a private attribute does not change, so that windows may vote on it, is
      our own attack.
    """
    evidence = np.asarray(evidence)
    classes = evidence.shape[-1]
    votes = (evidence.argmax(-1)[..., None] == np.arange(classes)).mean(1)
    # Less than one vote, so that it settles ties and overrules nobody.
    return votes + 1 / (1 + np.exp(-mean_log_odds(evidence))) / evidence.shape[1]


def mean_log_odds(evidence) -> np.ndarray:
    """What all windows of a run say together: the mean of their log-odds.

    If windows told independently, the sum of log-odds would be that of the run; it is
    divided by the length, for which windows that overlap do not. A probability below
    0.001 or above 0.999 counts as that.

    Args:
      evidence: ``float[runs, length, classes]``, log-probabilities.

    Returns:
      ``float64[runs, classes]``.

    Example:
      >>> mean_log_odds(np.log([[[0.5, 0.5], [0.75, 0.25]]])).round(2)  # ln 3 / 2
      array([[ 0.55, -0.55]])

    References:
      None; as ``majority_vote``, our own.
    """
    own = np.clip(np.asarray(evidence, np.float64), LEAST, np.log1p(-np.exp(LEAST)))
    return (own - np.log1p(-np.exp(own))).mean(1)
