"""Evaluation of runs: utility, attacks, distortion and budgets."""

from jaxanon.evaluation.anonymizers import (
    evaluate,
    evaluate_each,
    evaluate_many,
    train_raw_classifiers,
)
from jaxanon.evaluation.left_out import leave_one_out

__all__ = [
    "evaluate",
    "evaluate_each",
    "evaluate_many",
    "leave_one_out",
    "train_raw_classifiers",
]
