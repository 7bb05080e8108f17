"""Measures of what anonymized windows still tell."""

from jaxanon.metrics.acceleration import acceleration
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
from jaxanon.metrics.information import informativeness, mutual_information
from jaxanon.metrics.ranking import auc, equal_error_rate

__all__ = [
    "acceleration",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "chance",
    "confusion_matrix",
    "equal_error_rate",
    "f1",
    "informativeness",
    "macro_f1",
    "majority",
    "mutual_information",
    "precision",
    "recall",
    "scores",
    "statistics_kept",
    "step_errors",
    "warping_distances",
]
