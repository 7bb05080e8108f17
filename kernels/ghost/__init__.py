"""Clipped gradient sums without per-example gradients, and an LSTM made for them."""

from jaxanon.kernels.ghost.api import (
    ExampleInfo,
    clipped_gradient_bytes,
    clipped_gradient_sum,
    leaves_without_factors,
)
from jaxanon.kernels.ghost.recurrent import lstm

__all__ = [
    "ExampleInfo",
    "clipped_gradient_bytes",
    "clipped_gradient_sum",
    "leaves_without_factors",
    "lstm",
]
