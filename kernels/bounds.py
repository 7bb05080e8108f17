"""Bounds of settings and hyper-parameters: declared once, checked by name."""

import dataclasses
import functools
import numbers
import re
import sys
import types
import typing
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from jaxanon.kernels.checks import known, one_of

_KINDS = {
    int: (numbers.Integral, "whole"),
    float: (numbers.Real, "a number"),
    str: (str, "a string"),
    bool: ((bool, np.bool_), "True or False"),
    tuple: (tuple, "a tuple"),
}


class Range(NamedTuple):
    """A range of finite numbers; either end may be missing.

    Example:
      >>> share = Range(above=0, at_most=1)
      >>> share.words, share.holds(1), share.holds(0), share.holds(float("nan"))
      ('in (0, 1]', True, False, False)
    """

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def holds(self, number, *, whole: bool = False) -> bool:
        """Returns whether a number is in range and, unless ``whole``, fits a float."""
        number: Any = known(number)
        return (
            (whole or abs(number) <= sys.float_info.max)
            and (self.above is None or number > self.above)
            and (self.at_least is None or number >= self.at_least)
            and (self.below is None or number < self.below)
            and (self.at_most is None or number <= self.at_most)
        )

    @property
    def words(self) -> str:
        """The range in words; "" if it has no ends."""
        low = self.at_least if self.above is None else self.above
        high = self.at_most if self.below is None else self.below
        if low is not None and high is not None:
            left = "[" if self.above is None else "("
            right = "]" if self.below is None else ")"
            return f"in {left}{low:g}, {high:g}{right}"
        if low is not None:
            return f"{'>=' if self.above is None else '>'} {low:g}"
        return "" if high is None else f"{'<=' if self.below is None else '<'} {high:g}"

    @property
    def finite_words(self) -> str:
        """The range in words, for numbers that might be infinite."""
        return self.words if self.words.startswith("in") else f"finite and {self.words}"


POSITIVE = Range(above=0)
NOT_NEGATIVE = Range(at_least=0)
SHARE = Range(at_least=0, at_most=1)
WITHIN = Range(above=0, below=1)


class Bounds(NamedTuple):
    """Bounds of one field, stored in its metadata under ``"bounds"``."""

    range: Range = Range()  # range of a number, or of each entry of a tuple
    choices: tuple = ()
    lengths: tuple[int, ...] = ()  # allowed lengths of a tuple
    min_length: int = 0
    remedy: str = ""

    @property
    def entries(self) -> str:
        """The required tuple length in words; "" for any length."""
        if self.lengths:
            return f"{' or '.join(map(str, self.lengths))} entries"
        if self.min_length:
            more = "entry" if self.min_length == 1 else "entries"
            return f"at least {self.min_length} {more}"
        return ""


def setting(
    default: Any = dataclasses.MISSING,
    *,
    default_factory: Any = dataclasses.MISSING,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    choices: Iterable = (),
    lengths: tuple[int, ...] = (),
    min_length: int = 0,
    remedy: str = "",
    help: str = "",
) -> Any:
    """Declares a config field with its bounds and its help.

    The command line, the reference and ``check`` derive from this declaration.

    Args:
      default, default_factory: see ``dataclasses.field``.
      above, at_least, below, at_most: ends of the range of a number, or of each entry
        of a tuple. Numbers must also be finite.
      choices: allowed values, or a dict whose keys they are.
      lengths: allowed lengths of a tuple.
      min_length: minimum length of a tuple.
      remedy: remedy at the end of the error for a value out of bounds.
      help: one line of help. The bounds are appended.

    Returns:
      A dataclass field.

    Example:
      >>> @dataclasses.dataclass(frozen=True, kw_only=True)
      ... class WindowConfig:
      ...     length: int = setting(128, at_least=1, help="samples per window")
      ...     rate_hz: float = setting(above=0.0, help="samples per second")
      ...     __post_init__ = check
      >>> WindowConfig(rate_hz=-50.0)
      Traceback (most recent call last):
      ...
      ValueError: rate_hz must be finite and > 0, got -50.0.
    """
    bounds = Bounds(
        Range(above, at_least, below, at_most),
        tuple(choices),
        lengths,
        min_length,
        remedy,
    )
    words = {*re.findall(r"\w+", help)}
    if all(words.issuperset(re.findall(r"\w+", str(one))) for one in bounds.choices):
        listed = ""  # The help explains each choice.
    else:
        listed = f"one of {', '.join(map(str, bounds.choices))}"
    text = "; ".join(filter(None, (help, listed, bounds.range.words, bounds.entries)))
    return dataclasses.field(
        default=default,
        default_factory=default_factory,
        metadata={"help": text, "bounds": bounds},
    )


