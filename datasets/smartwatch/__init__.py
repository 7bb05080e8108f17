"""Shoulder exercises recorded with a smartwatch."""
