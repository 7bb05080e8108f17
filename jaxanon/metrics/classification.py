"""How often a classifier is right: nearly everything is read off its confusion matrix.

A matrix here is ``int[classes, classes]``; entry ``[i, j]`` counts the windows of class
i that were called j. All results lie in [0, 1].
"""

from collections.abc import Sequence

import numpy as np

from jaxanon.metrics import roc_analysis


def _integers(name, values, num_classes):
    values = np.asarray(values)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"{name} must be int[N], got {values.dtype}{list(values.shape)}; take the "
            "argmax of logits first."
        )
    if len(values) and not 0 <= values.min() <= values.max() < num_classes:
        raise ValueError(
            f"{name} must lie in [0, {num_classes}), got {values.min()} to "
            f"{values.max()}; raise num_classes or relabel."
        )
    return values.astype(np.int64)  # In 8 bits a pair of classes has no number.


def confusion_matrix(labels, predictions, num_classes: int) -> np.ndarray:
    """Counts what was called what.

    Args:
      labels: ``int[N]`` in ``[0, num_classes)``, N at least 1.
      predictions: ``int[N]`` in ``[0, num_classes)``.
      num_classes: number of classes.

    Returns:
      ``int64[num_classes, num_classes]``, true classes as rows.

    Raises:
      ValueError: if either is not a vector of integers in range, their lengths
        differ, or there is nothing to score.

    Example:
      >>> confusion_matrix([0, 0, 1], [0, 1, 1], 2)
      array([[1, 1],
             [0, 1]])
    """
    labels = _integers("labels", labels, num_classes)
    predictions = _integers("predictions", predictions, num_classes)
    if len(labels) != len(predictions):
        raise ValueError(
            f"predictions must be one per label: got {len(predictions)} for "
            f"{len(labels)} labels."
        )
    if not len(labels):
        raise ValueError("labels is empty: there is nothing to score.")
    flat = np.bincount(labels * num_classes + predictions, minlength=num_classes**2)
    return flat.reshape(num_classes, num_classes)


def _ratio(part, whole):
    """Part by part; nan where ``whole`` is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def accuracy(confusion) -> float:
    """Share of windows that were called by their class.

    Example:
      >>> accuracy([[3, 1], [2, 2]])
      0.625
    """
    return float(np.trace(confusion) / np.sum(confusion))


def recall(confusion) -> np.ndarray:
    """``float[classes]``: share of each class's windows found; nan if it has none.

    Example:
      >>> recall([[3, 1, 0], [2, 2, 0], [0, 0, 0]])
      array([0.75, 0.5 ,  nan])
    """
    return _ratio(np.diag(confusion), np.sum(confusion, 1))


def precision(confusion) -> np.ndarray:
    """``float[classes]``: share of calls that were right; nan if never called.

    Example:
      >>> precision([[3, 2, 0], [1, 2, 0], [0, 4, 0]])
      array([0.75, 0.25,  nan])
    """
    return _ratio(np.diag(confusion), np.sum(confusion, 0))


def f1(confusion) -> np.ndarray:
    """``float[classes]``: harmonic mean of precision and recall.

    0 if the class was never found, nan if it neither occurs nor was called.

    Example:
      >>> f1([[4, 4, 0], [4, 0, 0], [0, 0, 0]])
      array([0.5, 0. , nan])
    """
    whole = np.sum(confusion, 0) + np.sum(confusion, 1)
    return _ratio(2 * np.diag(confusion), whole)


def balanced_accuracy(confusion) -> float:
    """Mean recall over the classes that occur: 1/classes for any constant guess.

    Example:
      >>> balanced_accuracy([[12, 4], [2, 2]])
      0.625
    """
    return float(np.nanmean(recall(confusion)))


def macro_f1(confusion) -> float:
    """Unweighted mean of ``f1`` over the classes that occur or were called.

    Example:
      >>> macro_f1([[4, 4, 0], [4, 0, 0], [0, 0, 0]])
      0.25
    """
    return float(np.nanmean(f1(confusion)))


def chance(confusion) -> float:
    """Accuracy of a uniform guess among the classes that occur.

    Example:
      >>> chance([[3, 1, 0], [2, 2, 0], [0, 0, 0]])
      0.5
    """
    return float(1 / np.count_nonzero(np.sum(confusion, 1)))


def majority(confusion) -> float:
    """Accuracy of always calling the class that occurs most.

    Example:
      >>> majority([[5, 1], [0, 2]])
      0.75
    """
    return float(np.max(np.sum(confusion, 1)) / np.sum(confusion))


def scores(labels, predictions, names: Sequence[str], *, evidence=None) -> dict:
    """Everything about one classifier, ready for JSON.

    Args:
      labels: ``int[N]`` in ``[0, len(names))``, N at least 1.
      predictions: ``int[N]`` likewise.
      names: of the classes.
      evidence: ``float[N, len(names)]``, what the predictions were made from, if it is
        known: the larger, the more the classifier believes in that class.

    Returns:
      ``accuracy``, ``balanced_accuracy``, ``macro_f1``, ``auc`` and
      ``equal_error_rate`` (of each class against the rest, averaged over the classes
      where it is defined; None without evidence), ``chance``, ``majority``,
      ``windows`` (N), ``confusion`` (rows of counts) and ``per_class``, a list of
      ``name``, ``windows``, ``recall``, ``precision``, ``f1``, ``auc``,
      ``equal_error_rate`` with None for nan. Chance of the two that rank is 0.5.

    Raises:
      ValueError: as ``confusion_matrix``, and as ``roc_analysis.auc``.

    Example:
      >>> scores([0, 0, 0, 1], [0, 0, 0, 0], ["left", "right"])["balanced_accuracy"]
      0.5
      >>> evidence = [[3, 0], [1, 0], [1, 0], [1, 0]]
      >>> told = scores([0, 0, 1, 1], [0] * 4, ["left", "right"], evidence=evidence)
      >>> told["auc"], told["per_class"][0]["auc"]
      (0.625, 0.75)
    """
    confusion = confusion_matrix(labels, predictions, len(names))
    areas, rates = _ranked(labels, evidence, len(names))
    columns = {
        "name": names,
        "windows": confusion.sum(1).tolist(),
        "recall": _without_nan(recall(confusion)),
        "precision": _without_nan(precision(confusion)),
        "f1": _without_nan(f1(confusion)),
        "auc": _without_nan(areas),
        "equal_error_rate": _without_nan(rates),
    }
    rows = zip(*columns.values(), strict=True)
    return {
        "accuracy": accuracy(confusion),
        "balanced_accuracy": balanced_accuracy(confusion),
        "macro_f1": macro_f1(confusion),
        "auc": _mean(areas),
        "equal_error_rate": _mean(rates),
        "chance": chance(confusion),
        "majority": majority(confusion),
        "windows": int(confusion.sum()),
        "confusion": confusion.tolist(),
        "per_class": [dict(zip(columns, row, strict=True)) for row in rows],
    }


def _ranked(labels, evidence, num_classes):
    if evidence is None:
        return np.full((2, num_classes), np.nan)
    evidence = roc_analysis.check_evidence(labels, evidence, num_classes)
    return roc_analysis.auc(labels, evidence), roc_analysis.equal_error_rate(
        labels, evidence
    )


def _mean(values):
    """Over what is not nan; None if there is nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _without_nan(values):
    return [None if np.isnan(value) else float(value) for value in values]
