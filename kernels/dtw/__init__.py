"""Dynamic time warping of many pairs of series at once."""

from jaxanon.kernels.dtw.api import dtw, dtw_path
from jaxanon.kernels.dtw.distance import WarpingPath

__all__ = ["WarpingPath", "dtw", "dtw_path"]
