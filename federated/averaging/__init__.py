"""Algorithms that average one global model."""
