"""Linkage of anonymized windows and streams to subjects unseen in training."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.attacks import attacker_data, attackers


class Linked(NamedTuple):
    """Evidence for the subjects of the scored test windows."""

    rows: np.ndarray  # int[n], indices of the scored test windows
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

    The attacker knows the subjects of the first half, in time, of each (subject,
    activity) among the anonymized test windows. It predicts the subjects of the last
    40 %. Use ``reidentify`` instead if test subjects occur in training. Attackers that
    are networks train for all anonymizers in one program.

    Args:
      keys: typed PRNG keys, one per anonymizer.
      attacker: a name of ``attackers.ATTACKERS``.
      safe_tests: per anonymizer ``float[M, time, channels]``, the anonymized test
        windows. Standardized, and in order of time within each (subject, activity).
      subjects: ``int[M]``.
      activities: ``int[M]``, the public attribute.
      num_subjects: maximum number of subjects.
      overlap: whether two windows share samples; see ``attacker_data.halves``. Windows
        that share samples with known ones are not scored.

    Returns:
      ``Linked`` for each anonymizer.

    Raises:
      ValueError: if the attacker is unknown, or fewer than two subjects have three
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
      This protocol is specific to jaxanon.
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
    infer_fns = kind.fit_sets(
        keys, seen, [subjects[known]] * count, [num_subjects] * count
    )
    pairs = zip(infer_fns, safe_tests, strict=True)
    return [Linked(scored, infer(safe[scored])) for infer, safe in pairs]


def profile_streams(evidence, rows, subjects) -> np.ndarray:
    """Averages an attacker's evidence over the windows of each subject.

    Args:
      evidence: ``float[M, n]``, evidence of each window for each known person, or any
        other features.
      rows: ``int[m]``, indices of the windows of the streams.
      subjects: ``int[M]``.

    Returns:
      ``float64[streams, n]``, in ascending order of the subjects in ``rows``.

    Example:
      >>> evidence = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
      >>> profile_streams(evidence, [0, 1, 2], np.array([4, 4, 2]))
      array([[5., 5.],
             [1., 2.]])

    References:
      Matching streams by such profiles is specific to jaxanon.
    """
    stream_subjects = np.asarray(subjects)[rows]
    seen = np.asarray(evidence, np.float64)[rows]
    profiles = [
        seen[stream_subjects == subject].mean(0)
        for subject in np.unique(stream_subjects)
    ]
    return np.stack(profiles)


def compare_streams(first, second) -> np.ndarray:
    """Computes the similarity of each pair of streams from two lists.

    Profile entries are standardized over all streams, which removes what all streams
    have in common. The similarity is the cosine of two standardized profiles.

    Args:
      first: ``float[streams, n]`` from ``profile_streams``.
      second: ``float[others, n]`` of the same attacker.

    Returns:
      ``float64[streams, others]`` in [-1, 1]; 0 for a profile that equals the mean.

    Raises:
      ValueError: if a list has fewer than two streams, or the entries differ.

    Example:
      >>> likeness = compare_streams([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.9], [0.9, 0.0]])
      >>> likeness.argmax(1)
      array([0, 1])

    References:
      Matching streams by such profiles is specific to jaxanon.
    """
    first, second = (np.asarray(x, np.float64) for x in (first, second))
    tables = first.ndim == second.ndim == 2 and first.shape[1] == second.shape[1]
    if not tables or min(len(first), len(second)) < 2:
        raise ValueError(
            "first and second must be float[streams, n] of at least 2 streams each, "
            f"got shapes {first.shape} and {second.shape}; test on more people."
        )
    both = np.concatenate([first, second])
    std = both.std(0)
    both = (both - both.mean(0)) / np.where(std > 0, std, 1.0)
    length = np.linalg.norm(both, axis=1, keepdims=True)
    both = both / np.where(length > 0, length, 1.0)
    return both[: len(first)] @ both[len(first) :].T


LENGTHS = (1, 5, 30, 100)

LEAST = np.log(1e-3)  # Floor of log-probabilities, so that no single window decides.


def runs(persons, length: int) -> np.ndarray:
    """Divides each person's consecutive windows into runs that do not overlap.

    Args:
      persons: ``int[N]``, the person of each window. Each person's windows are in order
        of time, possibly interleaved with others'.
      length: number of windows per run, at least 1. A person's last windows are dropped
        if they do not fill a run.

    Returns:
      ``int[runs, length]``, indices of windows; empty if all persons have too few.

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
    pieces = [np.zeros((0, length), np.int64)]
    for person in np.unique(persons):
        rows = np.flatnonzero(persons == person)
        pieces.append(rows[: len(rows) // length * length].reshape(-1, length))
    return np.concatenate(pieces)


def majority_vote(evidence) -> np.ndarray:
    """Counts the windows of a run that are predicted as each class.

    Ties are broken by the evidence behind the votes.

    Args:
      evidence: ``float[runs, length, classes]``, log-probabilities.

    Returns:
      ``float64[runs, classes]``, fractions of the votes plus a tie-breaker of less than
      one vote.

    Example:
      Two windows of three narrowly favor class 0.

      >>> evidence = np.log([[[0.6, 0.4], [0.6, 0.4], [0.1, 0.9]]])
      >>> majority_vote(evidence).argmax(1), mean_log_odds(evidence).argmax(1)
      (array([0]), array([1]))

    References:
      Voting is specific to jaxanon; it works because a private attribute does not
      change within a stream.
    """
    evidence = np.asarray(evidence)
    classes = evidence.shape[-1]
    votes = (evidence.argmax(-1)[..., None] == np.arange(classes)).mean(1)
    # The tie-breaker is less than one vote, so it never changes a majority.
    return votes + 1 / (1 + np.exp(-mean_log_odds(evidence))) / evidence.shape[1]


def mean_log_odds(evidence) -> np.ndarray:
    """Combines the windows of a run as the mean of their log-odds.

    For independent windows, the run's log-odds would be the sum. The sum is divided by
    the length because overlapping windows are not independent. Probabilities are
    clipped to [0.001, 0.999].

    Args:
      evidence: ``float[runs, length, classes]``, log-probabilities.

    Returns:
      ``float64[runs, classes]``.

    Example:
      >>> mean_log_odds(np.log([[[0.5, 0.5], [0.75, 0.25]]])).round(2)  # ln 3 / 2
      array([[ 0.55, -0.55]])

    References:
      Specific to jaxanon, as ``majority_vote``.
    """
    clipped = np.clip(np.asarray(evidence, np.float64), LEAST, np.log1p(-np.exp(LEAST)))
    return (clipped - np.log1p(-np.exp(clipped))).mean(1)
