"""Rivals' own scripts; each runs in an environment of its own."""
