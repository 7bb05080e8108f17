"""How far predicted numbers and forecasts are from the true ones."""

import numpy as np


def r2(truth, predictions) -> float:
    """Share of the truth's variance that predictions explain, 1 - SSE / SST.

    1 is perfect, 0 what the mean of the truth would reach, and there is no lower bound.
    Of a truth that is constant, where SST is 0, it is 1 if every prediction is right
    and else 0, as in scikit-learn.

    Args:
      truth: ``float[N]``, N at least 1.
      predictions: ``float[N]``.

    Raises:
      ValueError: if either is no vector of finite numbers, their lengths differ, or
        there is nothing to score.

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
    """Mean absolute error, in the truth's unit; arguments and errors as of ``r2``.

    Example:
      >>> mae([1.0, 2.0], [1.0, 5.0])
      1.5
    """
    return float(np.abs(_errors(truth, predictions)[1]).mean())


def rmse(truth, predictions) -> float:
    """Root of the mean squared error, in the truth's unit; otherwise as ``mae``.

    Example:
      >>> rmse([0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0])
      1.0
    """
    return float(np.sqrt((_errors(truth, predictions)[1] ** 2).mean()))


def errors(truth, predictions) -> dict[str, float]:
    """``r2``, ``mae`` and ``rmse`` together, by name.

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
            f"predictions must be one for each true number: got {len(predictions)} for "
            f"{len(truth)}."
        )
    if not len(truth):
        raise ValueError("truth is empty: there is nothing to score.")
    return truth, predictions - truth


def _vector(name, values):
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must be float[N], got {values.dtype}{list(values.shape)}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return values.astype(np.float64)


FLOOR_W = 1.0


def load_accuracy(truth, predictions, floor: float = FLOOR_W) -> float:
    """Mean of ``1 - |prediction - truth| / truth``, made safe where that is zero.

    Chapter 2 divides by what the device takes, which is nothing when it is off. Here
    what it takes counts as ``floor`` at least, and no single accuracy is below 0: where
    the load is above the floor, and the error no larger than the load, that is the
    chapter's. A device that is off is predicted with 1 less the error in W.

    Args:
      truth: ``float[...]``, W, not negative.
      predictions: of the same shape.
      floor: W, > 0.

    Raises:
      ValueError: if shapes differ, nothing is there, something is not finite, or the
        floor is not positive.

    Example:
      A quarter too little, four times too much, 0.25 W where there is nothing.

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
    """Mean absolute error over that of a baseline: below 1 is better than it.

    With the last value known held as the baseline (persistence) that is the error
    scaled as Hyndman and Koehler do, but on the same minutes and so many steps ahead,
    in place of one step ahead in training: so that persistence itself is 1.

    Args:
      truth, predictions: as ``load_accuracy``.
      baseline: predictions of the same shape.

    Returns:
      1 where neither errs, infinity where the baseline alone does not.

    Raises:
      ValueError: as ``load_accuracy``.

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
    """``accuracy``, ``mae``, ``rmse`` (W) and ``mase`` together; arguments of ``mase``.

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
    truth = np.asarray(truth, np.float64)
    predictions = np.asarray(predictions, np.float64)
    if truth.shape != predictions.shape or not truth.size:
        raise ValueError(
            f"truth and what is predicted must have one shape and not be empty, got "
            f"{truth.shape} and {predictions.shape}."
        )
    if not (np.isfinite(truth).all() and np.isfinite(predictions).all()):
        raise ValueError("loads must be finite, got NaN or infinity.")
    return truth, predictions
