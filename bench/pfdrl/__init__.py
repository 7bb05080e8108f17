"""Benchmark of PFDRL against other methods."""
