"""What ε-private releases add up to, and sums of randomised responses."""

import math
import numbers
from collections.abc import Mapping

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import whole
from jaxanon.privacy.accounting import checked_delta
from jaxanon.privacy.sampled_gaussian import ORDERS

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


def epsilon_per_hour(epsilon: float, stride_s: float) -> float:
    """The ε of an hour of windows, by ``sequential``.

    Args:
      epsilon: of a window, > 0.
      stride_s: seconds from one window's start to the next one's, > 0.

    Raises:
      ValueError: if one is not > 0 and finite.
      TypeError: if one is no number.

    Example:
      >>> epsilon_per_hour(0.5, 1.0)
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


# Divergences of two values are in closed form at every order; sums of many of them are
# least near 1; dp-accounting leaves out those below 1.01.
CLOSE = (1.011, 1.02, 1.04, 1.07, 1.12, 1.2, 1.35, 1.5, 1.75)


def responses_spent(epsilon: float, count: int, delta: float) -> float:
    """The ε of many answers of one of two values, each of them ε-private.

    Neighbours are any two data sets; answers may depend on those before. Whatever the
    ε-private mechanism, none tells more than a randomised response does.

    Args:
      epsilon: of one answer, > 0.
      count: answers, >= 0.
      delta: δ in (0, 1) of the sum.

    Returns:
      The lesser of ``count * epsilon``, with which δ is 0, and what Rényi divergences
      add up to: far less where answers are many and ε small.

    Raises:
      ValueError, TypeError: for numbers out of their range.

    Example:
      >>> responses_spent(1.0, 3, 1e-5), round(responses_spent(0.001, 10_000, 1e-5), 2)
      (3.0, 0.38)

    References:
      Mironov, Rényi differential privacy, CSF 2017, proposition 5; Kairouz, Oh and
      Viswanath, The composition theorem for differential privacy, ICML 2015, for
      randomised response as the worst of all.
    """
    finite(zero=False, epsilon=epsilon)
    epsilon = float(epsilon)  # NumPy's own may be of half precision.
    delta = checked_delta(delta)
    count = whole("count", count, least=0)
    if count == 0:
        return 0.0
    # SciPy takes a second to come.
    from dp_accounting.rdp import rdp_privacy_accountant

    orders = (*CLOSE, *ORDERS)
    told = [count * divergence(epsilon, order) for order in orders]
    found, _ = rdp_privacy_accountant.compute_epsilon(orders, told, delta)
    return min(sequential({epsilon: count}), max(0.0, float(found)))


def divergence(epsilon: float, order: float) -> float:
    """Rényi's divergence of the two answers of a randomised response.

    With p = e^ε / (1 + e^ε) it is log(p^α (1 - p)^(1 - α) + (1 - p)^α p^(1 - α)) / (α -
    1); of the sum less 1 each factor is known to all digits, however small ε is, where
    the sum itself would be 1.

    Args:
      epsilon: > 0.
      order: α > 1.

    Returns:
      A number in (0, ε].

    Example:
      >>> round(divergence(1e-9, 2.0) / 1e-18, 6), divergence(1000.0, 2.0)
      (1.0, 1000.0)

    References:
      Mironov, Rényi differential privacy, CSF 2017, proposition 6.
    """
    if order * epsilon > 500:  # The other value adds nothing that could be seen.
        more = order * epsilon - math.log1p(math.exp(-epsilon)) - epsilon
        return min(epsilon, more / (order - 1))
    more = math.expm1(order * epsilon) * -math.expm1((1 - order) * epsilon)
    return min(epsilon, math.log1p(more / (1 + math.exp(epsilon))) / (order - 1))


def response_epsilon_for(epsilon: float, count: int, delta: float) -> float:
    """The largest ε of each answer with which all of them keep within a budget.

    Args:
      epsilon: that all answers may cost together, > 0.
      count: answers, >= 1.
      delta: δ in (0, 1).

    Returns:
      A number > 0, by at most a thousandth smaller than it may be, never larger.

    Raises:
      ValueError, TypeError: for numbers out of their range.

    Example:
      >>> each = response_epsilon_for(2.0, 10_000, 1e-5)
      >>> round(each, 4), responses_spent(each, 10_000, 1e-5) <= 2.0
      (0.0047, True)
    """
    finite(zero=False, epsilon=epsilon)
    epsilon = float(epsilon)
    low = epsilon / whole("count", count, least=1)
    high = 2 * epsilon
    while high - low > 1e-3 * low:
        middle = math.sqrt(low * high)
        fits = responses_spent(middle, count, delta) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low
