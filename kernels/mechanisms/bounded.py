"""A value that knows how far one neighbour can move it."""

import dataclasses
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import known, not_negative
from jaxanon.kernels.precision import wide

MOST_WHOLE = 1 << 24  # Up to here float32 holds every whole number.


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BoundedValue:
    """An array with its sensitivities, from which noise takes its scale.

    Between any two neighbouring inputs the value differs by at most so much in the
    L1, L2 and L∞ norm of the whole array. Make one by ``clip_to_range`` or
    ``bounded_value``. All four fields are leaves, so sensitivities may be swept by
    ``vmap``; leaves that cross a ``jit`` boundary become arrays.

    Example:
      >>> BoundedValue(jnp.zeros(2), 2.0, 2.0**0.5, 1.0).linf_sensitivity
      1.0
    """

    value: Any  # float[...]
    l1_sensitivity: Any  # float or float[]: of the sum of all changes
    l2_sensitivity: Any  # float or float[]: of the root of the sum of their squares
    linf_sensitivity: Any  # float or float[]: of the largest of them


def bounded_only(**named) -> None:
    """Raises TypeError unless every value is a ``BoundedValue``."""
    for name, value in named.items():
        if not isinstance(value, BoundedValue):
            raise TypeError(
                f"{name} must be a BoundedValue, which knows its sensitivity, got "
                f"{type(value).__name__}; make one by clip_to_range or bounded_value."
            )


def bounded_value(value, *, l1=None, l2=None, linf=None) -> BoundedValue:
    """Attaches sensitivities that the caller has proved, and derives the others.

    With n numbers, L∞ <= L2 <= L1 <= √n L2, L1 <= n L∞ and L2 <= √(L1 L∞); every
    sensitivity becomes the least that these and the given ones allow.

    Args:
      value: ``float[...]``, n numbers. Whole numbers become float32, which tells them
        apart up to 2^24 = 16,777,216: larger ones are refused on the host, and cut to
        that on a device, for rounding could move a neighbour by more than was proved.
      l1: most that a neighbour moves the value in L1 norm; a number >= 0, may be
        traced. So are ``l2`` and ``linf``; at least one must be given.

    Returns:
      ``BoundedValue``; Python numbers stay Python floats.

    Raises:
      ValueError: if no sensitivity is given, or one is negative or no single number,
        or a whole number on the host is above 2^24 in magnitude.

    Example:
      >>> bounded = bounded_value(jnp.zeros(4), linf=0.5)
      >>> bounded.l1_sensitivity, bounded.l2_sensitivity, bounded.linf_sensitivity
      (2.0, 1.0, 0.5)
    """
    given = {"l1": l1, "l2": l2, "linf": linf}
    given = {name: bound for name, bound in given.items() if bound is not None}
    if not given:
        raise ValueError("one of l1, l2 and linf must be given, got none.")
    for name, bound in given.items():
        if jnp.shape(bound) != ():
            raise ValueError(
                f"{name} must be one number for the whole value, got shape "
                f"{jnp.shape(bound)}; sum or maximise it over the entries first."
            )
    not_negative(**given)
    value = _exact(value)
    n, least = value.size, _least(given.values())
    of = lambda name, factor=1.0: [factor * given[name]] if name in given else []
    one = least(*of("l1"), *of("l2", n**0.5), *of("linf", n))
    most = least(*given.values())
    two = least(one, *of("l2"), *of("linf", n**0.5))
    if "l1" in given and "linf" in given:  # Else the root says nothing, but rounding.
        two = least(two, one**0.5 * most**0.5)
    return BoundedValue(value, one, two, least(one, two, most))


def clip_to_range(x, low, high) -> BoundedValue:
    """Clips every number to a public range, which bounds what one person can change.

    Neighbours are any two arrays of this shape (one person's whole array is replaced:
    local privacy), so L∞ = high - low, and n numbers give n and √n times that. A
    range read off the data gives no guarantee: it leaks, and the next value may lie
    outside it.

    Args:
      x: ``float[...]``; NaN becomes ``low``, infinities the ends.
      low, high: numbers or ``float[]``, low < high; rounded to the dtype of ``x``, as
        the sensitivity knows. An empty array has sensitivity 0.

    Returns:
      ``BoundedValue`` in the dtype of ``x``.

    Raises:
      ValueError: if ``low`` is not below ``high``, or one is no single number.

    Example:
      >>> bounded = clip_to_range(jnp.array([-3.0, 0.5, jnp.nan, 9.0]), 0.0, 2.0)
      >>> bounded.value
      Array([0. , 0.5, 0. , 2. ], dtype=float32)
      >>> bounded.l1_sensitivity, bounded.l2_sensitivity, bounded.linf_sensitivity
      (8.0, 4.0, 2.0)

    References:
      Nissim, Raskhodnikova and Smith, Smooth Sensitivity and Sampling, STOC 2007, on
      why a sensitivity taken from the data protects nobody.
    """
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(jnp.float32)
    for name, bound in (("low", low), ("high", high)):
        if jnp.shape(bound) != ():
            raise ValueError(
                f"{name} must be one number, got shape {jnp.shape(bound)}; scale the "
                "channels to one range first."
            )
    low, high = _rounded(low, x.dtype), _rounded(high, x.dtype)
    numbers_ = isinstance(low, float) and isinstance(high, float)
    if numbers_ and not (-np.inf < low < high < np.inf):
        raise ValueError(
            "low must be below high and both finite, got "
            f"{low} and {high} in {x.dtype}."
        )
    value = jnp.where(jnp.isnan(x), low, jnp.clip(x, low, high)).astype(x.dtype)
    if not numbers_:
        low, high = (jnp.asarray(end, wide(x.dtype)) for end in (low, high))
    return bounded_value(value, linf=high - low)


def _exact(value):
    """The value as floats, to none of which a whole number was rounded."""
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        value = np.asarray(value)
        whole = np.issubdtype(value.dtype, np.integer) and value.size
        if whole and not -MOST_WHOLE <= value.min() <= value.max() <= MOST_WHOLE:
            raise ValueError(
                f"value must hold whole numbers up to {MOST_WHOLE} in magnitude, which "
                f"float32 tells apart, got {value.min()} to {value.max()}; count in "
                "larger units, or convert it to float64 under jax.enable_x64."
            )
    value = jnp.asarray(value)
    if jnp.issubdtype(value.dtype, jnp.floating):
        return value
    return jnp.clip(value.astype(jnp.float32), -MOST_WHOLE, MOST_WHOLE)


def _rounded(bound, dtype):
    """``bound`` as the array's type holds it; a Python number stays one."""
    if known(bound) is not None:
        return float(np.asarray(bound, dtype))
    return jnp.asarray(bound, dtype)


def _least(bounds):
    """``min``, of Python numbers where all are, else of arrays."""
    if all(isinstance(bound, numbers.Real) for bound in bounds):
        return lambda *values: float(min(values))
    return lambda first, *rest: _fold(jnp.asarray(first), rest)


def _fold(least, rest):
    for value in rest:
        least = jnp.minimum(least, value)
    return least
