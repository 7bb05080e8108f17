"""Mutual information between numbers and labels, from nearest neighbours."""

from jaxanon.kernels.mutual_information.api import mutual_information

__all__ = ["mutual_information"]
