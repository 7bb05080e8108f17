"""Anonymization of whole recordings: files or tables in, safe ones out."""

from jaxanon.streaming.anonymizing import (
    Recording,
    Released,
    anonymize_recordings,
)
from jaxanon.streaming.stream import SafeStream, Settings

__all__ = [
    "Recording",
    "Released",
    "SafeStream",
    "Settings",
    "anonymize_recordings",
]
