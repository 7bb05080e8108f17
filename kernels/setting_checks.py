"""What settings refuse, by name, before anything is compiled."""

import dataclasses
import math
import numbers
import types
import typing

import numpy as np

from jaxanon.kernels.checks import did_you_mean

_KINDS = {
    int: (numbers.Integral, "whole"),
    float: (numbers.Real, "a number"),
    str: (str, "a word"),
    bool: ((bool, np.bool_), "True or False"),
    tuple: (tuple, "several, in a tuple"),
}


def configured(config_class, settings):
    """The dataclass of these settings.

    Raises:
      TypeError: for a name that is none of its fields, with those that there are; and
        whatever the class itself refuses.

    Example:
      >>> @dataclasses.dataclass
      ... class Settings:
      ...     latent: int = 25
      >>> configured(Settings, {"latent": 4})
      Settings(latent=4)
      >>> configured(Settings, {"latnt": 4})
      Traceback (most recent call last):
      ...
      TypeError: Settings has no 'latnt'; it has ['latent']. Did you mean 'latent'?
    """
    known = sorted(field.name for field in dataclasses.fields(config_class))
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(
            f"{config_class.__name__} has no {', '.join(map(repr, unknown))}; it has "
            f"{known}.{did_you_mean(unknown[0], known)}"
        )
    return config_class(**settings)


def of_kinds(settings) -> None:
    """Refuses settings of another type than they are declared with.

    Args:
      settings: a dataclass; a field that may be None is held to its other type where it
        is not. What is declared as anything but int, float, str, bool, a tuple of one
        of these, or one of these and None, is passed over.

    Raises:
      TypeError: for a value of another type, or a tuple that holds one; a bool in a
        number's place included.

    Example:
      >>> @dataclasses.dataclass
      ... class Settings:
      ...     hidden: tuple[int, ...] | None = None
      >>> of_kinds(Settings((4, 2)))
      >>> of_kinds(Settings(4))
      Traceback (most recent call last):
      ...
      TypeError: hidden must be several, in a tuple, got 4.
    """
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        name, value, hint = field.name, getattr(settings, field.name), hints[field.name]
        if isinstance(hint, types.UnionType):
            others = [one for one in typing.get_args(hint) if one is not type(None)]
            if len(others) > 1 or (value is None and len(others) < len(hint.__args__)):
                continue
            hint = others[0]
        kind = typing.get_origin(hint) or hint
        if kind not in _KINDS:
            continue
        if not _is(value, kind):
            raise TypeError(f"{name} must be {_KINDS[kind][1]}, got {value!r}.")
        one, *_ = typing.get_args(hint) or (None,)
        if kind is tuple and one in _KINDS:
            if not all(_is(each, one) for each in value):
                told = _KINDS[one][1]
                raise TypeError(f"each of {name} must be {told}, got {value!r}.")


def _is(value, kind) -> bool:
    if isinstance(value, bool) and kind is not bool:
        return False
    return isinstance(value, _KINDS[kind][0])


def at_least(least: int, **named) -> None:
    """Refuses settings that are not whole, or below ``least``; of tuples, any width.

    Raises:
      TypeError: for a value that is no whole number.
      ValueError: for one that is too small.

    Example:
      >>> at_least(1, latent=10, hidden=(8, 4))
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
        try:
            number = float(value)
        except OverflowError:  # A whole number beyond all floats.
            number = math.inf
        if not (number >= 0 if zero else number > 0) or math.isinf(number):
            bound = ">= 0" if zero else "> 0"
            raise ValueError(f"{name} must be finite and {bound}, got {value!r}.")
