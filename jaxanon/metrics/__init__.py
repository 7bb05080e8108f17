"""Measures of what anonymized windows still tell."""

from jaxanon.metrics.acceleration import acceleration
from jaxanon.metrics.auditing import epsilon_lower_bound, share_bounds
from jaxanon.metrics.classification import (
    accuracy,
    balanced_accuracy,
    chance,
    confusion_matrix,
    f1,
    macro_f1,
    majority,
    precision,
    recall,
    scores,
)
from jaxanon.metrics.distortion import (
    statistics_kept,
    step_errors,
    warping_distances,
)
from jaxanon.metrics.forecasts import forecast_errors, load_accuracy, mase
from jaxanon.metrics.information import informativeness, mutual_information
from jaxanon.metrics.ranking import (
    auc,
    equal_error_rate,
    roc,
    true_positive_rate,
)
from jaxanon.metrics.regression import errors, mae, r2, rmse

__all__ = [
    "acceleration",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "chance",
    "confusion_matrix",
    "epsilon_lower_bound",
    "equal_error_rate",
    "errors",
    "f1",
    "forecast_errors",
    "informativeness",
    "load_accuracy",
    "macro_f1",
    "mae",
    "majority",
    "mase",
    "mutual_information",
    "precision",
    "r2",
    "recall",
    "rmse",
    "roc",
    "scores",
    "share_bounds",
    "statistics_kept",
    "step_errors",
    "true_positive_rate",
    "warping_distances",
]
