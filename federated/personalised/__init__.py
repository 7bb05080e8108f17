"""Algorithms with a personal model or personal layers per client."""
