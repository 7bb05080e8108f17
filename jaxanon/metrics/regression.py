"""Metrics of predicted numbers and of forecasts."""

import numpy as np

from jaxanon.kernels.checks import as_numpy


def r2(truth, predictions) -> float:
    """Returns the coefficient of determination, 1 - SSE / SST.

    It is 1 for perfect predictions, 0 for the mean of the truth, and has no lower
    bound. For a constant truth, it is 1 if all predictions are correct, else 0, as in
    scikit-learn.

    Args:
      truth: ``float[N]``, N at least 1.
      predictions: ``float[N]``.

    Raises:
      ValueError: if either is not a vector of finite numbers, their lengths differ, or
        they are empty.

    Example:
      >>> r2([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
      0.5
    """
    truth, error = _errors(truth, predictions)
    total = np.sum((truth - truth.mean()) ** 2)
    if truth.min() == truth.max():
        return float(not error.any())
    return float(1 - np.sum(error**2) / total)


def mae(truth, predictions) -> float:
    """Returns the mean absolute error; arguments and errors are those of ``r2``.

    Example:
      >>> mae([1.0, 2.0], [1.0, 5.0])
      1.5
    """
    return float(np.abs(_errors(truth, predictions)[1]).mean())


def rmse(truth, predictions) -> float:
    """Returns the root-mean-square error; arguments and errors are those of ``r2``.

    Example:
      >>> rmse([0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0])
      1.0
    """
    return float(np.sqrt((_errors(truth, predictions)[1] ** 2).mean()))


def errors(truth, predictions) -> dict[str, float]:
    """Returns ``r2``, ``mae`` and ``rmse`` in a dict.

    Example:
      >>> errors([1.0, 3.0], [2.0, 2.0])
      {'r2': 0.0, 'mae': 1.0, 'rmse': 1.0}
    """
    measures = {"r2": r2, "mae": mae, "rmse": rmse}
    return {name: measure(truth, predictions) for name, measure in measures.items()}


def _errors(truth, predictions):
    truth = _vector("truth", truth)
    predictions = _vector("predictions", predictions)
    if len(truth) != len(predictions):
        raise ValueError(
            f"predictions must have the length of truth, got {len(predictions)} for "
            f"{len(truth)}."
        )
    if not len(truth):
        raise ValueError("truth must not be empty, got 0 values.")
    return truth, predictions - truth


def _vector(name, values):
    values = as_numpy(name, values)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must be float[N], got {values.dtype}{list(values.shape)}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return values.astype(np.float64)


FLOOR_W = 1.0


def load_accuracy(truth, predictions, floor: float = FLOOR_W) -> float:
    """Returns the mean of ``1 - |prediction - truth| / max(truth, floor)``.

    Chapter 2 of the PFDRL work divides by the load, which is 0 for a device that is
    off. This function divides by at least ``floor`` and clips each accuracy to 0 from
    below. It equals the chapter's accuracy if loads exceed ``floor`` and errors do not
    exceed the load.

    Args:
      truth: ``float[...]``, loads in W, not negative.
      predictions: ``float[...]``, of the same shape.
      floor: smallest divisor in W, > 0.

    Raises:
      ValueError: if shapes differ, are empty, values are not finite, or ``floor`` is
        not positive.

    Example:
      The accuracies are 0.75, 0 (clipped), 0.75 and 1.

      >>> load_accuracy([64.0, 50.0, 0.0, 0.0], [48.0, 200.0, 0.25, 0.0])
      0.625

    References:
      Chapter 2, section 2.2.6, the second metric.
    """
    if not floor > 0:
        raise ValueError(f"floor must be > 0, got {floor!r}.")
    truth, predictions = _pair(truth, predictions)
    relative = np.abs(predictions - truth) / np.maximum(truth, floor)
    return float(np.maximum(1 - relative, 0).mean())


def mase(truth, predictions, baseline) -> float:
    """Returns the mean absolute error relative to that of a baseline.

    Values below 1 are better than the baseline. A common baseline is persistence, the
    last known value. Unlike Hyndman and Koehler, who scale by the one-step error of
    persistence on training data, this function uses the same minutes and horizon for
    both errors.

    Args:
      truth: ``float[...]``.
      predictions: ``float[...]``, of the same shape.
      baseline: ``float[...]``, predictions of the baseline.

    Returns:
      A float >= 0; 1 if both errors are 0, infinity if only the baseline's is 0.

    Raises:
      ValueError: if shapes differ, are empty, or values are not finite.

    Example:
      >>> mase([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [1.0, 1.0, 1.0])
      0.3333333333333333

    References:
      Hyndman and Koehler, Another look at measures of forecast accuracy, International
      Journal of Forecasting 2006.
    """
    errs = _mae(*_pair(truth, predictions))
    scale = _mae(*_pair(truth, baseline))
    if scale == 0:
        return 1.0 if errs == 0 else float("inf")
    return errs / scale


def forecast_errors(truth, predictions, baseline) -> dict[str, float]:
    """Returns ``accuracy``, ``mae``, ``rmse`` and ``mase``; arguments as for ``mase``.

    Example:
      >>> forecast_errors([2.0, 4.0], [2.0, 3.0], [2.0, 2.0])["mase"]
      0.5
    """
    truth, predictions = _pair(truth, predictions)
    return {
        "accuracy": load_accuracy(truth, predictions),
        "mae": _mae(truth, predictions),
        "rmse": float(np.sqrt(np.mean((predictions - truth) ** 2))),
        "mase": mase(truth, predictions, baseline),
    }


def _mae(truth, predictions):
    return float(np.abs(predictions - truth).mean())


def _pair(truth, predictions):
    truth = as_numpy("truth", truth, np.float64)
    predictions = as_numpy("predictions", predictions, np.float64)
    if truth.shape != predictions.shape or not truth.size:
        raise ValueError(
            f"truth and predictions must have one shape and not be empty, got "
            f"{truth.shape} and {predictions.shape}."
        )
    if not (np.isfinite(truth).all() and np.isfinite(predictions).all()):
        raise ValueError("loads must be finite, got NaN or infinity.")
    return truth, predictions
