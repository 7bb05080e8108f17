"""Models that leave for a device: graphs, what they are told, and what they hide."""

from jaxanon.exporting.attackers import export_attackers
from jaxanon.exporting.exporter import Exported, export, moved
from jaxanon.exporting.files import write_samples
from jaxanon.exporting.wearer import personalised
from jaxanon.kernels.portable import Draw, explicit

__all__ = [
    "Draw",
    "Exported",
    "explicit",
    "export",
    "export_attackers",
    "moved",
    "personalised",
    "write_samples",
]
