"""How well evidence for a class sets its windows apart from all others.

Evidence is ``float[N, classes]``: the larger an entry, the more the classifier
believes that the window is of that class. Any rising function of it gives the same
figures. Chance level is 0.5 for both measures, whatever the shares of the classes.
"""

import numpy as np
from scipy.stats import norm, rankdata

from jaxanon.metrics.epsilon_bounds import proportion_bounds


def check_evidence(labels, evidence, num_classes: int) -> np.ndarray:
    """``evidence`` as ``float64[N, num_classes]``; ValueError for another, or NaN."""
    evidence = np.asarray(evidence, np.float64)
    if evidence.shape != (len(labels), num_classes):
        raise ValueError(
            f"evidence must be float[{len(labels)}, {num_classes}], one row per label "
            f"and one column per class, got shape {evidence.shape}."
        )
    if np.isnan(evidence).any():
        raise ValueError("evidence must be numbers, got NaN; clip before a logarithm.")
    return evidence


def auc(labels, evidence) -> np.ndarray:
    """Area under the ROC curve of each class against the rest.

    The probability that a window of the class has more evidence for it than a window
    of another class, ties counting half. 0.5 tells nothing; 0 tells as much as 1, to
    whoever turns the answer around.

    Args:
      labels: ``int[N]`` in ``[0, classes)``.
      evidence: ``float[N, classes]``, infinities allowed.

    Returns:
      ``float64[classes]``; nan for a class that no window has, or every one.

    Raises:
      ValueError: if shapes disagree, or for NaN.

    Example:
      Of the 4 pairs of a 0 and a 1 three are in order.

      >>> evidence = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]])
      >>> auc(np.array([0, 0, 1, 1]), evidence)
      array([0.75, 0.75])

    References:
      Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology
      1982.
    """
    labels = np.asarray(labels)
    evidence = check_evidence(labels, evidence, np.shape(evidence)[-1])
    found = np.full(evidence.shape[1], np.nan)
    for label, column in enumerate(evidence.T):
        own = labels == label
        pairs = own.sum() * (~own).sum()
        if pairs:
            least = own.sum() * (own.sum() + 1) / 2  # Of the sum of their ranks.
            found[label] = (rankdata(column)[own].sum() - least) / pairs
    return found


