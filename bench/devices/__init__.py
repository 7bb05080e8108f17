"""Rounds on several devices and processes, and clients stored on disk."""
