"""Aggregation of client updates: robust means and exact fixed-point sums."""

from jaxanon.kernels.aggregation.fixed_point import (
    fixed_point_decode,
    fixed_point_encode,
    fixed_point_resolution,
)
from jaxanon.kernels.aggregation.krum import krum, squared_distances
from jaxanon.kernels.aggregation.means import (
    coordinate_median,
    layer_mean,
    trimmed_mean,
)

__all__ = [
    "coordinate_median",
    "fixed_point_decode",
    "fixed_point_encode",
    "fixed_point_resolution",
    "krum",
    "layer_mean",
    "squared_distances",
    "trimmed_mean",
]
