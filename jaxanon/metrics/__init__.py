"""Metrics of utility, privacy and distortion."""

from jaxanon.metrics.accelerometer import acceleration, find_accelerometer
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
    compare_statistics,
    step_errors,
    warping_distances,
)
from jaxanon.metrics.epsilon_bounds import (
    epsilon_from_guesses,
    epsilon_lower_bound,
    proportion_bounds,
)
from jaxanon.metrics.fidelity import (
    autocorrelation_error,
    cross_channel_error,
    frechet_distance,
    memorization,
    mmd,
    nearest_distances,
)
from jaxanon.metrics.information import informativeness, mutual_information_table
from jaxanon.metrics.regression import (
    errors,
    forecast_errors,
    load_accuracy,
    mae,
    mase,
    r2,
    rmse,
)
from jaxanon.metrics.roc_analysis import (
    auc,
    auc_interval,
    equal_error_rate,
    roc,
    true_positive_rate,
)
from jaxanon.metrics.synthetic_utility import (
    discriminative_score,
    predictive_score,
    transfer_scores,
)

__all__ = [
    "acceleration",
    "accuracy",
    "auc",
    "auc_interval",
    "autocorrelation_error",
    "balanced_accuracy",
    "chance",
    "compare_statistics",
    "confusion_matrix",
    "cross_channel_error",
    "discriminative_score",
    "epsilon_from_guesses",
    "epsilon_lower_bound",
    "equal_error_rate",
    "errors",
    "f1",
    "find_accelerometer",
    "forecast_errors",
    "frechet_distance",
    "informativeness",
    "load_accuracy",
    "macro_f1",
    "mae",
    "majority",
    "mase",
    "memorization",
    "mmd",
    "mutual_information_table",
    "nearest_distances",
    "precision",
    "predictive_score",
    "proportion_bounds",
    "r2",
    "recall",
    "rmse",
    "roc",
    "scores",
    "step_errors",
    "transfer_scores",
    "true_positive_rate",
    "warping_distances",
]
