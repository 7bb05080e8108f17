"""Clipping of rows of gradients, and Gaussian noise scaled to the clip norms."""

from jaxanon.kernels.clipping.adaptive import (
    adapt_clip_norms,
    noise_multiplier_with_counts,
)
from jaxanon.kernels.clipping.api import clip_rows, clipped_sum
from jaxanon.kernels.clipping.bounded import (
    BoundedSum,
    joint_noise_multiplier,
    noise_stddevs,
)
from jaxanon.kernels.clipping.noise import (
    add_aggregate_client_noise,
    add_noise_to_sum,
    clip_and_noise_per_client,
)

__all__ = [
    "BoundedSum",
    "adapt_clip_norms",
    "add_aggregate_client_noise",
    "add_noise_to_sum",
    "clip_and_noise_per_client",
    "clip_rows",
    "clipped_sum",
    "joint_noise_multiplier",
    "noise_multiplier_with_counts",
    "noise_stddevs",
]
