"""How much noise is to be expected: DEEProtect's theorems 6 and 7, corrected."""

import math

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import whole


def raw_error(inputs: int, width: float, epsilon: float) -> float:
    """Expected L1 error of a window with Laplace noise on each of its numbers.

    Every number lies in a public interval of ``width``, so that two windows are up to
    ``inputs * width`` apart in L1, each number gets noise of that over ε, and the
    absolute noise adds up to ``inputs² width / ε``. The paper's equation 20 has neither
    factor.

    Args:
      inputs: numbers of a window, >= 1.
      width: ΔQ > 0.
      epsilon: of a window, > 0.

    Returns:
      The exact expectation, in the unit of ``width``.

    Raises:
      ValueError, TypeError: for another argument.

    Example:
      >>> raw_error(30, 1.0, 5.0)
      180.0

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, section VI and appendix XII-E.
    """
    inputs = whole("inputs", inputs, least=1)
    finite(zero=False, width=width, epsilon=epsilon)
    return inputs * inputs * float(width) / float(epsilon)


def feature_error(features: int, sensitivity: float, epsilon: float) -> float:
    """Expected L1 error of features with Laplace noise, by their L1 sensitivity.

    Theorems 6 and 7 with what their proofs leave out: the noise of a feature has scale
    ``sensitivity / ε``, so that ``features * sensitivity / ε`` is exact. With the
    published sensitivity ``√k d width`` that is ``d / (k √k)`` times less than
    ``raw_error``, 1.62 for 30 numbers and 7 features, not ``d / k``. In mode "named"
    the sensitivity is that of relaxed neighbours.

    Args:
      features: k >= 1.
      sensitivity: the most that neighbours' features differ by in L1, > 0.
      epsilon: of a window, > 0.

    Returns:
      The exact expectation, in the unit of the features.

    Raises:
      ValueError, TypeError: for another argument.

    Example:
      >>> published = feature_error(7, 7**0.5 * 30, 5.0)
      >>> round(raw_error(30, 1.0, 5.0) / published, 2)
      1.62

    References:
      DEEProtect, theorems 6 and 7, appendices XII-H and XII-I.
    """
    features = whole("features", features, least=1)
    finite(zero=False, sensitivity=sensitivity, epsilon=epsilon)
    return features * float(sensitivity) / float(epsilon)


def rebuilt_error(
    inputs: int, features: int, sensitivity: float, epsilon: float
) -> float:
    """Bound on the expected L1 error of a window rebuilt from features with noise.

    Orthonormal rows rebuild noise n as ``Wᵀ n``, as long as it is, and a vector of d
    numbers has an L1 norm of at most ``√d`` times its length: the expectation is at
    most ``√d √(2 k) sensitivity / ε``, by Jensen's inequality. What the features lose
    of the window comes on top of it.

    Args:
      inputs: d >= 1.
      features: k, from 1 to ``inputs``.
      sensitivity: as ``feature_error`` takes it.
      epsilon: of a window, > 0.

    Returns:
      An upper bound, in the unit of the window.

    Raises:
      ValueError, TypeError: for another argument.

    Example:
      >>> rebuilt_error(8, 4, 2.0, 1.0)
      16.0

    References:
      DEEProtect, theorem 6; its step from the variance to the error has no factor √d.
    """
    inputs = whole("inputs", inputs, least=1)
    features = whole("features", features, least=1)
    if features > inputs:
        raise ValueError(f"features must be at most {inputs}, got {features}.")
    finite(zero=False, sensitivity=sensitivity, epsilon=epsilon)
    return math.sqrt(2 * inputs * features) * float(sensitivity) / float(epsilon)
