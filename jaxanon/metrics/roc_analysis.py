"""ROC analysis of evidence for a class against all others.

Evidence is ``float[N, classes]``, such as logits: the larger an entry, the more likely
the class. Any increasing function of it gives the same results. The chance level of
AUC and equal error rate is 0.5 for any class frequencies.
"""

import numpy as np
from scipy.stats import norm, rankdata

from jaxanon.kernels.checks import as_numpy, host_number
from jaxanon.metrics.epsilon_bounds import proportion_bounds


def check_evidence(labels, evidence, num_classes: int) -> np.ndarray:
    """Returns ``evidence`` as ``float64[N, num_classes]``.

    Raises:
      ValueError: for another shape, or NaN.
    """
    evidence = as_numpy("evidence", evidence, np.float64)
    labels = as_numpy("labels", labels)
    if labels.ndim != 1:
        raise ValueError(
            f"labels must be [N], one per window, got shape {labels.shape}."
        )
    if evidence.shape != (len(labels), num_classes):
        raise ValueError(
            f"evidence must be float[{len(labels)}, {num_classes}], one row per label "
            f"and one column per class, got shape {evidence.shape}."
        )
    if np.isnan(evidence).any():
        raise ValueError("evidence must be numbers, got NaN; clip before logarithms.")
    return evidence


def auc(labels, evidence) -> np.ndarray:
    """Returns the area under the ROC curve of each class against the rest.

    It is the probability that a window of the class has more evidence for it than a
    window of another class; ties count half. At 0.5, the evidence is uninformative; at
    0, it is as informative as at 1 with the opposite sign.

    Args:
      labels: ``int[N]`` in ``[0, classes)``.
      evidence: ``float[N, classes]``, infinities allowed.

    Returns:
      ``float64[classes]``; nan for a class that no window or every window has.

    Raises:
      ValueError: if shapes differ, or for NaN.

    Example:
      Three of the 4 pairs of a 0 and a 1 are in order.

      >>> evidence = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]])
      >>> auc(np.array([0, 0, 1, 1]), evidence)
      array([0.75, 0.75])

    References:
      Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology
      1982.
    """
    labels = as_numpy("labels", labels)
    evidence = as_numpy("evidence", evidence)
    evidence = check_evidence(labels, evidence, (0, *evidence.shape)[-1])
    areas = np.full(evidence.shape[1], np.nan)
    for label, column in enumerate(evidence.T):
        positive = labels == label
        pairs = positive.sum() * (~positive).sum()
        if pairs:
            smallest = positive.sum() * (positive.sum() + 1) / 2  # smallest rank sum
            areas[label] = (rankdata(column)[positive].sum() - smallest) / pairs
    return areas


def auc_interval(positive, evidence, confidence: float = 0.95) -> tuple[float, float]:
    """Returns a confidence interval of the area under the ROC curve.

    DeLong's interval assumes independent windows. It is too narrow for several windows
    per person. If the estimated variance is 0, for example for perfectly separated
    classes, the interval is the Clopper-Pearson interval for the number of disjoint
    pairs.

    Args:
      positive: ``bool[N]``, whether each window is in the class; at least two are, and
        at least two are not.
      evidence: ``float[N]`` for the class.
      confidence: confidence level of the interval, in (0, 1).

    Returns:
      The lower and the upper bound, in [0, 1].

    Raises:
      ValueError: if shapes differ, for NaN, for fewer than two windows on a side, or if
        ``confidence`` is out of range.

    Example:
      All 50 pairs are in order, which has probability 0.025 for an area of
      0.025^(1/50).

      >>> low, high = auc_interval(np.repeat([True, False], 50), -np.arange(100))
      >>> round(low, 4), high
      (0.9289, 1.0)

    References:
      DeLong, DeLong and Clarke-Pearson, Comparing the areas under two or more
      correlated receiver operating characteristic curves, Biometrics 1988.
    """
    positive = as_numpy("positive", positive)
    evidence = as_numpy("evidence", evidence)
    positive = np.asarray(positive, bool)
    evidence = check_evidence(positive, np.asarray(evidence)[..., None], 1)[:, 0]
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}.")
    count, others = int(positive.sum()), int((~positive).sum())
    if min(count, others) < 2:
        raise ValueError(
            f"positive must be True for at least two windows and False for at least "
            f"two, got {count} and {others}."
        )
    ranks = rankdata(evidence)
    # Fraction of the other class below (or above) each window; ties count half.
    above = (ranks[positive] - rankdata(evidence[positive])) / others
    below = 1 - (ranks[~positive] - rankdata(evidence[~positive])) / count
    area, both = above.mean(), (1 + confidence) / 2
    variance = above.var(ddof=1) / count + below.var(ddof=1) / others
    if not variance:
        pairs = min(count, others)
        low, high = proportion_bounds(area * pairs, pairs, both)
        return float(low), float(high)
    half = norm.ppf(both) * np.sqrt(variance)
    return float(max(area - half, 0)), float(min(area + half, 1))


