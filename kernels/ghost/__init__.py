"""Clipped sums of per-example gradients that are never made."""

from jaxanon.kernels.ghost.api import ExampleInfo, clipped_gradient_sum

__all__ = ["ExampleInfo", "clipped_gradient_sum"]
