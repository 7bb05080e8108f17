"""Algorithms with a differential privacy guarantee."""
