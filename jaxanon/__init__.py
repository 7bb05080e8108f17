"""Sensor data made safe to share.

Names of the training API are imported when they are first used, so that
``import jaxanon.kernels`` loads nothing but JAX.
"""

import importlib

__version__ = "0.2.0"

_HOMES = {
    "load": "jaxanon.datasets",
    "train": "jaxanon.training",
    "evaluate": "jaxanon.evaluation",
    "anonymize_recordings": "jaxanon.streaming",
    "export": "jaxanon.exporting",
    "sweep": "jaxanon.sweeps",
    "open_run": "jaxanon.training",
    "register": "jaxanon.core.registry",
}

_ROOMS = (
    *("attacks", "datasets", "energy", "federated", "kernels", "learners"),
    *("methods", "metrics", "models", "privacy", "recordings"),
)

__all__ = [*_HOMES, *_ROOMS, "__version__"]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(_room(_HOMES[name].removeprefix("jaxanon.")), name)
    if name in _ROOMS:
        return _room(name)
    raise AttributeError(f"module 'jaxanon' has no attribute {name!r}")


def _room(name):
    try:
        return importlib.import_module(f"jaxanon.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (
            "jaxanon.datasets",
            "jaxanon.federated",
            "jaxanon.kernels",
            "jaxanon.recordings",
        ):
            raise
        # In a checkout these folders lie beside this one, not in it.
        raise ModuleNotFoundError(
            f"{error.name} is not in {__path__[0]}: this is the checkout's folder, not "
            "the installed package. Run Python from another folder or with -P, or "
            "install with `pip install -e .`.",
            name=error.name,
        ) from error


def __dir__():
    return sorted([*globals(), *__all__])