def equal_error_rate(labels, evidence) -> np.ndarray:
    """Returns the equal error rate of each class against the rest.

    It is the error rate at the threshold where false negative and false positive rate
    are equal. The ROC curve is interpolated linearly between thresholds.

    Args:
      labels: ``int[N]`` in ``[0, classes)``.
      evidence: ``float[N, classes]``, infinities allowed.

    Returns:
      ``float64[classes]``; nan for a class that no window or every window has.

    Raises:
      ValueError: if shapes differ, or for NaN.

    Example:
      At a threshold of 0.5, one window in three is wrong on both sides.

      >>> column = np.array([0.9, 0.8, 0.1, 0.7, 0.3, 0.2])
      >>> evidence = np.stack([column, -column], 1)
      >>> equal_error_rate(np.array([0, 0, 0, 1, 1, 1]), evidence).round(3)
      array([0.333, 0.333])
    """
    labels = as_numpy("labels", labels)
    evidence = as_numpy("evidence", evidence)
    evidence = check_evidence(labels, evidence, (0, *evidence.shape)[-1])
    rates = np.full(evidence.shape[1], np.nan)
    for label, column in enumerate(evidence.T):
        positive = labels == label
        if positive.any() and not positive.all():
            rates[label] = _crossing(*roc(positive, column))
    return rates


def roc(positive, evidence) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ROC curve of one class against the rest.

    Args:
      positive: ``bool[N]``, whether each window is in the class.
      evidence: ``float[N]`` for the class, infinities allowed.

    Returns:
      False and true positive rates, ``float64[thresholds + 1]`` each. They rise from 0
      to 1 as the threshold falls, with one step per distinct value.

    Raises:
      ValueError: if shapes differ, for NaN, or if one side is empty.

    Example:
      >>> false, true = roc(np.array([True, True, False]), np.array([3.0, 1.0, 1.0]))
      >>> false, true
      (array([0., 0., 1.]), array([0. , 0.5, 1. ]))
    """
    positive = as_numpy("positive", positive, bool)
    evidence = as_numpy("evidence", evidence)
    evidence = check_evidence(positive, evidence[..., None], 1)[:, 0]
    if positive.all() or not positive.any():
        raise ValueError(
            "positive must be True for some windows and False for others, got "
            f"{positive.sum()} of {len(positive)}."
        )
    values, index = np.unique(-evidence, return_inverse=True)
    counts = lambda rows: np.bincount(index[rows], minlength=len(values))
    rates = lambda rows: np.concatenate([[0.0], np.cumsum(counts(rows)) / rows.sum()])
    return rates(~positive), rates(positive)


def true_positive_rate(positive, evidence, false_positive_rate: float) -> float:
    """Returns the largest true positive rate at a bounded false positive rate.

    A low bound reveals attacks that are certain about a few windows, which a good
    average score hides.

    Args:
      positive: ``bool[N]``, whether each window is in the class.
      evidence: ``float[N]`` for the class, infinities allowed.
      false_positive_rate: largest false positive rate, in [0, 1].

    Raises:
      ValueError: for the errors of ``roc``, or if the rate is out of range.

    Example:
      >>> evidence = np.array([0.9, 0.8, 0.1, 0.7, 0.3, 0.2])
      >>> positive = np.array([True, True, True, False, False, False])
      >>> round(true_positive_rate(positive, evidence, 0.0), 3)
      0.667

    References:
      Carlini et al., Membership inference attacks from first principles, S&P 2022.
    """
    host_number(false_positive_rate=false_positive_rate)
    if not 0 <= false_positive_rate <= 1:
        raise ValueError(
            f"false_positive_rate must be in [0, 1], got {false_positive_rate!r}."
        )
    false, true = roc(positive, evidence)
    return float(true[false <= false_positive_rate].max())


def _crossing(false, true):
    """False positive rate at which it equals the false negative rate."""
    excess = false + true - 1  # Rises from -1 to 1.
    after = int(np.argmax(excess >= 0))
    weight = excess[after - 1] / (excess[after - 1] - excess[after])
    return false[after - 1] + weight * (false[after] - false[after - 1])
