"""What settings refuse, by name, before anything is compiled."""

import math
import numbers


def whole(least: int, **named) -> None:
    """Refuses settings that are not whole, or below ``least``; of tuples, any width.

    Raises:
      TypeError: for a value that is no whole number.
      ValueError: for one that is too small.

    Example:
      >>> whole(1, latent=10, hidden=(8, 4))
    """
    for name, value in named.items():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, bool) or not isinstance(one, numbers.Integral):
                raise TypeError(f"{name} must be whole, got {value!r}.")
            if one < least:
                raise ValueError(f"{name} must be >= {least}, got {value!r}.")


def finite(*, zero: bool, **named) -> None:
    """Refuses settings that are no finite number > 0, or >= 0 with ``zero``.

    Raises:
      TypeError: for a value that is no number.
      ValueError: for one that is infinite, NaN or too small.

    Example:
      >>> finite(zero=True, gamma=0.0)
    """
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name} must be a number, got {value!r}.")
        number = float(value)
        if not (number >= 0 if zero else number > 0) or math.isinf(number):
            bound = ">= 0" if zero else "> 0"
            raise ValueError(f"{name} must be finite and {bound}, got {value!r}.")
