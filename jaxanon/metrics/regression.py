"""How far predicted numbers are from the true ones."""

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