def check(config) -> None:
    """Raises an error for the first field with a wrong type or out of its bounds.

    An optional field may also be None. Checked types are int, float, str, bool, tuples
    of these and dataclasses; other fields are skipped.

    Args:
      config: dataclass instance. ``check`` can serve as ``__post_init__``.

    Raises:
      TypeError: for a value of another type, including a bool in place of a number.
      ValueError: for a value out of bounds, including NaN and infinity.

    Example:
      >>> @dataclasses.dataclass(frozen=True)
      ... class Settings:
      ...     hidden: tuple[int, ...] | None = setting(None, at_least=1)
      >>> check(Settings((4, 2)))
      >>> check(Settings(4))
      Traceback (most recent call last):
      ...
      TypeError: hidden must be a tuple, got 4.
    """
    types_of = _types(type(config))
    for name, type_ in types_of.items():
        _check_type(name, getattr(config, name), type_)
    for name, bounds in declared(type(config)).items():
        value = getattr(config, name)
        if value is not None and bounds != Bounds():
            _check_bounds(name, value, bounds, types_of[name])


@functools.cache
def declared(config_class: type) -> dict[str, Bounds]:
    """Returns the bounds of a config's fields by name.

    Example:
      >>> @dataclasses.dataclass(frozen=True)
      ... class Settings:
      ...     rate_hz: float = setting(50.0, above=0.0)
      ...     name: str = "x"
      >>> declared(Settings)["rate_hz"].range.words, len(declared(Settings))
      ('> 0', 1)
    """
    found = {f.name: f.metadata.get("bounds") for f in fields(config_class)}
    return {name: bounds for name, bounds in found.items() if bounds}


class _Type(NamedTuple):
    kind: type
    optional: bool
    entry: type | None = None  # type of a tuple's entries


@functools.cache
def _types(config_class) -> dict[str, _Type]:
    """Returns the types to check, by field name."""
    hints = typing.get_type_hints(config_class)
    found = {field.name: _type(hints[field.name]) for field in fields(config_class)}
    return {name: type_ for name, type_ in found.items() if type_ is not None}


def _type(hint):
    united = typing.get_origin(hint) in (types.UnionType, typing.Union)
    union = typing.get_args(hint) if united else (hint,)
    hints = [one for one in union if one is not type(None)]
    kind = typing.get_origin(hints[0]) or hints[0]
    if len(hints) > 1 or not (kind in _KINDS or dataclasses.is_dataclass(kind)):
        return None
    entry = next(iter(typing.get_args(hints[0])), None)
    entry = entry if kind is tuple and entry in _KINDS else None
    return _Type(kind, len(hints) < len(union), entry)


def _check_type(name, value, type_):
    if value is None and type_.optional:
        return
    if not _is(value, type_.kind):
        raise TypeError(f"{name} must be {_kind_name(type_.kind)}, got {value!r}.")
    if type_.entry and not all(_is(one, type_.entry) for one in value):
        kind = _kind_name(type_.entry)
        raise TypeError(f"each of {name} must be {kind}, got {value!r}.")


def _is(value, kind) -> bool:
    if isinstance(value, bool) and kind is not bool:
        return False
    return isinstance(value, _KINDS[kind][0] if kind in _KINDS else kind)


def _kind_name(kind) -> str:
    return _KINDS[kind][1] if kind in _KINDS else f"a {kind.__name__}"


def _check_bounds(name, value, bounds, type_):
    remedy = f"; {bounds.remedy}" if bounds.remedy else ""
    if bounds.choices:
        one_of(name, value, bounds.choices)
    if bounds.range.words:
        several = isinstance(value, tuple)
        whole = int in (type_.kind, type_.entry)
        numbers_ = value if several else (value,)
        if not all(bounds.range.holds(one, whole=whole) for one in numbers_):
            subject = f"each of {name}" if several else name
            words = bounds.range.words if whole else bounds.range.finite_words
            raise ValueError(f"{subject} must be {words}, got {value!r}{remedy}.")
    if bounds.lengths:
        fits = len(value) in bounds.lengths
    else:
        fits = not bounds.min_length or len(value) >= bounds.min_length
    if not fits:
        raise ValueError(f"{name} must have {bounds.entries}, got {value!r}{remedy}.")


def finite(*, zero: bool, **named) -> None:
    """Raises an error unless each argument is finite and > 0, or >= 0 with ``zero``.

    Raises:
      TypeError: for a value that is not a number.
      ValueError: for a value that is infinite, NaN or too small.

    Example:
      >>> finite(zero=True, gamma=0.0)
    """
    for name, value in named.items():
        _check_type(name, value, _Type(float, optional=False))
        bounds = Bounds(NOT_NEGATIVE if zero else POSITIVE)
        _check_bounds(name, value, bounds, _Type(float, optional=False))
