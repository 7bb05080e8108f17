"""Clipping rows of gradients, and the Gaussian noise that their bounds call for."""

from jaxanon.kernels.clipping.adaptive import (
    adapt_max_norms,
    noise_multiplier_beside_counts,
)
from jaxanon.kernels.clipping.api import clip_rows, clipped_sum
from jaxanon.kernels.clipping.bounded import (
    BoundedSum,
    noise_multiplier_of_groups,
    noise_stddevs,
)
from jaxanon.kernels.clipping.noise import (
    add_aggregate_client_noise,
    add_noise_to_sum,
    clip_and_noise_per_client,
)

__all__ = [
    "BoundedSum",
    "adapt_max_norms",
    "add_aggregate_client_noise",
    "add_noise_to_sum",
    "clip_and_noise_per_client",
    "clip_rows",
    "clipped_sum",
    "noise_multiplier_beside_counts",
    "noise_multiplier_of_groups",
    "noise_stddevs",
]
