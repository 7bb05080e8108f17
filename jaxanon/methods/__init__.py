"""The published systems, each a tuple of pure functions."""

from jaxanon.methods.blinder import blinder
from jaxanon.methods.blinder_config import BlinderConfig
from jaxanon.methods.method import Method
from jaxanon.methods.personal import personalise

_BUILDERS = {"blinder": (blinder, BlinderConfig)}
NAMES = tuple(_BUILDERS)

__all__ = [
    "NAMES",
    "BlinderConfig",
    "Method",
    "blinder",
    "build",
    "config_class",
    "personalise",
]


def config_class(name: str):
    """The frozen dataclass of a method's static settings.

    Raises:
      ValueError: if there is no such method.

    Example:
      >>> config_class("blinder").__name__
      'BlinderConfig'
    """
    return _entry(name)[1]


def build(name: str, spec, **settings) -> Method:
    """The method of that name for windows of ``spec``.

    Args:
      name: one of ``NAMES``.
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``config_class(name)``.

    Raises:
      ValueError: if there is no such method, or a setting is out of range.
    """
    return _entry(name)[0](spec, **settings)


def _entry(name):
    if name not in _BUILDERS:
        raise ValueError(f"method must be one of {sorted(_BUILDERS)}, got {name!r}.")
    return _BUILDERS[name]
