"""Batched dynamic time warping of pairs of series."""

from jaxanon.kernels.warping.api import dtw, dtw_path
from jaxanon.kernels.warping.distance import WarpingPath

__all__ = ["WarpingPath", "dtw", "dtw_path"]
