"""Algorithms that group clients by the similarity of their models."""
