"""The attacker who follows a person: evidence added up over consecutive windows."""

import numpy as np

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
