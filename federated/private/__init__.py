"""Algorithms with differential privacy."""
