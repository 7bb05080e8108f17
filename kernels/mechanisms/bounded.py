"""Values that carry their sensitivities."""

import dataclasses
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import as_array, known, not_negative, numeric
from jaxanon.kernels.precision import wide

MAX_INTEGER = 1 << 24  # float32 represents every integer up to this magnitude.


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BoundedValue:
    """An array with its sensitivities, which determine the scale of noise.

    The sensitivities bound the change of the whole array between neighbouring inputs
    in L1, L2 and L∞ norm. Create it with ``clip_to_range`` or ``bounded_value``. All
    four fields are leaves, so ``vmap`` can sweep sensitivities. Leaves become arrays at
    a ``jit`` boundary.

    Example:
      >>> BoundedValue(jnp.zeros(2), 2.0, 2.0**0.5, 1.0).linf_sensitivity
      1.0
    """

    value: Any  # float[...]
    l1_sensitivity: Any  # float or float[]: bound on the sum of changes
    l2_sensitivity: Any  # float or float[]: bound on the Euclidean norm of changes
    linf_sensitivity: Any  # float or float[]: bound on the largest change


def bounded_only(**named) -> None:
    """Raises TypeError unless every value is a ``BoundedValue``."""
    for name, value in named.items():
        if not isinstance(value, BoundedValue):
            raise TypeError(
                f"{name} must be a BoundedValue, which carries its sensitivity, got "
                f"{type(value).__name__}; use clip_to_range or bounded_value."
            )


def bounded_value(value, *, l1=None, l2=None, linf=None) -> BoundedValue:
    """Attaches proven sensitivities to a value and derives the others.

    For n numbers, L∞ <= L2 <= L1 <= √n L2, L1 <= n L∞ and L2 <= √(L1 L∞). Each
    sensitivity becomes the smallest value that these inequalities allow.

    Args:
      value: ``float[...]``, n numbers. Integers become float32, which is exact up to
        2^24 = 16,777,216. Larger integers raise an error on the host and are clipped on
        a device, because rounding could exceed the proven sensitivity.
      l1, l2, linf: maximum change of the value between neighbours in each norm, numbers
        >= 0; may be traced. At least one is required.

    Returns:
      ``BoundedValue``; Python numbers stay Python floats.

    Raises:
      ValueError: if all sensitivities are None, one is negative or not a scalar, or an
        integer on the host is above 2^24 in magnitude.

    Example:
      >>> bounded = bounded_value(jnp.zeros(4), linf=0.5)
      >>> bounded.l1_sensitivity, bounded.l2_sensitivity, bounded.linf_sensitivity
      (2.0, 1.0, 0.5)
    """
    given = {"l1": l1, "l2": l2, "linf": linf}
    given = {name: bound for name, bound in given.items() if bound is not None}
    numeric(value=value, **given)
    if not given:
        raise ValueError("one of l1, l2 and linf must be given, got none.")
    for name, bound in given.items():
        if jnp.shape(bound) != ():
            raise ValueError(
                f"{name} must be a scalar for the whole value, got shape "
                f"{jnp.shape(bound)}; combine the bounds of the entries first."
            )
    not_negative(**given)
    value = _exact(value)
    n, least = value.size, _least(given.values())
    of = lambda name, factor=1.0: [factor * given[name]] if name in given else []
    one = least(*of("l1"), *of("l2", n**0.5), *of("linf", n))
    most = least(*given.values())
    two = least(one, *of("l2"), *of("linf", n**0.5))
    if "l1" in given and "linf" in given:  # Otherwise the root only adds rounding.
        two = least(two, one**0.5 * most**0.5)
    return BoundedValue(value, one, two, least(one, two, most))


def clip_to_range(x, low, high) -> BoundedValue:
    """Clips every number to a public range, which bounds the sensitivity.

    Neighbours are any two arrays of this shape: one person's whole array is replaced
    (local privacy). Therefore L∞ = high - low; for n numbers L1 is n times and L2 √n
    times that. The range must be public: a range computed from the data leaks and gives
    no guarantee.

    Args:
      x: ``float[...]``. NaN becomes ``low``; infinities become the ends.
      low, high: numbers or ``float[]`` with low < high, rounded to the dtype of ``x``.
        The sensitivity uses the rounded values. An empty array has sensitivity 0.

    Returns:
      ``BoundedValue`` in the dtype of ``x``.

    Raises:
      ValueError: if ``low`` is not below ``high``, or one is not a scalar.

    Example:
      >>> bounded = clip_to_range(jnp.array([-3.0, 0.5, jnp.nan, 9.0]), 0.0, 2.0)
      >>> bounded.value
      Array([0. , 0.5, 0. , 2. ], dtype=float32)
      >>> bounded.l1_sensitivity, bounded.l2_sensitivity, bounded.linf_sensitivity
      (8.0, 4.0, 2.0)

    References:
      Nissim, Raskhodnikova and Smith, Smooth Sensitivity and Sampling, STOC 2007, on
      why a sensitivity computed from the data gives no protection.
    """
    x = as_array("x", x)
    numeric(low=low, high=high)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(jnp.float32)
    for name, bound in (("low", low), ("high", high)):
        if jnp.shape(bound) != ():
            raise ValueError(
                f"{name} must be a scalar, got shape {jnp.shape(bound)}; scale the "
                "channels to one range first."
            )
    low, high = _rounded(low, x.dtype), _rounded(high, x.dtype)
    numbers_ = isinstance(low, float) and isinstance(high, float)
    if numbers_ and not (-np.inf < low < high < np.inf):
        raise ValueError(
            f"low must be below high and both finite, got {low} and {high} in "
            f"{x.dtype}."
        )
    value = jnp.where(jnp.isnan(x), low, jnp.clip(x, low, high)).astype(x.dtype)
    if not numbers_:
        low, high = (jnp.asarray(end, wide(x.dtype)) for end in (low, high))
    return bounded_value(value, linf=high - low)


def _exact(value):
    """Returns the value as floats; integers must be exactly representable."""
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        value = np.asarray(value)
        whole = np.issubdtype(value.dtype, np.integer) and value.size
        if whole and not -MAX_INTEGER <= value.min() <= value.max() <= MAX_INTEGER:
            raise ValueError(
                f"value must hold integers up to {MAX_INTEGER} in magnitude, which are "
                f"exact in float32, got {value.min()} to {value.max()}; use larger "
                "units, or convert it to float64 under jax.enable_x64."
            )
    value = jnp.asarray(value)
    if jnp.issubdtype(value.dtype, jnp.floating):
        return value
    return jnp.clip(value.astype(jnp.float32), -MAX_INTEGER, MAX_INTEGER)


def _rounded(bound, dtype):
    """Rounds ``bound`` to the dtype; a Python number stays one."""
    if known(bound) is not None:
        return float(np.asarray(bound, dtype))
    return jnp.asarray(bound, dtype)


def _least(bounds):
    """Returns ``min`` for Python numbers if all bounds are, else for arrays."""
    if all(isinstance(bound, numbers.Real) for bound in bounds):
        return lambda *values: float(min(values))
    return lambda first, *rest: _fold(jnp.asarray(first), rest)


def _fold(least, rest):
    for value in rest:
        least = jnp.minimum(least, value)
    return least
