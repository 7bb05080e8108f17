"""What ε-private releases of a stream's windows add up to."""

import math
import numbers
from collections.abc import Mapping

from jaxanon.kernels.setting_checks import finite

HOUR_S = 3600.0


def sequential(releases: Mapping[float, int]) -> float:
    """The ε of a whole stream: what all releases together tell of one person.

    Neighbouring streams differ in any of their windows, as they do when one person is
    put in another's place; every release tells of that, so budgets add up. Pure
    ε-privacy, δ = 0, however the windows depend on one another.

    Args:
      releases: how many windows left by each ε, such as ``{0.5: 120}``.

    Returns:
      A number >= 0; 0 where nothing left. Exact to rounding, whatever the order;
      infinite beyond the largest of floats.

    Raises:
      ValueError: for an ε that is not > 0 and finite, or a count below 0.
      TypeError: for an ε that is no number, or a count that is no whole one.

    Example:
      >>> sequential({0.1: 3, 2.0: 1})
      2.3

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, theorem 1; McSherry, Privacy
      Integrated Queries, SIGMOD 2009, theorem 3.
    """
    try:
        return math.fsum(epsilon * count for epsilon, count in _checked(releases))
    except OverflowError:
        return math.inf


def parallel(releases: Mapping[float, int]) -> float:
    """The ε of one window: neighbouring streams that differ in a single window.

    Each window enters one release, so the largest counts: windows must not overlap,
    or one sample is in several, and none may be released twice. It says nothing of what
    stays the same over a stream, such as who is wearing the phone: that is told by
    every window, and ``sequential`` counts it.

    Args:
      releases: as ``sequential`` takes them.

    Returns:
      A number >= 0; 0 where nothing left.

    Raises:
      ValueError, TypeError: as ``sequential``.

    Example:
      >>> parallel({0.1: 3, 2.0: 1})
      2.0

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, theorem 2, whose neighbours have to
      be these for it to hold.
    """
    return max((epsilon for epsilon, count in _checked(releases) if count), default=0.0)


def per_hour(epsilon: float, stride_s: float) -> float:
    """The ε of an hour of windows, by ``sequential``.

    Args:
      epsilon: of a window, > 0.
      stride_s: seconds from one window's start to the next one's, > 0.

    Raises:
      ValueError: if one is not > 0 and finite.
      TypeError: if one is no number.

    Example:
      >>> per_hour(0.5, 1.0)
      1800.0
    """
    finite(zero=False, epsilon=epsilon, stride_s=stride_s)
    return float(epsilon) * HOUR_S / float(stride_s)


def _checked(releases):
    for epsilon, count in releases.items():
        finite(zero=False, epsilon=epsilon)
        if isinstance(count, bool) or not isinstance(count, numbers.Integral):
            raise TypeError(f"a count of windows must be whole, got {count!r}.")
        if count < 0:
            raise ValueError(f"a count of windows must be >= 0, got {count!r}.")
        yield float(epsilon), int(count)
