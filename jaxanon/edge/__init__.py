"""Anonymizers on a device: needs NumPy and onnxruntime, and no JAX."""
