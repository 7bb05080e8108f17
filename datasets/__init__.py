"""Sensor windows, by name or from a file: cut, split and stacked by client."""

from jaxanon.datasets.clients import Clients, by_client
from jaxanon.datasets.experiments import hold_out_subjects, imbalance
from jaxanon.datasets.exporting import export
from jaxanon.datasets.loading import load
from jaxanon.datasets.own_csv import import_csv
from jaxanon.datasets.registry import describe, names, whereabouts
from jaxanon.datasets.spec import Data, Spec, Windows

__all__ = [
    "Clients",
    "Data",
    "Spec",
    "Windows",
    "by_client",
    "describe",
    "export",
    "hold_out_subjects",
    "imbalance",
    "import_csv",
    "load",
    "names",
    "whereabouts",
]