def auc_interval(own, evidence, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds on the area under the ROC curve that all windows would have.

    DeLong's, which take windows for independent of one another; those of one person are
    not, and the bounds are then too near. Where all of a class have more evidence than
    all others, or less, or all the same, no spread is seen: then Clopper and Pearson's
    of as many pairs as there are, none twice.

    Args:
      own: ``bool[N]``, who is of the class; at least two are, and two are not.
      evidence: ``float[N]`` for it.
      confidence: of both bounds together, in (0, 1).

    Returns:
      The lower and the upper bound, in [0, 1].

    Raises:
      ValueError: if shapes disagree, for NaN, for fewer than two on a side, and for
        another confidence.

    Example:
      All of 50 pairs in order; 0.025^(1/50) of them would be in one time of 40.

      >>> low, high = auc_interval(np.repeat([True, False], 50), -np.arange(100))
      >>> round(low, 4), high
      (0.9289, 1.0)

    References:
      DeLong, DeLong and Clarke-Pearson, Comparing the areas under two or more
      correlated receiver operating characteristic curves, Biometrics 1988.
    """
    own = np.asarray(own, bool)
    evidence = check_evidence(own, np.asarray(evidence)[..., None], 1)[:, 0]
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}.")
    number, others = int(own.sum()), int((~own).sum())
    if min(number, others) < 2:
        raise ValueError(
            f"own must be of two at least, and of two not, got {number} and {others}."
        )
    ranks = rankdata(evidence)
    # How many of the other side each one lies above, or below, ties counting half.
    above = (ranks[own] - rankdata(evidence[own])) / others
    below = 1 - (ranks[~own] - rankdata(evidence[~own])) / number
    area, both = above.mean(), (1 + confidence) / 2
    variance = above.var(ddof=1) / number + below.var(ddof=1) / others
    if not variance:
        pairs = min(number, others)
        low, high = proportion_bounds(area * pairs, pairs, both)
        return float(low), float(high)
    half = norm.ppf(both) * np.sqrt(variance)
    return float(max(area - half, 0)), float(min(area + half, 1))


def equal_error_rate(labels, evidence) -> np.ndarray:
    """Where as many of a class are missed as others are taken for it, class by class.

    The threshold on the evidence for a class is moved until the share of its windows
    that are refused is the share of the others that are accepted; between two
    thresholds the ROC curve is a line.

    Args:
      labels: ``int[N]`` in ``[0, classes)``.
      evidence: ``float[N, classes]``, infinities allowed.

    Returns:
      ``float64[classes]``; nan for a class that no window has, or every one.

    Raises:
      ValueError: if shapes disagree, or for NaN.

    Example:
      At a threshold of 0.5 one window in three is misjudged on either side.

      >>> column = np.array([0.9, 0.8, 0.1, 0.7, 0.3, 0.2])
      >>> evidence = np.stack([column, -column], 1)
      >>> equal_error_rate(np.array([0, 0, 0, 1, 1, 1]), evidence).round(3)
      array([0.333, 0.333])
    """
    labels = np.asarray(labels)
    evidence = check_evidence(labels, evidence, np.shape(evidence)[-1])
    found = np.full(evidence.shape[1], np.nan)
    for label, column in enumerate(evidence.T):
        own = labels == label
        if own.any() and not own.all():
            found[label] = _crossing(*roc(own, column))
    return found


def roc(own, evidence) -> tuple[np.ndarray, np.ndarray]:
    """The ROC curve: shares accepted of the others and of a class.

    Args:
      own: ``bool[N]``, who is of the class.
      evidence: ``float[N]`` for it, infinities allowed.

    Returns:
      Two ``float64[thresholds + 1]`` that rise from 0 to 1 as the threshold falls, one
      step for each value that occurs: false and true positive rates.

    Raises:
      ValueError: if shapes disagree, for NaN, or if one side is empty.

    Example:
      >>> false, true = roc(np.array([True, True, False]), np.array([3.0, 1.0, 1.0]))
      >>> false, true
      (array([0., 0., 1.]), array([0. , 0.5, 1. ]))
    """
    own = np.asarray(own, bool)
    evidence = check_evidence(own, np.asarray(evidence)[..., None], 1)[:, 0]
    if own.all() or not own.any():
        raise ValueError(
            f"own must be of some and not of all, got {own.sum()} of {len(own)}."
        )
    values, place = np.unique(-evidence, return_inverse=True)
    counts = lambda rows: np.bincount(place[rows], minlength=len(values))
    shares = lambda rows: np.concatenate([[0.0], np.cumsum(counts(rows)) / rows.sum()])
    return shares(~own), shares(own)


def true_positive_rate(own, evidence, false_positive_rate: float) -> float:
    """How many of a class are found where so few others are taken for it.

    An attack that is sure of a few is worse than one that guesses well on average.

    Args:
      own, evidence: as ``roc`` takes them.
      false_positive_rate: the most that may be, in [0, 1]; below one in as many as
        there are others, none of them.

    Returns:
      The largest true positive rate of a threshold, 0 if there is none.

    Raises:
      ValueError: as ``roc``, and for a rate out of its range.

    Example:
      >>> evidence = np.array([0.9, 0.8, 0.1, 0.7, 0.3, 0.2])
      >>> own = np.array([True, True, True, False, False, False])
      >>> round(true_positive_rate(own, evidence, 0.0), 3)
      0.667

    References:
      Carlini et al., Membership inference attacks from first principles, S&P 2022.
    """
    if not 0 <= false_positive_rate <= 1:
        raise ValueError(
            f"false_positive_rate must be in [0, 1], got {false_positive_rate!r}."
        )
    false, true = roc(own, evidence)
    return float(true[false <= false_positive_rate].max())


def _crossing(accepted, found):
    """Where the share of others accepted meets the share of the class refused."""
    excess = accepted + found - 1  # Rises from -1 to 1.
    after = int(np.argmax(excess >= 0))
    way = excess[after - 1] / (excess[after - 1] - excess[after])
    return accepted[after - 1] + way * (accepted[after] - accepted[after - 1])
