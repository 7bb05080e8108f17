"""Export of trained anonymizers and attackers as files for devices."""

from jaxanon.exporting.attackers import export_attackers
from jaxanon.exporting.exporter import Exported, export, moved
from jaxanon.exporting.files import write_samples
from jaxanon.exporting.folder import (
    ExportedFolder,
    Member,
    export_choice,
    export_members,
)
from jaxanon.exporting.wearer import personalised
from jaxanon.kernels.portable import Draw, explicit

__all__ = [
    "Draw",
    "Exported",
    "ExportedFolder",
    "Member",
    "explicit",
    "export",
    "export_attackers",
    "export_choice",
    "export_members",
    "moved",
    "personalised",
    "write_samples",
]
