"""What randomised responses about one person cost, by dp-accounting."""

import math

from jaxanon.kernels.checks import whole
from jaxanon.kernels.setting_checks import finite
from jaxanon.privacy.accounting import checked_delta
from jaxanon.privacy.composition import sequential
from jaxanon.privacy.sampled import ORDERS

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
