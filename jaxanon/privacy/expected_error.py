"""Expected error of Laplace noise: DEEProtect's theorems 6 and 7, corrected."""

import math

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import whole


def raw_error(inputs: int, width: float, epsilon: float) -> float:
    """Returns the expected L1 error of a window with Laplace noise on each value.

    Each value lies in a public interval of ``width``, so the L1 sensitivity of a window
    is ``inputs * width``. The noise of each value has that sensitivity over ε as its
    scale, and the absolute noise sums to ``inputs² width / ε``. The paper's equation 20
    lacks both factors.

    Args:
      inputs: number of values in a window, >= 1.
      width: width ΔQ of the public interval, > 0.
      epsilon: ε per window, > 0.

    Returns:
      The exact expectation, in the unit of ``width``.

    Raises:
      ValueError: if an argument is out of range.
      TypeError: if an argument has the wrong type.

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
    """Returns the expected L1 error of features with Laplace noise.

    Corrects theorems 6 and 7: the noise of a feature has scale ``sensitivity / ε``, so
    that ``features * sensitivity / ε`` is exact. With the published sensitivity ``√k d
    width`` this is ``d / (k √k)`` times smaller than ``raw_error`` (1.62 for 30 values
    and 7 features), not ``d / k`` times. In the mode "named" the sensitivity is that of
    relaxed neighbours.

    Args:
      features: number of features k >= 1.
      sensitivity: L1 sensitivity of the features, > 0.
      epsilon: ε per window, > 0.

    Returns:
      The exact expectation, in the unit of the features.

    Raises:
      ValueError: if an argument is out of range.
      TypeError: if an argument has the wrong type.

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
    """Bounds the expected L1 error of a window rebuilt from noisy features.

    Orthonormal rows map noise n to ``Wᵀ n`` with the same L2 norm. The L1 norm of d
    values is at most ``√d`` times their L2 norm, so the expectation is at most ``√d √(2
    k) sensitivity / ε`` by Jensen's inequality. The bound excludes the reconstruction
    error of the features themselves.

    Args:
      inputs: number of values in a window d >= 1.
      features: number of features k in [1, ``inputs``].
      sensitivity: L1 sensitivity, > 0.
      epsilon: ε per window, > 0.

    Returns:
      An upper bound, in the unit of the window.

    Raises:
      ValueError: if an argument is out of range.
      TypeError: if an argument has the wrong type.

    Example:
      >>> rebuilt_error(8, 4, 2.0, 1.0)
      16.0

    References:
      DEEProtect, theorem 6, whose step from variance to error lacks the factor √d.
    """
    inputs = whole("inputs", inputs, least=1)
    features = whole("features", features, least=1)
    if features > inputs:
        raise ValueError(f"features must be at most {inputs}, got {features}.")
    finite(zero=False, sensitivity=sensitivity, epsilon=epsilon)
    return math.sqrt(2 * inputs * features) * float(sensitivity) / float(epsilon)
