"""Noise mechanisms and random choices scaled by a carried sensitivity."""

from jaxanon.kernels.mechanisms.bounded import (
    BoundedValue,
    bounded_value,
    clip_to_range,
)
from jaxanon.kernels.mechanisms.choice import (
    exponential_mechanism,
    randomized_response,
    randomized_response_epsilon,
    randomized_response_frequencies,
    report_noisy_max,
)
from jaxanon.kernels.mechanisms.grid import (
    LaplaceGrid,
    discrete_laplace_noise,
    grid_laplace_mechanism,
    laplace_grid,
)
from jaxanon.kernels.mechanisms.noise import (
    gaussian_mechanism,
    gaussian_noise,
    laplace_mechanism,
    laplace_noise,
)
from jaxanon.kernels.mechanisms.norms import norm_mechanism
from jaxanon.kernels.mechanisms.sphere import Cap, priv_unit, priv_unit_cap

__all__ = [
    "BoundedValue",
    "Cap",
    "LaplaceGrid",
    "bounded_value",
    "clip_to_range",
    "discrete_laplace_noise",
    "exponential_mechanism",
    "gaussian_mechanism",
    "gaussian_noise",
    "grid_laplace_mechanism",
    "laplace_grid",
    "laplace_mechanism",
    "laplace_noise",
    "norm_mechanism",
    "priv_unit",
    "priv_unit_cap",
    "randomized_response",
    "randomized_response_epsilon",
    "randomized_response_frequencies",
    "report_noisy_max",
]
