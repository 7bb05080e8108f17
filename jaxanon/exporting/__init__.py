"""Models that leave for a device: graphs, what they are told, and what they hide."""

from jaxanon.exporting.attackers import export_attackers
from jaxanon.exporting.explicit import Draw, explicit
from jaxanon.exporting.export import Exported, export, moved
from jaxanon.exporting.own import personalised
from jaxanon.exporting.samples import write_samples

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
