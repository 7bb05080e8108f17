"""Classification metrics, mostly computed from a confusion matrix.

A confusion matrix is ``int[classes, classes]``; entry ``[i, j]`` counts the windows of
class i that were predicted as j. All results are in [0, 1].
"""

from collections.abc import Sequence

import numpy as np

from jaxanon.kernels.checks import as_numpy, strings, whole
from jaxanon.metrics import roc_analysis


def _integers(name, values, num_classes):
    values = as_numpy(name, values)
    num_classes = whole("num_classes", num_classes, least=1)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"{name} must be int[N], got {values.dtype}{list(values.shape)}; take the "
            "argmax of logits first."
        )
    if len(values) and not 0 <= values.min() <= values.max() < num_classes:
        raise ValueError(
            f"{name} must be in [0, {num_classes}), got {values.min()} to "
            f"{values.max()}; increase num_classes or relabel."
        )
    return values.astype(np.int64)  # The index of a pair of classes overflows int8.


def confusion_matrix(labels, predictions, num_classes: int) -> np.ndarray:
    """Counts windows by true and predicted class.

    Args:
      labels: ``int[N]`` in ``[0, num_classes)``, N at least 1.
      predictions: ``int[N]`` in ``[0, num_classes)``.
      num_classes: number of classes.

    Returns:
      ``int64[num_classes, num_classes]``, true classes as rows.

    Raises:
      ValueError: if either is not a vector of integers in range, their lengths
        differ, or they are empty.

    Example:
      >>> confusion_matrix([0, 0, 1], [0, 1, 1], 2)
      array([[1, 1],
             [0, 1]])
    """
    labels = _integers("labels", labels, num_classes)
    predictions = _integers("predictions", predictions, num_classes)
    if len(labels) != len(predictions):
        raise ValueError(
            f"predictions must be one per label, got {len(predictions)} for "
            f"{len(labels)} labels."
        )
    if not len(labels):
        raise ValueError("labels must not be empty, got 0 labels.")
    flat = np.bincount(labels * num_classes + predictions, minlength=num_classes**2)
    return flat.reshape(num_classes, num_classes)


def _ratio(part, whole):
    """Elementwise ratio; nan where ``whole`` is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _counts(confusion):
    """Returns a confusion matrix as an array."""
    try:
        confusion = np.asarray(confusion)
    except ValueError:  # Rows of unequal lengths.
        confusion = np.zeros(0)
    square = confusion.ndim == 2 and len({*confusion.shape}) == 1
    if not square or not confusion.size or confusion.dtype.kind not in "fiu":
        raise ValueError(
            "confusion must be int[classes, classes], got "
            f"{confusion.dtype}{list(confusion.shape)}; use confusion_matrix."
        )
    return confusion


def accuracy(confusion) -> float:
    """Returns the fraction of windows that were predicted correctly.

    Example:
      >>> accuracy([[3, 1], [2, 2]])
      0.625
    """
    confusion = _counts(confusion)
    return float(np.trace(confusion) / np.sum(confusion))


def recall(confusion) -> np.ndarray:
    """Returns recall by class, ``float[classes]``; nan for a class without windows.

    Example:
      >>> recall([[3, 1, 0], [2, 2, 0], [0, 0, 0]])
      array([0.75, 0.5 ,  nan])
    """
    confusion = _counts(confusion)
    return _ratio(np.diag(confusion), np.sum(confusion, 1))


def precision(confusion) -> np.ndarray:
    """Returns precision by class, ``float[classes]``; nan if never predicted.

    Example:
      >>> precision([[3, 2, 0], [1, 2, 0], [0, 4, 0]])
      array([0.75, 0.25,  nan])
    """
    confusion = _counts(confusion)
    return _ratio(np.diag(confusion), np.sum(confusion, 0))


def f1(confusion) -> np.ndarray:
    """Returns the harmonic mean of precision and recall by class, ``float[classes]``.

    It is 0 without correct predictions, and nan if the class neither occurs nor was
    predicted.

    Example:
      >>> f1([[4, 4, 0], [4, 0, 0], [0, 0, 0]])
      array([0.5, 0. , nan])
    """
    confusion = _counts(confusion)
    whole = np.sum(confusion, 0) + np.sum(confusion, 1)
    return _ratio(2 * np.diag(confusion), whole)


def balanced_accuracy(confusion) -> float:
    """Returns the mean recall over the classes that occur.

    It is 1/classes for any constant prediction.

    Example:
      >>> balanced_accuracy([[12, 4], [2, 2]])
      0.625
    """
    return float(np.nanmean(recall(confusion)))


def macro_f1(confusion) -> float:
    """Returns the mean of ``f1`` over the classes that occur or were predicted.

    Example:
      >>> macro_f1([[4, 4, 0], [4, 0, 0], [0, 0, 0]])
      0.25
    """
    return float(np.nanmean(f1(confusion)))


def chance(confusion) -> float:
    """Returns the accuracy of uniform guesses among the classes that occur.

    Example:
      >>> chance([[3, 1, 0], [2, 2, 0], [0, 0, 0]])
      0.5
    """
    return float(1 / np.count_nonzero(np.sum(_counts(confusion), 1)))


def majority(confusion) -> float:
    """Returns the accuracy of always predicting the most frequent class.

    Example:
      >>> majority([[5, 1], [0, 2]])
      0.75
    """
    confusion = as_numpy("confusion", confusion)
    if confusion.ndim != 2 or not confusion.any():
        raise ValueError(
            "confusion must be int[classes, classes] with a positive count, got shape "
            f"{confusion.shape}."
        )
    return float(np.max(np.sum(confusion, 1)) / np.sum(confusion))


def scores(labels, predictions, names: Sequence[str], *, evidence=None) -> dict:
    """Returns all metrics of one classifier, ready for JSON.

    Args:
      labels: ``int[N]`` in ``[0, len(names))``, N at least 1.
      predictions: ``int[N]`` in ``[0, len(names))``.
      names: names of the classes.
      evidence: optional ``float[N, len(names)]``, scores behind the predictions, such
        as logits; larger is more likely.

    Returns:
      Dict of the following entries:

      - ``accuracy``, ``balanced_accuracy`` and ``macro_f1``;
      - ``auc`` and ``equal_error_rate`` of each class against the rest, averaged over
        the classes where they are defined; None without evidence. Their chance level is
        0.5;
      - ``chance`` and ``majority``, accuracies without knowledge of the windows;
      - ``windows``, the number N;
      - ``confusion``, rows of counts;
      - ``per_class``, a list of dicts with ``name``, ``windows``, ``recall``,
        ``precision``, ``f1``, ``auc`` and ``equal_error_rate``, with None for nan.

    Raises:
      ValueError: for the errors of ``confusion_matrix`` and ``roc_analysis.auc``.

    Example:
      >>> scores([0, 0, 0, 1], [0, 0, 0, 0], ["left", "right"])["balanced_accuracy"]
      0.5
      >>> evidence = [[3, 0], [1, 0], [1, 0], [1, 0]]
      >>> row = scores([0, 0, 1, 1], [0] * 4, ["left", "right"], evidence=evidence)
      >>> row["auc"], row["per_class"][0]["auc"]
      (0.625, 0.75)
    """
    strings(names=names)
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
    """Mean of values that are not nan; None without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _without_nan(values):
    return [None if np.isnan(value) else float(value) for value in values]
