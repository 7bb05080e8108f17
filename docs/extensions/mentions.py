"""Finds the classes of ours that a public name's signature and docstring mention."""

import inspect
import re
import sys
import typing


def of(thing) -> set[type]:
    """Classes in annotations, of fields and methods too, and behind ``Raises:``."""
    if not callable(thing):
        return set()
    own = list(vars(thing).values()) if inspect.isclass(thing) else []
    own = [each.fget if isinstance(each, property) else each for each in own]
    found = set()
    for each in (thing, *filter(inspect.isfunction, own)):
        found |= _annotated(each) | _raised(each)
    return {each for each in found if each.__module__.startswith("jaxanon.")}


def _annotated(thing):
    try:
        annotations = inspect.get_annotations(inspect.unwrap(thing), eval_str=True)
    except (NameError, TypeError):  # Of names that only type checkers see.
        return set()
    return {each for value in annotations.values() for each in _parts(value)}


def _parts(annotation):
    """All classes inside an annotation."""
    inside = typing.get_args(annotation)
    if not inside and inspect.isclass(annotation):
        yield annotation
    for each in inside:
        yield from _parts(each)


def _raised(thing):
    doc = inspect.getdoc(thing) or ""
    section = re.search(r"^Raises:\n((?:  .*\n?|\n)+)", doc, re.MULTILINE)
    if section is None:
        return set()
    names = re.findall(r"^  (\w+):", section[1], re.MULTILINE)
    home = vars(sys.modules[thing.__module__])
    return {home[name] for name in names if inspect.isclass(home.get(name))}
