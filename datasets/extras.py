"""Packages that only a part of the library needs."""

import importlib
from types import ModuleType


def need(module: str, extra: str, name: str) -> ModuleType:
    """The module, imported now; ImportError saying what to install if it is absent.

    Args:
      module: its dotted name.
      extra: of jaxanon, that installs it.
      name: of what needs it, such as a data set.

    Example:
      >>> need("json", "energy", "tracebase").dumps([1])
      '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{name} needs {module.partition('.')[0]}, which is not installed; run pip "
            f"install 'jaxanon[{extra}]'."
        ) from error
