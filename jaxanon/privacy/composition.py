"""Composition of ε-private releases and of randomized responses."""

import math
import numbers
from collections.abc import Mapping

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import is_instance, whole
from jaxanon.privacy.accounting import check_delta
from jaxanon.privacy.sampled_gaussian import ORDERS

HOUR_S = 3600.0


def sequential(releases: Mapping[float, int]) -> float:
    """Returns the ε of a whole stream: the sum over all releases.

    Neighbouring streams may differ in all windows, such as the streams of two persons.
    The sum is pure ε-privacy (δ = 0) for any dependence between windows.

    Args:
      releases: number of released windows by ε, such as ``{0.5: 120}``.

    Returns:
      ε >= 0; 0 without releases. Exact up to rounding in any order; infinite if the sum
      overflows.

    Raises:
      ValueError: if an ε is not > 0 and finite, or a count is below 0.
      TypeError: if an ε is not a number, or a count is not whole.

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
    """Returns the ε of a single window: the maximum over all releases.

    Neighbouring streams differ in one window. Windows must not overlap, and each may be
    released only once. Attributes that are constant over a stream, such as who wears
    the phone, leak through every window; use ``sequential`` for them.

    Args:
      releases: number of released windows by ε, as in ``sequential``.

    Returns:
      ε >= 0; 0 without releases.

    Raises:
      ValueError: if an ε is not > 0 and finite, or a count is below 0.
      TypeError: if an ε is not a number, or a count is not whole.

    Example:
      >>> parallel({0.1: 3, 2.0: 1})
      2.0

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, theorem 2, which holds only for
      these neighbours.
    """
    return max((epsilon for epsilon, count in _checked(releases) if count), default=0.0)


def epsilon_per_hour(epsilon: float, stride_s: float) -> float:
    """Returns the ε of one hour of windows, by ``sequential``.

    Args:
      epsilon: ε per window, > 0.
      stride_s: seconds between the starts of consecutive windows, > 0.

    Raises:
      ValueError: if an argument is not > 0 and finite.
      TypeError: if an argument is not a number.

    Example:
      >>> epsilon_per_hour(0.5, 1.0)
      1800.0
    """
    finite(zero=False, epsilon=epsilon, stride_s=stride_s)
    return float(epsilon) * HOUR_S / float(stride_s)


def _checked(releases):
    is_instance(dict, releases=releases)
    for epsilon, count in releases.items():
        finite(zero=False, epsilon=epsilon)
        if isinstance(count, bool) or not isinstance(count, numbers.Integral):
            raise TypeError(f"releases must have whole counts, got {count!r}.")
        if count < 0:
            raise ValueError(f"releases must have counts >= 0, got {count!r}.")
        yield float(epsilon), int(count)


# Divergences of randomized responses have a closed form at every order. The best order
# for many responses is near 1; dp-accounting ignores orders below 1.01.
ORDERS_NEAR_ONE = (1.011, 1.02, 1.04, 1.07, 1.12, 1.2, 1.35, 1.5, 1.75)


def responses_spent(epsilon: float, count: int, delta: float) -> float:
    """Returns the total ε of many ε-private randomized responses.

    Neighbours are any two data sets; a response may depend on earlier ones. Randomized
    response is the worst case among all ε-private mechanisms.

    Args:
      epsilon: ε of one response, > 0.
      count: number of responses, >= 0.
      delta: δ in (0, 1) of the composition.

    Returns:
      The smaller of ``count * epsilon`` (where δ is 0) and the bound from Rényi
      divergences, which is much smaller for many responses of small ε.

    Raises:
      ValueError, TypeError: if a number is out of range.

    Example:
      >>> responses_spent(1.0, 3, 1e-5), round(responses_spent(0.001, 10_000, 1e-5), 2)
      (3.0, 0.38)

    References:
      Mironov, Rényi differential privacy, CSF 2017, proposition 5; Kairouz, Oh and
      Viswanath, The composition theorem for differential privacy, ICML 2015, for
      randomized response as the worst case.
    """
    finite(zero=False, epsilon=epsilon)
    epsilon = float(epsilon)  # A NumPy number may have half precision.
    delta = check_delta(delta)
    count = whole("count", count, least=0)
    if count == 0:
        return 0.0
    # Imported here: SciPy takes about a second.
    from dp_accounting.rdp import rdp_privacy_accountant

    orders = (*ORDERS_NEAR_ONE, *ORDERS)
    divergences = [count * divergence(epsilon, order) for order in orders]
    bound, _ = rdp_privacy_accountant.compute_epsilon(orders, divergences, delta)
    return min(sequential({epsilon: count}), max(0.0, float(bound)))


def divergence(epsilon: float, order: float) -> float:
    """Returns the Rényi divergence between the two outcomes of a randomized response.

    For p = e^ε / (1 + e^ε) it is log(p^α (1 - p)^(1 - α) + (1 - p)^α p^(1 - α)) / (α -
    1). The code computes the sum minus 1 as a product whose factors are accurate even
    for tiny ε, where the sum itself would round to 1.

    Args:
      epsilon: ε > 0.
      order: order α > 1.

    Returns:
      A number in (0, ε].

    Example:
      >>> round(divergence(1e-9, 2.0) / 1e-18, 6), divergence(1000.0, 2.0)
      (1.0, 1000.0)

    References:
      Mironov, Rényi differential privacy, CSF 2017, proposition 6.
    """
    if order * epsilon > 500:  # The second term is below rounding.
        log_sum = order * epsilon - math.log1p(math.exp(-epsilon)) - epsilon
        return min(epsilon, log_sum / (order - 1))
    product = math.expm1(order * epsilon) * -math.expm1((1 - order) * epsilon)
    return min(epsilon, math.log1p(product / (1 + math.exp(epsilon))) / (order - 1))


def response_epsilon_for(epsilon: float, count: int, delta: float) -> float:
    """Returns the largest ε per response that keeps all responses within a budget.

    Args:
      epsilon: total ε of all responses, > 0.
      count: number of responses, >= 1.
      delta: δ in (0, 1).

    Returns:
      ε > 0, at most 0.1 % below the optimum and never above it.

    Raises:
      ValueError, TypeError: if a number is out of range.

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
        midpoint = math.sqrt(low * high)
        fits = responses_spent(midpoint, count, delta) <= epsilon
        low, high = (midpoint, high) if fits else (low, midpoint)
    return low
