"""Rounds on several devices and processes, and clients on disk."""
