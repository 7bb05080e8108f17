"""Confidence intervals over persons, and the reasons that rule a score out."""

import numpy as np
from scipy import special

MIN_PERSONS = 3  # Persons in an interval.

MIN_CLASS_PERSONS = 2  # Persons of each class, unless the classes are the persons.

LEVEL = 0.95


def unsupported(labels, persons, names, trained=None, *, identity=False) -> str | None:
    """Returns the reason why test windows cannot support a score, or None.

    Args:
      labels: ``int[N]``, true classes of the test windows.
      persons: ``int[N]``, persons of the test windows.
      names: class names.
      trained: classes that occur in training; None skips that check.
      identity: whether the classes are the persons.

    Example:
      >>> unsupported([0, 0, 0], [0, 1, 2], ["left", "right"])
      "the test windows have one class, 'left'"
      >>> unsupported([0, 1, 0, 1], [0, 0, 1, 1], ["left", "right"])
      '2 test persons are too few (at least 3)'
    """
    labels, persons = np.asarray(labels), np.asarray(persons)
    reason = without_classes(labels, names, trained)
    if reason is not None:
        return reason
    num_persons = len(np.unique(persons))
    if num_persons < MIN_PERSONS:
        noun = "person is" if num_persons == 1 else "persons are"
        return f"{num_persons} test {noun} too few (at least {MIN_PERSONS})"
    if identity:
        return None
    for label in np.unique(labels):
        count = len(np.unique(persons[labels == label]))
        if count < MIN_CLASS_PERSONS:
            return (
                f"class {names[label]!r} has {count} test person (at least "
                f"{MIN_CLASS_PERSONS})"
            )
    return None


def without_classes(labels, names, trained=None) -> str | None:
    """Returns the reason why classes cannot support a score (see ``unsupported``)."""
    classes = np.unique(labels)
    if len(classes) < 2:
        return f"the test windows have one class, {names[classes[0]]!r}"
    unknown = np.setdiff1d(classes, classes if trained is None else trained)
    if len(unknown):
        return f"class {names[unknown[0]]!r} does not occur in training"
    return None


def over_persons(labels, evidence, persons) -> dict[str, list[float] | None]:
    """Returns 95 % confidence intervals of balanced accuracy and AUC over persons.

    The standard error is that of the delete-one-person jackknife, and the quantile is
    Student's t with one degree of freedom less than there are persons. Bounds are
    clipped to [0, 1].

    Args:
      labels: ``int[N]``, true classes.
      evidence: ``float[N, classes]``; the largest entry of a row is the prediction.
      persons: ``int[N]``.

    Returns:
      ``balanced_accuracy`` and ``auc``, each ``[low, high]``; None if it is undefined
      for all persons or without one of them.

    Example:
      >>> labels, persons = [0, 1] * 3, [0, 0, 1, 1, 2, 2]
      >>> evidence = np.eye(2)[[0, 1, 0, 1, 0, 0]]  # The last window is wrong.
      >>> [round(x, 3) for x in over_persons(labels, evidence, persons)["auc"]]
      [0.116, 1.0]

    References:
      Efron and Stein, The jackknife estimate of variance, Annals of Statistics 1981.
    """
    labels, evidence = np.asarray(labels), np.asarray(evidence, np.float64)
    _, persons = np.unique(np.asarray(persons), return_inverse=True)
    persons = persons.reshape(-1)
    num_persons = persons.max() + 1
    right = evidence.argmax(1) == labels
    recalls, areas = [], []
    for label in np.unique(labels):
        own = labels == label
        counts = np.bincount(persons[own], minlength=num_persons)
        hits = np.bincount(persons[own & right], minlength=num_persons)
        recalls.append(_with_and_without(hits, counts))
        areas.append(_areas(evidence[:, label], own, persons, num_persons))
    return {
        "balanced_accuracy": _jackknife(_mean(recalls)),
        "auc": _jackknife(_mean(areas)),
    }


def _with_and_without(hits, counts):
    """Ratio of sums over all persons, then without each; nan where nothing is left."""
    hits = np.concatenate([[0], hits])
    counts = np.concatenate([[0], counts])
    left = counts.sum() - counts
    return np.divide(
        hits.sum() - hits, left, out=np.full(len(left), np.nan), where=left > 0
    )


def _areas(scores, own, persons, num_persons):
    """AUC of one class over all persons, then without each."""
    positive, negative = scores[own], scores[~own]
    of_positive = np.bincount(
        persons[own], _lower(positive, negative), minlength=num_persons
    )
    of_negative = np.bincount(
        persons[~own], _lower(-negative, -positive), minlength=num_persons
    )
    positives = np.bincount(persons[own], minlength=num_persons)
    negatives = np.bincount(persons[~own], minlength=num_persons)
    within = np.zeros(num_persons)
    for person in np.flatnonzero((positives > 0) & (negatives > 0)):
        here = persons == person
        within[person] = _lower(scores[own & here], scores[~own & here]).sum()
    pairs = of_positive.sum()
    wins = np.concatenate([[pairs], pairs - of_positive - of_negative + within])
    left = (len(positive) - np.concatenate([[0], positives])) * (
        len(negative) - np.concatenate([[0], negatives])
    )
    return np.divide(wins, left, out=np.full(len(left), np.nan), where=left > 0)


def _lower(scores, others):
    """Returns for each score the number of others below it; a tie counts 1/2."""
    others = np.sort(others)
    sides = [np.searchsorted(others, scores, side) for side in ("left", "right")]
    return (sides[0] + sides[1]) / 2


def _mean(rows):
    """Mean over the classes that are defined; nan without any."""
    rows = np.array(rows)
    known = ~np.isnan(rows)
    counts = known.sum(0)
    sums = np.where(known, rows, 0.0).sum(0)
    return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)


def _jackknife(values):
    """Interval of an estimate, given the estimate and those without each person."""
    whole, without = values[0], values[1:]
    if len(without) < 2 or np.isnan(values).any():
        return None
    return student(whole, without, scale=len(without) - 1)


def student(mean, values, *, scale=None, bounds=(0.0, 1.0)) -> list[float]:
    """Returns the 95 % t-interval of a mean, clipped to bounds.

    Args:
      mean: centre of the interval.
      values: ``float[n]``, one per person, n at least 2.
      scale: ratio of the squared standard error to the mean squared deviation of
        ``values``. None is ``1 / (n - 1)``, that of a mean of independent values.
      bounds: smallest and largest value of the score.

    Example:
      >>> [round(x, 4) for x in student(0.5, np.array([0.4, 0.5, 0.6]))]
      [0.2516, 0.7484]
    """
    count = len(values)
    scale = 1 / (count - 1) if scale is None else scale
    error = np.sqrt(scale * np.mean((values - np.mean(values)) ** 2))
    reach = special.stdtrit(count - 1, (1 + LEVEL) / 2) * error
    return [float(max(bounds[0], mean - reach)), float(min(bounds[1], mean + reach))]
