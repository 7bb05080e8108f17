"""Mutual information of numbers and labels, and an upper bound for two vectors."""

from jaxanon.kernels.dependence.api import mutual_information
from jaxanon.kernels.dependence.club import club_bound

__all__ = ["club_bound", "mutual_information"]
