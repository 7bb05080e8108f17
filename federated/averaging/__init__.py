"""Algorithms that train one global model by averaging."""
