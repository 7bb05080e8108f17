"""A Gaussian release, and its exact privacy loss."""

import math

from scipy import optimize, stats

from jaxanon.privacy import SampledGaussian


def exact(multiplier, delta):
    """Returns ε of one Gaussian release, by Balle and Wang's equation for δ."""

    def excess(epsilon):
        half, shift = 1 / (2 * multiplier), epsilon * multiplier
        log = stats.norm.logcdf(-half - shift) + epsilon
        return stats.norm.cdf(half - shift) - math.exp(log) - delta

    return optimize.brentq(excess, 0, 1e4) if excess(0) > 0 else 0.0


def sampled(multiplier, probability, steps):
    """Samples ``steps`` sums of samples."""
    return SampledGaussian(
        noise_multiplier=multiplier, sampling_probability=probability, steps=steps
    )
