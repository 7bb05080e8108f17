"""Data sets of sensor windows, by name or from a file, split and stacked by client."""

from jaxanon.datasets.clients import Clients, by_client
from jaxanon.datasets.experiments import hold_out_subjects, imbalance
from jaxanon.datasets.exporting import export
from jaxanon.datasets.importing.convert import import_recordings
from jaxanon.datasets.loading import load
from jaxanon.datasets.registry import data_locations, describe, names
from jaxanon.datasets.spec import Data, Spec, Windows

__all__ = [
    "Clients",
    "Data",
    "Spec",
    "Windows",
    "by_client",
    "data_locations",
    "describe",
    "export",
    "hold_out_subjects",
    "imbalance",
    "import_recordings",
    "load",
    "names",
]
