"""Anonymization of whole recordings: files or tables in, safe ones out."""
