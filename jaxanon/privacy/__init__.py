"""Privacy accounting, calibration of noise, and mechanisms with a sensitivity."""

from jaxanon.privacy.accounting import (
    ACCOUNTANTS,
    epsilon_spent,
    steps_within,
    warn_of_delta,
    warn_of_epsilon,
)
from jaxanon.privacy.calibration import noise_multiplier_for
from jaxanon.privacy.composition import (
    epsilon_per_hour,
    parallel,
    response_epsilon_for,
    responses_spent,
    sequential,
)
from jaxanon.privacy.expected_error import feature_error, raw_error, rebuilt_error
from jaxanon.privacy.layer_noise import (
    READINGS,
    layer_noise_multipliers,
    noise_multiplier_of_layers,
)
from jaxanon.privacy.optax_dp import clipped_grad, dp_aggregate
from jaxanon.privacy.sampled_gaussian import SampledGaussian

__all__ = [
    "ACCOUNTANTS",
    "READINGS",
    "SampledGaussian",
    "clipped_grad",
    "dp_aggregate",
    "epsilon_per_hour",
    "epsilon_spent",
    "feature_error",
    "layer_noise_multipliers",
    "noise_multiplier_for",
    "noise_multiplier_of_layers",
    "parallel",
    "raw_error",
    "rebuilt_error",
    "response_epsilon_for",
    "responses_spent",
    "sequential",
    "steps_within",
    "warn_of_delta",
    "warn_of_epsilon",
]
