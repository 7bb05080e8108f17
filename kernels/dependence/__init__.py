"""Mutual information between numbers and labels, from nearest neighbours."""

from jaxanon.kernels.dependence.api import mutual_information

__all__ = ["mutual_information"]
