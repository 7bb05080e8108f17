"""Matrices with orthonormal rows, and sensitivities of features."""

from jaxanon.kernels.orthogonal.rows import orthonormal_rows, orthonormality_residual
from jaxanon.kernels.orthogonal.sensitivity import (
    RelaxedSensitivity,
    deeprotect_feature_sensitivity,
    feature_sensitivity,
    relaxed_sensitivity,
    relaxed_span_sensitivity,
)

__all__ = [
    "RelaxedSensitivity",
    "deeprotect_feature_sensitivity",
    "feature_sensitivity",
    "orthonormal_rows",
    "orthonormality_residual",
    "relaxed_sensitivity",
    "relaxed_span_sensitivity",
]
