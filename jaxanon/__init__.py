"""Sensor data made safe to share.

Names of the training API are imported when they are first used, so that
``import jaxanon.kernels`` loads nothing but JAX.
"""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "load": "jaxanon.datasets",
    "train": "jaxanon.training",
    "evaluate": "jaxanon.evaluation",
    "sweep": "jaxanon.sweeping",
    "open_run": "jaxanon.training",
}
_ROOMS = ("attacks", "datasets", "federated", "kernels", "methods", "metrics", "models")

__all__ = [*_HOMES, *_ROOMS, "__version__"]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"jaxanon.{name}")
    raise AttributeError(f"module 'jaxanon' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
